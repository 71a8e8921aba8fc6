"""Real processes under one roof: started, killed, started again, and in any case gone at the end.

Knows nothing of what they do. A process that ends without having been killed is remembered as fallen.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_BELOW_EPHEMERAL = range(20_000, 32_000)
_TAIL = 2_000


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `kind` is what several of them have in common."""

    name: str
    kind: str
    command: Sequence[str]
    env: Mapping[str, str]


class Processes:
    """Each runs in a session of its own, in `folder`, and writes to `<name>.log` there."""

    def __init__(self, folder: Path) -> None:
        self.kills: Counter[str] = Counter()
        self.fallen: list[str] = []
        self._folder = folder
        self._programs: dict[str, Program] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self._end(name)

    @property
    def programs(self) -> list[Program]:
        return list(self._programs.values())

    def start(self, program: Program) -> None:
        self._programs[program.name] = program
        with self._log(program.name).open("ab") as output:
            self._running[program.name] = subprocess.Popen(
                program.command,
                cwd=self._folder,
                env=dict(program.env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def kill(self, name: str) -> None:
        """SIGKILL, now. It is gone when this returns."""
        self._end(name)
        self.kills[self._programs[name].kind] += 1

    def restart(self, name: str) -> None:
        self.start(self._programs[name])

    def check(self) -> None:
        """Raise if one of them ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                self._fell(name, process)
        assert not self.fallen, "ended by themselves:\n" + "\n".join(self.fallen)

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        if process.poll() is not None:
            self._fell(name, process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _fell(self, name: str, process: subprocess.Popen[bytes]) -> None:
        last_words = self._log(name).read_text(errors="replace")[-_TAIL:]
        self.fallen.append(f"{name} with code {process.returncode}: …{last_words}")

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def _die_with_parent() -> None:
    """Even if the test run itself is killed, nothing it started lives on."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int, random: Random) -> list[int]:
    """Free now, and never given to an outgoing connection while their server is being restarted."""
    found: list[int] = []
    for port in random.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"there are no {count} free ports")
