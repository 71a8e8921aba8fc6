"""What a demo leaves running in its folder when its server is killed: the store and the workers. Ends them.

The simulator is not among them: it ends by itself with the demo that started it.
"""

import asyncio
from pathlib import Path

from switchboard.runners.base import RunnerUnavailable
from switchboard.runners.process import ProcessRunner
from switchboard.store.server import EmbeddedStore
from switchboard.wiring import system_clock

_LOOK_S = 0.1


class LeftoversStay(Exception):
    """The message is a sentence for the person at the terminal, and says what to do."""


async def end_leftovers(folder: Path, grace_s: float, patience_s: float) -> None:
    """Returns when nobody uses the folder any more. A server that is just going down gets the time for it."""
    store = EmbeddedStore(folder)
    deadline = asyncio.get_running_loop().time() + patience_s
    # First the store: as long as it has an owner that one is alive, and looks after its workers itself.
    while not await store.end_orphan():
        if asyncio.get_running_loop().time() > deadline:
            raise LeftoversStay(
                f"an earlier demo still runs in {folder}: end its processes first (those that work in there)"
            )
        await asyncio.sleep(_LOOK_S)
    try:
        await _end_workers(folder, grace_s)
    except RunnerUnavailable as error:
        raise LeftoversStay(f"an earlier demo's workers can't be ended. {error}") from error


async def _end_workers(folder: Path, grace_s: float) -> None:
    """Known from their records, and from themselves if those are lost."""
    runner = ProcessRunner(
        (),
        sessions_dir=folder / "sessions",
        run_dir=folder / "run",
        log_dir=folder / "logs",
        grace_s=grace_s,
        clock=system_clock,
    )
    found = await runner.recover([])
    await asyncio.gather(*(runner.stop(worker.handle) for worker in found))
