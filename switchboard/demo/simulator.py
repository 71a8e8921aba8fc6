"""The simulated WhatsApp as a process of ours: started, known by what it says when it is ready, and ended with us.

Knows how to reach its controls. What the people in it do is decided by whoever uses this.
"""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from switchboard.runners.node import ROOT, find_node

MAIN = ROOT / "simulator" / "dist" / "src" / "main.js"
_READY_S = 30
_GRACE_S = 5
_PATIENCE_S = 20


class SimulatorFailed(Exception):
    """It did not start, or ended. The message is a sentence for the person at the terminal."""


class SimulatorRefused(Exception):
    """It can't do what it was asked for, in its own words."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Where everything is, as the simulator says it itself."""

    whatsapp: int
    control: int
    ca: Path
    proxies: tuple[int, ...]

    @classmethod
    def parse(cls, line: str) -> "Ready":
        said = json.loads(line)
        doors = sorted(said["proxies"], key=lambda proxy: int(proxy["n"]))
        return cls(said["whatsapp"], said["control"], Path(said["ca"]), tuple(int(door["port"]) for door in doors))

    def ports(self) -> list[int]:
        """All of them, to be asked for again."""
        return [self.whatsapp, self.control, *self.proxies]


class Simulator:
    """`logins` are `user:password`, one for each proxy. A start after an end finds its data and its ports again."""

    def __init__(
        self, data: Path, logins: Sequence[str], options: Sequence[str] = (), *, ports: Sequence[int] | None = None
    ) -> None:
        self.data = data
        self._ports = ports
        self.logins = logins
        self._options = options
        self._ready: Ready | None = None
        self._process: subprocess.Popen[str] | None = None
        self._http: httpx.AsyncClient | None = None

    @property
    def ready(self) -> Ready:
        if self._ready is None:
            raise SimulatorFailed("The simulator was not started.")
        return self._ready

    @property
    def proxy_urls(self) -> list[str]:
        ports = self.ready.proxies
        return [f"socks5h://{login}@127.0.0.1:{port}" for login, port in zip(self.logins, ports, strict=True)]

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # --- its life ---

    async def start(self) -> Ready:
        """Returns once it takes connections."""
        if not MAIN.is_file():
            raise SimulatorFailed(f"{MAIN} is not there: `make node` builds it.")
        self.data.mkdir(parents=True, exist_ok=True)
        command = [find_node().program, str(MAIN), "serve", *self.arguments()]
        with (self.data / "simulator.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program; starting it takes no time
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for us
            )
        try:
            self._ready = Ready.parse(await asyncio.wait_for(asyncio.to_thread(self._first_line), _READY_S))
        except (TimeoutError, ValueError, KeyError) as error:
            self.kill()
            raise SimulatorFailed(f"The simulator did not start; see {self.data / 'simulator.log'}.") from error
        self._ports = self._ready.ports()
        url = f"http://127.0.0.1:{self._ready.control}"
        self._http = httpx.AsyncClient(base_url=url, timeout=_PATIENCE_S, trust_env=False)
        return self._ready

    def arguments(self) -> list[str]:
        """Its pipe is its life line: it ends when we do, however that happens."""
        given = ["--data", str(self.data), "--until-stdin-closes", *self._options]
        for login in self.logins:
            given += ["--proxy", login]
        if self._ports is not None:
            whatsapp, control, *proxies = self._ports
            given += ["--port", str(whatsapp), "--control-port", str(control)]
            for port in proxies:
                given += ["--proxy-port", str(port)]
        return given

    def _first_line(self) -> str:
        stdout = self._process.stdout if self._process else None
        return stdout.readline() if stdout else ""

    async def stop(self) -> None:
        """In order, so that its data is on the disk; then with force."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _GRACE_S)
        self.kill()
        if self._http is not None:
            await self._http.aclose()

    def kill(self) -> None:
        """Now. It is gone when this returns."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process = None

    # --- its controls ---

    async def ask(self, method: str, path: str, body: object = None, **query: str) -> Any:
        if self._http is None:
            raise SimulatorFailed("The simulator was not started.")
        try:
            answer = await self._http.request(method, path, json=body, params=query)
        except httpx.TransportError as error:
            raise SimulatorFailed(f"The simulator does not answer; see {self.data / 'simulator.log'}.") from error
        if not answer.is_success:
            raise SimulatorRefused(_said(answer))
        return answer.json() if answer.content else None

    async def scan(self, qr: str, phone: str, name: str | None = None) -> None:
        """The owner of `phone` scans the code with it."""
        await self.ask("POST", "/scan", {"qr": qr, "phone": phone} | ({"name": name} if name else {}))


def _said(answer: httpx.Response) -> str:
    with suppress(ValueError):
        said = answer.json()
        if isinstance(said, dict):
            return str(said.get("message") or said.get("error") or answer.text)
    return f"HTTP {answer.status_code} {answer.text}"
