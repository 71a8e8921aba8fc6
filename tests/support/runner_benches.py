"""A bench for each way to run workers: what the contract's tests need beside the contract itself."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from switchboard.runners.base import Handle, Runner
from switchboard.runners.memory import FAILING, MemoryRunner, MemoryWorld, crashing
from switchboard.runners.process import ProcessRunner
from switchboard.runners.spec import WorkerSpec
from tests.support.serving import until

STUB = Path(__file__).parent / "stub_worker.py"
COMMAND = [sys.executable, "-IS", str(STUB)]


def clock() -> int:
    return time.time_ns() // 1_000_000


class Bench(Protocol):
    def runner(self) -> Runner:
        """A new one each time, in the same world."""

    def impatient_runner(self) -> Runner:
        """One that waits only a moment between asking and killing."""

    def spec(self, session_id: str = "s1", generation: int = 1, does: str = "") -> WorkerSpec:
        """`does`: nothing, `exit=<code>` (at once), `ignore-term` or `child` (one that ignores being asked to end)."""

    async def ready(self, handle: Handle) -> None:
        """Returns when its program is up and does what it was told."""

    def crash(self, handle: Handle) -> None:
        """Kill its program, as the kernel does to one that is too greedy."""

    def alive(self, session_id: str) -> int:
        """How much lives of this session's workers, by the world's own account, not by a runner's."""

    def without_program(self) -> Runner:
        """One whose workers can't be started, in the same world."""

    def take_away(self) -> None:
        """That on which the workers run can't be reached any more."""

    def bring_back(self) -> None: ...

    def clean_up(self) -> None: ...


class MemoryBench:
    def __init__(self) -> None:
        self.world = MemoryWorld()

    def runner(self) -> Runner:
        return MemoryRunner(self.world, clock=clock)

    def impatient_runner(self) -> Runner:
        return self.runner()

    def spec(self, session_id: str = "s1", generation: int = 1, does: str = "") -> WorkerSpec:
        self.world.faults.pop(session_id, None)
        if does.startswith("exit="):
            self.world.faults[session_id] = crashing(int(does.removeprefix("exit=")))
        return WorkerSpec(session_id, generation, {})

    async def ready(self, handle: Handle) -> None:
        pass

    def crash(self, handle: Handle) -> None:
        self.world.crash(handle.session_id, 137)

    def alive(self, session_id: str) -> int:
        return sum(one.running for name, one in self.world.workers.items() if name == session_id)

    def without_program(self) -> Runner:
        self.world.fault = FAILING
        return self.runner()

    def take_away(self) -> None:
        self.world.unavailable = True

    def bring_back(self) -> None:
        self.world.unavailable = False

    def clean_up(self) -> None:
        pass


class ProcessBench:
    """The stub worker as real processes, with everything below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions, self.run, self.logs = folder / "sessions", folder / "run", folder / "logs"

    def runner(self, **changes: Any) -> ProcessRunner:
        options: dict[str, Any] = {"command": COMMAND, "grace_s": 5.0} | changes
        return ProcessRunner(
            options.pop("command"),
            sessions_dir=self.sessions,
            run_dir=self.run,
            log_dir=self.logs,
            clock=clock,
            **options,
        )

    def impatient_runner(self) -> Runner:
        return self.runner(grace_s=0.2)

    def spec(self, session_id: str = "s1", generation: int = 1, does: str = "", memory_mb: int = 512) -> WorkerSpec:
        return WorkerSpec(session_id, generation, {"STUB": does, "SESSION_ID": session_id}, memory_mb)

    async def ready(self, handle: Handle) -> None:
        await until(lambda: handle.data["pid"] in self.pids(handle.session_id))

    def pids(self, session_id: str, name: str = "ready") -> list[int]:
        """Of the workers that ever ran for this session, or (`others`) of what those started."""
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.sessions / session_id / name).read_text().split()]
        return []

    def crash(self, handle: Handle) -> None:
        os.kill(int(handle.data["pid"]), signal.SIGKILL)

    def without_program(self) -> Runner:
        return self.runner(command=["no-such-program", "at-all"])

    def take_away(self) -> None:
        self.run.rename(self.folder / "away")
        self.run.write_text("in the way")

    def bring_back(self) -> None:
        self.run.unlink()
        (self.folder / "away").rename(self.run)

    def alive(self, session_id: str) -> int:
        return len(processes_of(self.sessions / session_id))

    def clean_up(self) -> None:
        """Again until nobody was seen three times: one may be starting another, or be between two programs."""
        deadline, quiet = time.monotonic() + 10, 0
        while quiet < 3:
            left = processes_of(self.folder)
            quiet = 0 if left else quiet + 1
            assert time.monotonic() < deadline, f"these can't be ended: {left}"
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def processes_of(folder: Path) -> list[int]:
    """Whatever lives and has this folder in its environment or in its command. A zombie has neither."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if pid != os.getpid() and os.fsencode(folder) in _told(pid)]


def _told(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
