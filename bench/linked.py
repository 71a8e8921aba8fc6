"""Linked accounts as processes, of two kinds that are handled alike: the worker that ships, and the bare script."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.ground import SECRET, now_ms, phone
from bench.hearing import PATIENCE_S, Hearing
from switchboard.demo.simulator import Simulator, SimulatorRefused
from switchboard.runners.base import Handle
from switchboard.runners.node import WorkerProgram, find_node
from switchboard.runners.process import ProcessRunner
from switchboard.runners.spec import worker_spec
from switchboard.web.signatures import worker_secret

BARE = Path(__file__).parent / "bare.mjs"
_QUIET_S = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the accounts of one kind live. Each gets one of the simulator's proxies, in turns."""

    folder: Path
    simulator: Simulator
    hearing: Hearing

    def proxy(self, number: int) -> str:
        urls = self.simulator.proxy_urls
        return urls[number % len(urls)]

    def trust(self) -> dict[str, str]:
        return {"NODE_EXTRA_CA_CERTS": str(self.simulator.ready.ca)}


@dataclass(frozen=True, slots=True)
class Running:
    """`started` is of `time.perf_counter`, just before the process was."""

    who: str
    pid: int
    started: float


class Kind(Protocol):
    place: Place
    first_phone: int

    def who(self, number: int) -> str: ...

    def kept(self, number: int) -> Path:
        """The folder with all that it keeps."""

    async def start(self, number: int) -> Running: ...

    async def stop(self, running: Running) -> None:
        """Returns when it is gone."""

    async def close(self) -> None:
        """Stops all that run."""


class Workers:
    """Started by the process runner, as an installation does."""

    first_phone = 0

    def __init__(
        self, place: Place, webhook_url: str, program: WorkerProgram, environment: Mapping[str, str] | None = None
    ) -> None:
        self.place = place
        self._url = webhook_url
        self._environment = place.trust() | dict(environment or {})
        self._runner = ProcessRunner(
            program.command,
            sessions_dir=place.folder / "sessions",
            run_dir=place.folder / "run",
            log_dir=place.folder / "logs",
            reserved_mb=program.reserved_mb,
            clock=now_ms,
        )
        self._handles: dict[str, Handle] = {}

    def who(self, number: int) -> str:
        return f"worker_{number}"

    def kept(self, number: int) -> Path:
        return self.place.folder / "sessions" / self.who(number)

    async def start(self, number: int) -> Running:
        who = self.who(number)
        spec = worker_spec(
            who,
            1,
            proxy_url=self.place.proxy(number),
            secret=worker_secret(SECRET, who),
            webhook_url=self._url,
            device_name="Switchboard",
        )
        spec = replace(spec, environment={**spec.environment, **self._environment})
        started = time.perf_counter()
        self._handles[who] = handle = await self._runner.start(spec)
        return Running(who, int(handle.data["pid"]), started)

    async def stop(self, running: Running) -> None:
        await self._runner.stop(self._handles.pop(running.who))

    async def close(self) -> None:
        await asyncio.gather(*map(self._runner.stop, self._handles.values()))


class Scripts:
    """Plain `node bare.mjs`, which says on its stdout what happens."""

    first_phone = 1_000_000

    def __init__(self, place: Place) -> None:
        self.place = place
        self._node = find_node().program
        self._processes: dict[str, tuple[asyncio.subprocess.Process, asyncio.Task[None]]] = {}

    def who(self, number: int) -> str:
        return f"bare_{number}"

    def kept(self, number: int) -> Path:
        return self.place.folder / self.who(number)

    async def start(self, number: int) -> Running:
        who, folder = self.who(number), self.kept(number)
        folder.mkdir(parents=True, exist_ok=True)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(self._node, BARE, folder, self.place.proxy(number)),
            env=environment | self.place.trust(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._processes[who] = process, asyncio.create_task(self._listen(who, process))
        return Running(who, process.pid, started)

    async def _listen(self, who: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            what, _, text = line.decode(errors="replace").strip().partition(" ")
            if what in ("QR_CODE", "CONNECTED"):
                await self.place.hearing.note(who, what, text)

    async def stop(self, running: Running) -> None:
        process, listening = self._processes.pop(running.who)
        process.terminate()
        await process.wait()
        await listening

    async def close(self) -> None:
        for process, listening in self._processes.values():
            process.kill()
            await process.wait()
            await listening


async def heard(kind: Kind, running: Running, what: str) -> float:
    """Milliseconds from its start until it said so."""
    word = await kind.place.hearing.first(running.who, what, running.started)
    return (word.at - running.started) * 1000


async def link(kind: Kind, number: int) -> float:
    """Starts it, scans its code, and stops it when it is linked: milliseconds until it showed the code."""
    running = await kind.start(number)
    shown = await heard(kind, running, "QR_CODE")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            qr = kind.place.hearing.newest(running.who, "QR_CODE")
            await kind.place.simulator.scan(qr, phone(kind.first_phone + number))
            break
        except SimulatorRefused:  # it shows the next code by now
            assert time.monotonic() < deadline, f"{running.who} can't be linked"
            await asyncio.sleep(0.1)
    await heard(kind, running, "CONNECTED")
    await put_away(kind, number, running)
    return shown


async def put_away(kind: Kind, number: int, running: Running) -> None:
    """Stops it when nothing in its folder has changed for a second: the script would leave files half written."""
    while time.time() - _changed_at(kind.kept(number)) < _QUIET_S:
        await asyncio.sleep(0.1)
    await kind.stop(running)


def _changed_at(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in folder.iterdir())
    except FileNotFoundError:  # a key that was used up meanwhile
        return time.time()
