"""`switchboard up` as a process of its own, as a person would start it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

COMMAND = (sys.executable, "-c", "from switchboard.cli import main; main()")
_KEY = re.compile(r"shown only this once: (\S+)")


class Switchboard:
    """What it printed is in `shown`, up to the moment it answered."""

    def __init__(self, folder: Path, port: int, command: Sequence[str] = COMMAND, **settings: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        folder.mkdir(exist_ok=True)
        self._output = folder / "output"
        self._log = folder / "log"
        environment = {
            "PATH": os.defpath,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "DATA_DIR": str(folder / "data"),
            "ORCH_PORT": str(port),
            "TIMEZONE": "UTC",
        }
        with self._output.open("wb") as output, self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "up"], cwd=folder, env=environment | settings, stdout=output, stderr=log
            )

    @property
    def shown(self) -> str:
        return self._output.read_text()

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def api_key(self) -> str | None:
        found = _KEY.search(self.shown)
        return found[1] if found else None

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                if httpx.get(f"{self.url}/health", trust_env=False).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            assert self.process.poll() is None, f"it ended: {self.log}"
            assert time.monotonic() < deadline, f"it does not answer: {self.log}"
            time.sleep(0.02)

    def stop(self) -> float:
        """As an operator does, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.log
        return time.monotonic() - began


@contextmanager
def running(folder: Path, port: int, **settings: str) -> Iterator[Switchboard]:
    switchboard = Switchboard(folder, port, **settings)
    try:
        switchboard.wait_until_it_answers()
        yield switchboard
        if switchboard.process.poll() is None:
            switchboard.stop()
    finally:
        switchboard.process.kill()
        switchboard.process.wait()
