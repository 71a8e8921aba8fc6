"""`make bench`: runs all of it, prints one table with the bar each figure must clear, writes results and plots."""

import argparse
import importlib
import json
import os
import platform
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from bench.plots import draw
from switchboard.runtime import collect_rarely

RESULTS = Path(__file__).parent / "results"
SUITES = ("send", "batch", "handover", "release", "workers", "whatsapp", "pages")


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio or time that one run must show. `least`: it must be at least that, else at most."""

    figure: str
    says: str
    bound: float
    least: bool

    def holds(self, results: dict[str, float]) -> bool:
        value = results[self.figure]
        return value >= self.bound if self.least else value <= self.bound


BARS = (
    Bar("send_to_noop", "POST /send beside a no-op endpoint of the same server", 0.5, least=True),
    Bar("batch_to_raw", "batch ingest beside raw pipelined writes of the same bytes", 0.4, least=True),
    Bar("handover_10000_to_10", "cost of a hand-over with 10,000 accounts beside 10", 1.3, least=False),
    Bar("late_p99_ms", "release lateness p99 with 10,000 accounts, ms", 100, least=False),
    Bar("claim_p99_ms", "a message reaches one of 500 waiting workers, p99, ms", 50, least=False),
    Bar("ping_to_noop", "PINGs beside a no-op endpoint of the same server", 0.2, least=True),
    Bar("cycles_to_evalsha", "full cycles beside bare EVALSHA round trips", 0.2, least=True),
    Bar("page_slowest_p50_ms", "the slowest page with 1,000 sessions and 100,000 messages, p50, ms", 500, least=False),
    Bar("page_largest_kb", "the largest of those pages, KB", 250, least=False),
    Bar("worker_to_bare_pss", "memory (PSS) of an idle worker beside the library's bare script", 1.15, least=False),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("suites", nargs="*", default=list(SUITES), help=f"some of {', '.join(SUITES)}")
    parser.add_argument("--accounts", type=int, help="whatsapp: of each kind side by side (10), twice as many alone")
    given = parser.parse_args()
    chosen = given.suites
    console = Console(width=110)
    collect_rarely()  # as the product does
    results: dict[str, float] = {}
    for name in chosen:
        console.print(f"… {name}: {importlib.import_module(f'bench.{name}').__doc__}".split("\n")[0])
        started = time.perf_counter()
        measure: Callable[..., Awaitable[dict[str, float]]] = importlib.import_module(f"bench.{name}").measure
        how_many = {"accounts": given.accounts} if name == "whatsapp" and given.accounts else {}
        results |= uvloop.run(_awaited(partial(measure, **how_many)))
        console.print(f"  {time.perf_counter() - started:.0f} s")
    _print(console, results)
    _write(results)
    if set(chosen) == set(SUITES):
        draw(results, RESULTS)
    console.print(f"Written to {os.path.relpath(RESULTS)}/")


async def _awaited(measure: Callable[[], Awaitable[dict[str, float]]]) -> dict[str, float]:
    return await measure()


def _print(console: Console, results: dict[str, float]) -> None:
    table = Table("figure", "value", title="all figures")
    for name, value in results.items():
        table.add_row(name, f"{value:,.2f}" if value < 100 else f"{value:,.0f}")
    console.print(table)
    bars = Table("what", "seen", "bar", "", title="what one run must show")
    for bar in BARS:
        if bar.figure in results:
            sign = "≥" if bar.least else "≤"
            verdict = "[green]holds[/green]" if bar.holds(results) else "[red]MISSED[/red]"
            bars.add_row(bar.says, f"{results[bar.figure]:.2f}", f"{sign} {bar.bound:g}", verdict)
    console.print(bars)


def _write(results: dict[str, float]) -> None:
    RESULTS.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    content = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "on": machine,
        "results": results,
        "bars": [asdict(bar) | {"holds": bar.holds(results)} for bar in BARS if bar.figure in results],
    }
    (RESULTS / "latest.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
