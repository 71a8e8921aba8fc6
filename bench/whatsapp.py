"""Linked accounts: the worker that ships beside the library's bare script, all behind the simulator's proxies.

Memory is reported from the run in which both kinds are up at the same time, so that what they share is shared alike;
the same of each kind alone is beside it. Times count from the start of the process.
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import mean

from bench.desk import desk
from bench.footprint import Footprint, footprint, steady
from bench.ground import percentile
from bench.hearing import Hearing
from bench.linked import Kind, Place, Running, Scripts, Workers, heard, link, put_away
from switchboard.demo.simulator import Simulator
from switchboard.runners.node import default_worker, find_node

PROXIES = 4
ACCOUNTS = 10
CROWD = 200
IDLE_S = 40
"""From the last connection until memory is looked at: the second PING is through, and so is the library's own."""
CROWD_SCRIPT = Path(__file__).parent / "crowd.mjs"


async def measure(accounts: int = ACCOUNTS) -> dict[str, float]:
    """`accounts` of each kind side by side, and twice as many of one kind alone."""
    both, many = range(accounts), range(2 * accounts)
    results: dict[str, float] = {}
    async with _kinds() as (workers, scripts):
        kinds: dict[str, Kind] = {"worker": workers, "bare": scripts}
        results |= _times("qr_single", await _linked(kinds, many))
        results |= _times("open_single", await _resumed_in_turns(kinds, many))
        fresh = range(len(many), 2 * len(many))
        results |= _times("qr_at_once", {name: await _codes_at_once(kind, fresh) for name, kind in kinds.items()})
        alone = {name: await _alone(kind, many) for name, kind in kinds.items()}
        results |= _times("open_at_once", {name: opened for name, (opened, _) in alone.items()})
        for name, (_, seen) in alone.items():
            results |= _sizes(f"{name}_alone", seen)
        for name, seen in (await _side_by_side(kinds, both)).items():
            results |= _sizes(name, seen)
    results["worker_to_bare_pss"] = results["worker_pss_mb"] / results["bare_pss_mb"]
    results["worker_to_bare_pss_alone"] = results["worker_alone_pss_mb"] / results["bare_alone_pss_mb"]
    return results | await _simulator_with(CROWD)


@asynccontextmanager
async def _kinds() -> AsyncIterator[tuple[Workers, Scripts]]:
    hearing = Hearing()
    with tempfile.TemporaryDirectory(prefix="sb-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with _simulator(folder) as simulator, desk(hearing) as url:
            workers = Workers(Place(folder / "workers", simulator, hearing), url, default_worker())
            scripts = Scripts(Place(folder / "bare", simulator, hearing))
            try:
                yield workers, scripts
            finally:
                await workers.close()
                await scripts.close()


class _Simulator(Simulator):
    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


@asynccontextmanager
async def _simulator(folder: Path) -> AsyncIterator[_Simulator]:
    simulator = _Simulator(folder / "whatsapp", [f"me:pw{n}" for n in range(PROXIES)])
    await simulator.start()
    try:
        yield simulator
    finally:
        await simulator.stop()


# --- one at a time, both kinds in turns ---


async def _linked(kinds: dict[str, Kind], numbers: Sequence[int]) -> dict[str, list[float]]:
    """Links them all: milliseconds until each showed its code."""
    shown: dict[str, list[float]] = {name: [] for name in kinds}
    for number, (name, kind) in itertools.product(numbers, kinds.items()):
        shown[name].append(await link(kind, number))
    return shown


async def _resumed_in_turns(kinds: dict[str, Kind], numbers: Sequence[int]) -> dict[str, list[float]]:
    opened: dict[str, list[float]] = {name: [] for name in kinds}
    for number, (name, kind) in itertools.product(numbers, kinds.items()):
        running = await kind.start(number)
        opened[name].append(await heard(kind, running, "CONNECTED"))
        await put_away(kind, number, running)
    return opened


# --- all at once ---


async def _started(kind: Kind, numbers: Sequence[int], until: str) -> tuple[list[Running], list[float]]:
    running = [await kind.start(number) for number in numbers]
    return running, await asyncio.gather(*(heard(kind, one, until) for one in running))


async def _stopped(kind: Kind, running: Sequence[Running]) -> None:
    await asyncio.gather(*map(kind.stop, running))


async def _codes_at_once(kind: Kind, fresh: Sequence[int]) -> list[float]:
    running, shown = await _started(kind, fresh, "QR_CODE")
    await _stopped(kind, running)
    return shown


async def _alone(kind: Kind, numbers: Sequence[int]) -> tuple[list[float], list[Footprint]]:
    running, opened = await _started(kind, numbers, "CONNECTED")
    await asyncio.sleep(IDLE_S)
    seen = await steady([one.pid for one in running])
    await _stopped(kind, running)
    return opened, seen


async def _side_by_side(kinds: dict[str, Kind], numbers: Sequence[int]) -> dict[str, list[Footprint]]:
    running = {name: (await _started(kind, numbers, "CONNECTED"))[0] for name, kind in kinds.items()}
    await asyncio.sleep(IDLE_S)
    seen = await steady([one.pid for group in running.values() for one in group])
    for name, kind in kinds.items():
        await _stopped(kind, running[name])
    rest = iter(seen)
    return {name: [next(rest) for _ in numbers] for name in kinds}


# --- the simulator ---


async def _simulator_with(accounts: int) -> dict[str, float]:
    """Its memory before and with that many linked and connected accounts."""
    with tempfile.TemporaryDirectory(prefix="sb-bench-") as folder:
        async with _simulator(Path(folder)) as simulator:
            empty = footprint(simulator.pid)
            where = (str(simulator.ready.control), simulator.proxy_urls[0], str(accounts))
            crowd = await asyncio.create_subprocess_exec(
                *(find_node().program, CROWD_SCRIPT, *where),
                env={"NODE_EXTRA_CA_CERTS": str(simulator.ready.ca)},
                stdout=asyncio.subprocess.PIPE,
            )
            try:
                assert crowd.stdout is not None
                assert await crowd.stdout.readline() == b"CONNECTED\n"
                [full] = await steady([simulator.pid])
            finally:
                crowd.kill()
                await crowd.wait()
    return {"simulator_mb": empty.rss, f"simulator_{accounts}_mb": full.rss}


# --- figures ---


def _times(what: str, taken: dict[str, list[float]]) -> dict[str, float]:
    return {
        f"{name}_{what}_{point}_ms": value
        for name, times in taken.items()
        for point, value in (("p50", percentile(times, 0.5)), ("max", max(times)))
    }


def _sizes(name: str, seen: Sequence[Footprint]) -> dict[str, float]:
    rss, pss = [one.rss for one in seen], [one.pss for one in seen]
    return {
        f"{name}_rss_mb": mean(rss),
        f"{name}_rss_min_mb": min(rss),
        f"{name}_rss_max_mb": max(rss),
        f"{name}_pss_mb": mean(pss),
        f"{name}_pss_min_mb": min(pss),
        f"{name}_pss_max_mb": max(pss),
        f"{name}_private_mb": mean(one.private for one in seen),
    }
