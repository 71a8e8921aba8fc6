"""What to run for a session, as a plain value. Pure: made and tested without running anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field

DIRECT = "direct"
"""As PROXY_URL: no proxy at all, said out loud rather than left out."""

_FRUGAL = {"MALLOC_ARENA_MAX": "1"}
"""glibc gives each thread a heap of its own, and what is freed there stays there. A worker's threads hardly compete."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """`environment` holds all that the worker is told, its own secret and its proxy's credentials among it."""

    session_id: str
    generation: int
    environment: Mapping[str, str] = field(repr=False)
    memory_mb: int = 512


def worker_spec(
    session_id: str,
    generation: int,
    *,
    proxy_url: str | None,
    secret: str,
    webhook_url: str,
    device_name: str,
    keep_alive: bool = True,
    memory_mb: int = 512,
) -> WorkerSpec:
    return WorkerSpec(
        session_id=session_id,
        generation=generation,
        environment={
            "SESSION_ID": session_id,
            "PROXY_URL": proxy_url or DIRECT,
            "WEBHOOK_URL": webhook_url,
            "WEBHOOK_SECRET": secret,
            "ENABLE_KEEP_ALIVE": "true" if keep_alive else "false",
            "DEVICE_NAME": device_name,
            **_FRUGAL,
        },
        memory_mb=memory_mb,
    )
