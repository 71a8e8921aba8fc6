"""A runner that runs nothing, for the tests of whatever uses one: the same contract, with faults to order.

Its workers live in a `MemoryWorld`, not in the runner: a second runner on the same world is what the next
Switchboard would be after this one was killed.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from switchboard.runners.base import AlreadyRunning, Handle, Observed, RunnerUnavailable, StartFailed
from switchboard.runners.records import checked
from switchboard.runners.spec import WorkerSpec

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with a start. All of it together is possible, if rarely of use."""

    slow_s: float = 0.0
    never: bool = False
    failing: bool = False
    exit_code: int | None = None


HEALTHY = Fault()
NEVER = Fault(never=True)
FAILING = Fault(failing=True)


def slow(seconds: float) -> Fault:
    return Fault(slow_s=seconds)


def crashing(code: int = 1) -> Fault:
    """It starts, and exits at once."""
    return Fault(exit_code=code)


@dataclass(slots=True)
class MemoryWorld:
    """`workers` and `specs` hold the last start of each session, `starts` counts all that ever ran."""

    workers: dict[str, Observed] = field(default_factory=dict)
    specs: dict[str, WorkerSpec] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    fault: Fault = HEALTHY
    """For every session that has none of its own in `faults`."""

    unavailable: bool = False
    starts: int = 0

    def crash(self, session_id: str, code: int = 1) -> None:
        """Let its worker exit by itself."""
        self.workers[session_id] = replace(self.workers[session_id], running=False, exit_code=code)


class MemoryRunner:
    name = "memory"

    def __init__(self, world: MemoryWorld, *, clock: Callable[[], int]) -> None:
        self.world = world
        self._clock = clock

    async def start(self, spec: WorkerSpec) -> Handle:
        self._reach(spec.session_id)
        fault = self.world.faults.get(spec.session_id, self.world.fault)
        if fault.never:
            await asyncio.Event().wait()
        await asyncio.sleep(fault.slow_s)
        self._reach(spec.session_id)
        if fault.failing:
            raise StartFailed(f"The worker of session {spec.session_id} can't be started: a fault was ordered.")
        return self._begin(spec, fault)

    def _begin(self, spec: WorkerSpec, fault: Fault) -> Handle:
        before = self.world.workers.get(spec.session_id)
        if before and before.running:
            raise AlreadyRunning(f"A worker of session {spec.session_id} is running.")
        self.world.starts += 1
        handle = Handle(self.name, _VERSION, spec.session_id, spec.generation, {"start": self.world.starts})
        self.world.workers[spec.session_id] = Observed(handle, running=True, started_at=self._clock())
        self.world.specs[spec.session_id] = spec
        if fault.exit_code is not None:
            self.world.crash(spec.session_id, fault.exit_code)
        return handle

    async def stop(self, handle: Handle) -> None:
        if await self.inspect(handle):
            del self.world.workers[handle.session_id]
            del self.world.specs[handle.session_id]

    async def inspect(self, handle: Handle) -> Observed | None:
        self._reach(handle.session_id)
        found = self.world.workers.get(handle.session_id)
        return found if found and found.handle == handle else None

    async def recover(self, handles: Sequence[Handle]) -> list[Observed]:
        """The world forgets nothing, so there is nothing to do with what was kept."""
        return await self.list()

    async def list(self) -> list[Observed]:
        self._reach()
        return [self.world.workers[session_id] for session_id in sorted(self.world.workers)]

    def _reach(self, session_id: str | None = None) -> None:
        if session_id is not None:
            checked(session_id)
        if self.world.unavailable:
            raise RunnerUnavailable("The world of workers is away: a fault was ordered.")
