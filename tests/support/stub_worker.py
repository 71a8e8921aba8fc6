"""A worker that is no worker: it does what the words in STUB say, and then waits to be ended.

When all is set up, its pid is a line in `ready` in its session's folder; those of what it starts are lines in `others`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WAIT = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"


def ignore_term() -> None:
    """But tell that it was asked."""
    signal.signal(signal.SIGTERM, lambda *_: note("asked", os.getpid()))


def child(*, env: dict[str, str] | None = None, close_fds: bool = True, apart: bool = False) -> None:
    """One that ignores SIGTERM. Its folder is an argument too, so that a test can find it without its environment."""
    process = subprocess.Popen(
        [sys.executable, "-ISc", WAIT, str(Path.cwd())],
        env=env,
        close_fds=close_fds,
        start_new_session=apart,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    note("others", process.pid)


def hidden_child() -> None:
    """Without the environment of its parent, but with all that it has open."""
    child(env={}, close_fds=False)


def dump() -> None:
    descriptors = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            descriptors[link.name] = str(link.readlink())
    Path("dump").write_text(json.dumps({"environment": dict(os.environ), "descriptors": descriptors}))


def shout() -> None:
    """100,000 bytes on stdout, a word on stderr."""
    os.write(1, b"x" * 99_999 + b"\n")
    os.write(2, b"and this on stderr\n")


def tick() -> None:
    """A line every few milliseconds, each with its number, for ever."""
    note("ready", os.getpid())
    for number in range(1_000_000):
        os.write(1, f"{number}\n".encode())
        time.sleep(0.002)


def eat() -> None:
    """As much memory as there is, up to 256 MB."""
    eaten = [bytearray(1 << 20) for _ in range(256)]
    note("others", len(eaten))


WORDS: dict[str, Callable[[], None]] = {
    "ignore-term": ignore_term,
    "child": child,
    "daemon": lambda: child(apart=True),
    "hidden-child": hidden_child,
    "bare-child": lambda: child(env={}),
    "dump": dump,
    "shout": shout,
    "tick": tick,
    "eat": eat,
}


def note(name: str, pid: int) -> None:
    with Path(name).open("a") as file:
        file.write(f"{pid}\n")


def main() -> None:
    for word in os.environ.get("STUB", "").split():
        if word.startswith("exit="):
            note("ready", os.getpid())
            os._exit(int(word.removeprefix("exit=")))
        WORDS[word]()
    note("ready", os.getpid())
    time.sleep(600)


if __name__ == "__main__":
    main()
