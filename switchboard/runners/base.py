"""The contract of a runner: it keeps at most one worker for each session, and knows nothing of WhatsApp.

A runner holds no truth of its own in memory: whatever it started it can find again from where it left its marks
(files, labels), so the program that uses it may be killed at any moment and built anew.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from switchboard.runners.spec import WorkerSpec


class RunnerError(Exception):
    """Something a runner could not do. The message is a sentence for the operator, without secrets."""


class StartFailed(RunnerError):
    """The worker could not be started, and none is left half-started."""


class AlreadyRunning(RunnerError):
    """A worker of this session is alive; there will be no second one."""


class RunnerUnavailable(RunnerError):
    """What the runner runs on (an engine, a disk) is away or full. Nothing is known to have changed: try later."""


@dataclass(frozen=True, slots=True)
class Handle:
    """Names one start of one worker. It is kept in the store; only the runner that made it reads `data`."""

    runner: str
    version: int
    session_id: str
    generation: int
    data: Mapping[str, str | int] = field(default_factory=dict)

    def dump(self) -> str:
        return json.dumps([self.runner, self.version, self.session_id, self.generation, dict(self.data)])

    @classmethod
    def load(cls, text: str) -> "Handle":
        runner, version, session_id, generation, data = json.loads(text)
        return cls(runner, version, session_id, generation, data)


@dataclass(frozen=True, slots=True)
class Observed:
    """One worker as it was seen. An ended one is still seen until it is stopped (forgotten) or started anew."""

    handle: Handle
    running: bool
    started_at: int
    exit_code: int | None = None
    memory_bytes: int | None = None

    @property
    def session_id(self) -> str:
        return self.handle.session_id

    @property
    def generation(self) -> int:
        return self.handle.generation


class Runner(Protocol):
    name: str

    async def start(self, spec: WorkerSpec) -> Handle:
        """Launch the worker and return; it is not ready yet, its own events say when it is.

        From the moment its program runs, `list` shows it, even if this call never returns. Raises StartFailed,
        AlreadyRunning (also when its worker was started by someone this runner has never heard of) or
        RunnerUnavailable.
        """

    async def stop(self, handle: Handle) -> None:
        """Ask it to end, then make it; return once it is gone for certain, it and all it started.

        A worker that has ended, or is not known, is forgotten: repeating this does no harm. A handle whose worker
        was replaced by a later start touches nothing.
        """

    async def inspect(self, handle: Handle) -> Observed | None:
        """That very worker now; None if it is unknown, or was replaced by a later start."""

    async def recover(self, handles: Sequence[Handle]) -> list[Observed]:
        """Called once, before all else, with the handles that were kept. Takes over what is still alive, clears up
        what a crash left half-done, disturbs no worker, and returns what `list` would.

        A handle of another runner or of an unknown version is passed over.
        """

    async def list(self) -> list[Observed]:
        """Every worker of this installation that was started and not stopped, those of unknown sessions included."""


@runtime_checkable
class Tended(Protocol):
    """An extra: a runner that wants to be called now and then, for log rotation and the like."""

    async def tend(self) -> None: ...


@runtime_checkable
class Telling(Protocol):
    """An extra: a runner that notices by itself that a worker ended, and sets `ended` then. Clear it before looking."""

    ended: asyncio.Event
