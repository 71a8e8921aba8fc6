"""What `switchboard up` tells the person at the terminal to do next. Words only: the caller looks and prints."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scene:
    """`worker_missing` says why no worker can be run, and what to do about it."""

    worker_missing: str | None
    proxies: int
    sessions: int
    allow_direct: bool


def next_steps(scene: Scene, command: str) -> list[str]:
    """Up to the first scan; who has sessions knows the way."""
    if scene.worker_missing:
        return [f"Sessions can be made, but there is no worker to run for them. {scene.worker_missing}"]
    if scene.sessions:
        return []
    steps = ["Next, in another terminal, in this folder:"]
    if not scene.proxies and not scene.allow_direct:
        steps.append(
            f"  {command} proxies add    a SOCKS5 proxy to connect through (none at hand? Start with ALLOW_DIRECT=true)"
        )
    elif not scene.proxies:
        steps[:0] = ["There is no proxy: sessions connect directly, from this machine's own address (ALLOW_DIRECT)."]
    return [*steps, f"  {command} sessions new   shows a QR code; scan it with the phone to link its account"]


def own_command(program: str | None = None, folder: Path | None = None) -> str:
    """How this program is called from the folder it was started in."""
    called = Path(program or sys.argv[0])
    if called.name != "switchboard" or not called.is_file():
        return "switchboard"
    if (on_path := shutil.which("switchboard")) and Path(on_path).samefile(called):
        return "switchboard"
    near = os.path.relpath(called, folder or Path.cwd())
    return str(called) if near.startswith("..") else near
