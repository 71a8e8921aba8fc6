"""Looks at everything that must be well, once, whenever someone asks. What counts as well is in the domain."""

import os
import platform
import resource
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import switchboard
from switchboard.domain import condition
from switchboard.domain.clock import Clock
from switchboard.domain.condition import Finding, Mark
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.hours import MINUTE_MS
from switchboard.orchestrator.overview import Overview
from switchboard.orchestrator.proxy_care import inventory_of
from switchboard.runners.base import Runner, RunnerUnavailable
from switchboard.store import Store
from switchboard.store.health import StoreHealth


@dataclass(frozen=True, slots=True)
class ConditionRules:
    """Where the data is, what runs in this process, and when free places are few."""

    data_dir: Path
    parts: Sequence[str]
    low_places: int = 2
    allow_direct: bool = False


@dataclass(frozen=True, slots=True)
class HealthReport:
    """By what they are about, in the order to read them."""

    groups: Sequence[tuple[str, Sequence[Finding]]]

    @property
    def findings(self) -> list[Finding]:
        return [finding for _, group in self.groups for finding in group]

    @property
    def worst(self) -> Mark:
        return condition.worst(self.findings)


class Condition:
    def __init__(
        self,
        store: Store,
        overview: Overview,
        runner: Runner,
        leading: Callable[[], bool],
        rules: ConditionRules,
        clock: Clock,
    ) -> None:
        self._store = store
        self._overview = overview
        self._runner = runner
        self._leading = leading
        self._rules = rules
        self._clock = clock
        self._began = clock()

    async def report(self) -> HealthReport:
        """While the store is away: what can be told without it."""
        try:
            health = await self._store.health.look(self._clock())
            groups = [
                ("work", [*await self._loops(health), await self._workers()]),
                ("fleet", await self._fleet()),
                ("store", _store(health)),
                ("machine", [condition.clocks(self._clock() - health.at), *self._machine()]),
            ]
        except StoreUnavailable:
            groups = [("store", [condition.store_answers(None)]), ("machine", self._machine())]
        return HealthReport(groups)

    async def _loops(self, health: StoreHealth) -> list[Finding]:
        now = self._clock()
        samples = await self._store.samples.since(now - 60 * MINUTE_MS)
        age = now - samples[-1].at if samples else None
        return [
            condition.leads(self._leading()),
            condition.dispatched(health.late_ms),
            condition.sampled(age, now - self._began),
        ]

    async def _workers(self) -> Finding:
        try:
            running = [one for one in await self._runner.list() if one.running]
        except RunnerUnavailable:
            return condition.workers(None, 0)
        return condition.workers(len(running), sum(one.memory_bytes or 0 for one in running))

    async def _fleet(self) -> list[Finding]:
        figures = await self._overview.figures()
        pool = inventory_of(await self._store.proxies.all())
        low, direct = self._rules.low_places, self._rules.allow_direct
        return [
            condition.sessions(figures.connected, figures.total, figures.attention),
            condition.proxies(pool.proxies, pool.bad, pool.free, low, direct),
            condition.senders(figures.jobs, figures.connected),
        ]

    def _machine(self) -> list[Finding]:
        usage = shutil.disk_usage(_existing(self._rules.data_dir))
        told: dict[str, int | str] = {
            "up_ms": self._clock() - self._began,
            "memory_bytes": _memory(),
            "version": switchboard.__version__,
            "python": platform.python_version(),
        }
        return [
            condition.disk(usage.free, usage.total),
            Finding("process", "runs", Mark.OK, told),
            Finding("parts", "are", Mark.OK, {"names": ", ".join(self._rules.parts)}),
        ]


def _store(health: StoreHealth) -> list[Finding]:
    told: dict[str, int | str] = {"name": health.name, "version": health.version, "up_ms": health.up_ms}
    return [
        condition.store_answers(health.took_ms),
        condition.store_memory(health.used_bytes, health.most_bytes, health.evicts),
        condition.store_writes(health.keeps, health.written),
        *([condition.store_rewrite(health.rewritten, health.file_bytes)] if health.keeps else []),
        condition.store_clients(health.clients, health.most_clients),
        Finding("server", "is", Mark.OK, told),
    ]


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _memory() -> int:
    """What this process holds now; where that can't be told, the most it ever held."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
