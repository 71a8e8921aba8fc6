"""A Switchboard process that owns a process runner, and dies (SIGKILL) at the moment it was told to.

Arguments: the bench's folder, and what to do. Prints a line when the deed is done, if it lives to tell.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from switchboard.runners import process
from switchboard.runners.base import AlreadyRunning
from switchboard.runners.records import Records
from tests.support.runner_benches import ProcessBench


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(call: Callable[..., Any]) -> Callable[..., None]:
    def both(*arguments: Any) -> None:
        call(*arguments)
        die()

    return both


def arm(step: str) -> None:
    """Put its death at that step of a start."""
    match step:
        case "before the record":
            Records.write = die  # type: ignore[method-assign,assignment]
        case "in the record":
            Path.replace = die  # type: ignore[method-assign,assignment]
        case "after the record":
            Records.write = then_die(Records.write)  # type: ignore[method-assign]
        case "after the word":
            process.os.write = then_die(os.write)  # type: ignore[attr-defined]


async def main(bench: ProcessBench, step: str) -> str:
    runner = bench.runner(grace_s=60.0)
    if step == "race":
        sys.stdin.read()  # all of them are let go at once
        try:
            handle = await runner.start(bench.spec())
        except AlreadyRunning:
            return "refused"
        return f"won {handle.data['pid']}"
    arm(step)
    handle = await runner.start(bench.spec(does="ignore-term" if step == "in a stop" else ""))
    if step == "in a stop":
        await bench.ready(handle)
        await runner.stop(handle)
    die()
    return "never"


if __name__ == "__main__":
    print(asyncio.run(main(ProcessBench(Path(sys.argv[1])), sys.argv[2])), flush=True)  # noqa: T201
