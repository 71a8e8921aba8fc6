"""The figures as pictures, for people who would rather look."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot

_OURS, _BARE = "#6366f1", "#cbd5e1"


def draw(results: Mapping[str, float], folder: Path) -> None:
    _side_by_side(results, folder / "throughput.svg")
    _by_accounts(results, folder / "handover.svg")
    _linked_accounts(results, folder / "workers.svg")


def _side_by_side(results: Mapping[str, float], path: Path) -> None:
    """Each of our rates beside the bare thing it is built on."""
    pairs = (
        ("POST /send\nbeside a no-op", "send_per_s", "noop_per_s"),
        ("batch rows\nbeside raw writes", "batch_per_s", "raw_per_s"),
        ("full cycles\nbeside EVALSHA", "cycles_per_s", "evalsha_per_s"),
    )
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.2))
    for axis, (title, ours, bare) in zip(axes, pairs, strict=True):
        bars = axis.bar(["bare", "Switchboard"], [results[bare], results[ours]], color=[_BARE, _OURS])
        axis.bar_label(bars, fmt="{:,.0f}")
        axis.set_title(f"{title}: {results[ours] / results[bare]:.0%}", fontsize=10)
        axis.set_ylabel("per second")
        axis.margins(y=0.15)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _by_accounts(results: Mapping[str, float], path: Path) -> None:
    """The cost of a hand-over does not grow with the number of accounts."""
    sizes = [10, 100, 1_000, 10_000]
    figure, axis = pyplot.subplots(figsize=(6, 3.2))
    axis.plot(sizes, [results[f"handover_us_{size}"] for size in sizes], marker="o", color=_OURS)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("accounts")
    axis.set_ylabel("µs a hand-over")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _linked_accounts(results: Mapping[str, float], path: Path) -> None:
    """An idle worker beside the library's bare script: memory with what is shared, and how soon it is connected."""
    panels = (
        ("memory of an idle account", "pss_mb", "MB (PSS)"),
        ("start to QR code", "qr_single_p50_ms", "ms (p50)"),
        ("start to connected", "open_single_p50_ms", "ms (p50)"),
    )
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.2))
    for axis, (title, what, unit) in zip(axes, panels, strict=True):
        values = [results[f"bare_{what}"], results[f"worker_{what}"]]
        axis.bar_label(axis.bar(["bare", "worker"], values, color=[_BARE, _OURS]), fmt="{:,.0f}")
        axis.set_title(title, fontsize=10)
        axis.set_ylabel(unit)
        axis.margins(y=0.15)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
