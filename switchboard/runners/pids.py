"""Who a process is: a pid is used again, a pid with its time of birth is not.

Reads /proc; where there is none (macOS) it asks `ps`, which knows no marks. Starts and signals nothing.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_ENDED = "ZXx"  # a zombie runs nothing and holds nothing, it only waits for its parent to look
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Identity:
    """`born` is the start in the kernel's own ticks since `boot` (or, without /proc, the date that `ps` tells)."""

    pid: int
    born: str
    boot: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A living process. `mark` is the value of the environment variable that was asked for, as it was at its exec."""

    identity: Identity
    family: int
    """The id of its session, which is the pid of who began it; without /proc, of its process group."""

    mark: str | None = None

    @property
    def pid(self) -> int:
        return self.identity.pid


def identify(pid: int) -> Identity | None:
    """Who has this pid now; None when nobody lives there."""
    seen = _seen(pid, _boot()) if _has_proc() else next(_from_ps("-p", str(pid)), None)
    return seen.identity if seen else None


def alive(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def everyone(variable: str) -> Iterator[Seen]:
    """All living processes, each with its `variable` where we may read it."""
    if not _has_proc():
        yield from _from_ps("-A")
        return
    boot = _boot()
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and (seen := _seen(int(entry.name), boot)):
            yield Seen(seen.identity, seen.family, _variable(seen.pid, variable))


def has_open(pid: int, path: Path) -> bool:
    """Whether that process has this very file open, as far as we may know."""
    if not _has_proc():
        return bool(_answer("lsof", "-t", "-a", "-p", str(pid), str(path)))
    with suppress(OSError):
        wanted = path.stat()
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(descriptor.stat(), wanted):
                    return True
    return False


def memory_of(pid: int) -> int | None:
    """Bytes in RAM."""
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _seen(pid: int, boot: str) -> Seen | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # After the last ")": a program may be named ") R 1 (". What follows it begins with field 3 of proc(5).
    fields = text.rpartition(")")[2].split()
    state, session, start_ticks = fields[0], fields[3], fields[19]
    return None if state in _ENDED else Seen(Identity(pid, start_ticks, boot), int(session))


def _boot() -> str:
    with suppress(FileNotFoundError):  # some sandboxes have none
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def _variable(pid: int, name: str) -> str | None:
    prefix = f"{name}=".encode()
    with suppress(OSError):
        for line in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if line.startswith(prefix):
                return os.fsdecode(line.removeprefix(prefix))
    return None


def _from_ps(*selection: str) -> Iterator[Seen]:
    for line in _answer("ps", "-o", "pid=,pgid=,stat=,lstart=", *selection).splitlines():
        pid, group, state, born = line.split(None, 3)
        if state[0] not in _ENDED:
            yield Seen(Identity(int(pid), born.strip(), ""), int(group))


def _answer(*command: str) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    asked = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    return asked.stdout
