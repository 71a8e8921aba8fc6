"""What `switchboard up` tells the person at the terminal to do next. Words only: the caller looks and prints."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from switchboard.settings import Settings

_NEEDED = ("DATA_DIR", "ORCH_HOST", "ORCH_PORT")
"""What a command must know to find the server. The key is among its data; one that was given is not repeated."""


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


def for_another_terminal(command: str, environment: Mapping[str, str]) -> str:
    """What stands in `.env` is found from there, too; what only this environment has must be typed again."""
    given = [
        f"{name}={shlex.quote(value)}"
        for name in _NEEDED
        if (value := environment.get(name)) and value != str(Settings.model_fields[name.lower()].default)
    ]
    return " ".join([*given, command])


def own_command(program: str | None = None, folder: Path | None = None) -> str:
    """How this program is called from the folder it was started in."""
    called = Path(program or sys.argv[0])
    if called.name != "switchboard" or not called.is_file():
        return "switchboard"
    if (on_path := shutil.which("switchboard")) and Path(on_path).samefile(called):
        return "switchboard"
    return as_typed(called, folder)


def place_of_the_key(settings: Settings, folder: Path | None = None) -> str | None:
    """The file that has the API key; None if it was given. Strangers read it, too: no folders of the machine."""
    if settings.api_key is not None:
        return None
    path = as_typed(settings.data_dir / "secrets.json", folder)
    return "$DATA_DIR/secrets.json" if Path(path).is_absolute() else path


def as_typed(path: Path, folder: Path | None = None) -> str:
    """Short if it is in the folder one is in, and whole elsewhere."""
    near = os.path.relpath(path, folder or Path.cwd())
    return str(path) if near.startswith("..") else near
