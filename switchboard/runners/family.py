"""One start of a worker as processes: the leader that we launched, and whatever it started in turn.

Finds them and ends them. Each carries a mark in its environment from its first instruction on, so a worker is found
even when every file about it is lost, and nothing is signalled because of its number alone.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from switchboard.runners.base import Handle
from switchboard.runners.pids import Identity, Seen, alive, everyone, has_open

_log = structlog.get_logger(__name__)
RUNNER = "process"
VERSION = 1
VARIABLE = "SWITCHBOARD_WORKER"
POLL_S = 0.02
_POLL_MAX_S = 0.25
_QUIET_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Launch:
    """What tells one start from every other. As a mark it is: pid, generation, started_at, token, folder."""

    folder: Path
    generation: int
    started_at: int
    token: str

    def mark(self) -> str:
        """Without the pid: the shim writes its own before it, which is the worker's."""
        return f"{self.generation} {self.started_at} {self.token} {self.folder}"

    def handle(self, leader: Identity) -> Handle:
        data: dict[str, str | int] = {"pid": leader.pid, "born": leader.born, "boot": leader.boot}
        data |= {"started_at": self.started_at, "token": self.token}
        return Handle(RUNNER, VERSION, self.folder.name, self.generation, data)


def workers(sessions_dir: Path) -> Iterator[Handle]:
    """The living workers whose folders are in there, known from nothing but themselves."""
    for seen in everyone(VARIABLE):
        _, launch = _read_mark(seen)
        if launch and launch.folder.parent == sessions_dir and leads(seen):
            yield launch.handle(seen.identity)


def remains(folder: Path) -> list[Seen]:
    """All that lives of any worker of this folder."""
    found = ((seen, _read_mark(seen)[1]) for seen in everyone(VARIABLE))
    return [seen for seen, launch in found if launch and launch.folder == folder]


def leads(seen: Seen) -> bool:
    """Whether it is the worker itself; what it starts inherits the mark as it is."""
    return _read_mark(seen)[0] == seen.pid


def _read_mark(seen: Seen) -> tuple[int, Launch | None]:
    try:
        pid, generation, started_at, token, folder = (seen.mark or "").split(" ", 4)
        return int(pid), Launch(Path(folder), int(generation), int(started_at), token)
    except ValueError:
        return 0, None


def leader_of(handle: Handle) -> Identity | None:
    """None when the handle is not one of ours, or makes no sense."""
    if (handle.runner, handle.version) != (RUNNER, VERSION):
        return None
    match handle.data:
        case {"pid": int(pid), "born": str(born), "boot": str(boot), "started_at": int(), "token": str()}:
            return Identity(pid, born, boot)
    return None


class Family:
    """All processes of one start. Whoever was once seen to belong to it does, until it ends."""

    def __init__(self, handle: Handle, leader: Identity, lock: Path) -> None:
        self._token = handle.data.get("token")
        self._leader = leader
        self._lock = lock
        self._members: set[Seen] = set()

    async def end(self, grace_s: float) -> None:
        """Ask them all, wait, then kill; return when nobody is left."""
        deadline, pause, quiet, killed = time.monotonic() + grace_s, POLL_S, 0, False
        self._signal(signal.SIGTERM)
        # Nobody there, twice: one that is just replacing its program shows no environment for that moment.
        while (quiet := 0 if self._is_there() else quiet + 1) < _QUIET_LOOKS:
            if not quiet and time.monotonic() >= deadline:
                if not killed:
                    _log.warning("worker.killed", pid=self._leader.pid, why=f"it did not end within {grace_s:g} s")
                killed = True
                self._signal(signal.SIGKILL)
            await asyncio.sleep(pause)
            pause = POLL_S if quiet else min(pause * 1.3, _POLL_MAX_S)

    def _is_there(self) -> bool:
        return alive(self._leader) or bool(self._living())

    def _signal(self, number: signal.Signals) -> None:
        living = self._living()
        led = alive(self._leader)
        if led:  # the whole group at once: nobody forks away between two signals
            with suppress(ProcessLookupError):
                os.killpg(self._leader.pid, number)
        for member in living:
            if not led or member.family != self._leader.pid:
                send(member, number)

    def _living(self) -> set[Seen]:
        found = list(everyone(VARIABLE))
        # Asked after the look: if the leader is there now it was there all along, and nobody else had its pid.
        led = alive(self._leader)
        self._members |= {seen for seen in found if self._belongs(seen, led)}
        self._members = {member for member in self._members if alive(member.identity)}
        return self._members

    def _belongs(self, seen: Seen, led: bool) -> bool:
        """A session bears its leader's pid. Once that one is dead the number proves nothing: all of ours may be gone,
        and the pid may have begun a stranger's session. Then only an inherited thing counts, the mark or the lock."""
        _, launch = _read_mark(seen)
        if launch and launch.token == self._token:
            return True
        return seen.family == self._leader.pid and (led or has_open(seen.pid, self._lock))


def send(seen: Seen, number: signal.Signals) -> None:
    if alive(seen.identity):
        with suppress(ProcessLookupError):
            os.kill(seen.pid, number)
