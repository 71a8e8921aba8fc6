"""`switchboard up`, unchanged but for this: it dies (SIGKILL) at the step that the file KILL_AT names at that moment.

A step is `before` or `after` one of the names below. What is wrapped is wrapped here, in the test's program only.
"""

import inspect
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from switchboard.cli import main
from switchboard.orchestrator.folders import SessionFolders
from switchboard.runners.family import Family
from switchboard.runners.process import ProcessRunner
from switchboard.runners.records import Records
from switchboard.store.scripts import Scripts
from switchboard.store.sessions import Sessions

PLACES: dict[str, tuple[type, str]] = {
    "the start": (ProcessRunner, "start"),
    "the claim": (ProcessRunner, "_claim"),
    "the spawn": (ProcessRunner, "_spawn"),
    "the record": (Records, "write"),
    "the word": (ProcessRunner, "_release"),
    "the handle": (Sessions, "keep_handle"),
    "the stop": (ProcessRunner, "stop"),
    "a signal": (Family, "_signal"),
    "the worker's end": (Family, "end"),
    "put aside": (SessionFolders, "_put_aside"),
    "the folder": (SessionFolders, "_remove"),
    "aside cleared": (Sessions, "clear_aside"),
}
Step = Callable[[str], None]


def arm(kill_at: Path) -> None:
    def step(name: str) -> None:
        if kill_at.exists() and kill_at.read_text() == name:
            kill_at.unlink()  # once
            os.kill(os.getpid(), signal.SIGKILL)

    for name, (owner, attribute) in PLACES.items():
        setattr(owner, attribute, wrapped(getattr(owner, attribute), name, step))
    run = Scripts.run

    async def run_script(self: Scripts, name: str, *arguments: Any) -> Any:
        """The name of a script is a step as well."""
        step(f"before {name}")
        answer = await run(self, name, *arguments)
        step(f"after {name}")
        return answer

    Scripts.run = run_script  # type: ignore[method-assign]


def wrapped(original: Callable[..., Any], name: str, step: Step) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        async def asynchronous(*arguments: Any) -> Any:
            step(f"before {name}")
            answer = await original(*arguments)
            step(f"after {name}")
            return answer

        return asynchronous

    def synchronous(*arguments: Any) -> Any:
        step(f"before {name}")
        answer = original(*arguments)
        step(f"after {name}")
        return answer

    return synchronous


if __name__ == "__main__":
    arm(Path(os.environ["KILL_AT"]))
    main()
