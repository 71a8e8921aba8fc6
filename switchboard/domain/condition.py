"""Whether things are as they should be: for each one a mark, a word for how it is, and the figures behind it.

The words are few and fixed; what they mean to a person, and what to do then, is said where they are shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_SLOW_MS, _VERY_SLOW_MS = 100, 1_000
_DISK_SHARE, _DISK_BYTES = 0.10, 1_000_000_000
_DISK_SHARE_BAD, _DISK_BYTES_BAD = 0.02, 200_000_000
_MEMORY_SHARE, _MEMORY_SHARE_BAD = 0.75, 0.90
_CLIENTS_SHARE = 0.80
_LATE_MS, _VERY_LATE_MS = 15_000, 60_000
_SAMPLE_MS, _SAMPLE_BAD_MS = 150_000, 600_000
_APART_MS, _FAR_APART_MS = 2_000, 30_000


class Mark(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """`about` what, and in a `word` how it is. A figure's ending says its unit: `_ms`, `_bytes`, else a plain one."""

    about: str
    word: str
    mark: Mark = Mark.OK
    figures: Mapping[str, int | str] = field(default_factory=dict)


def worst(findings: Iterable[Finding]) -> Mark:
    marks = {finding.mark for finding in findings}
    return next((mark for mark in (Mark.BAD, Mark.WARN) if mark in marks), Mark.OK)


# --- the store ---------------------------------------------------------------------------------------------------


def store_answers(took_ms: int | None) -> Finding:
    """None: it did not."""
    if took_ms is None:
        return Finding("store", "away", Mark.BAD)
    mark = _above(took_ms, _SLOW_MS, _VERY_SLOW_MS)
    return Finding("store", "slow" if mark is not Mark.OK else "answers", mark, {"took_ms": took_ms})


def store_memory(used: int, most: int, evicts: bool) -> Finding:
    """`most` is 0 without a limit. A store that makes room by itself throws away messages that were accepted."""
    if most and evicts:
        return Finding("memory", "evicts", Mark.BAD, {"used_bytes": used, "most_bytes": most})
    if not most:
        return Finding("memory", "unlimited", Mark.OK, {"used_bytes": used})
    mark = _above(used, most * _MEMORY_SHARE, most * _MEMORY_SHARE_BAD)
    word = "full" if mark is not Mark.OK else "fits"
    return Finding("memory", word, mark, {"used_bytes": used, "most_bytes": most})


def store_writes(kept: bool, written: bool) -> Finding:
    """Whether it writes down what it is told, and whether it could the last time."""
    if not kept:
        return Finding("writes", "off", Mark.WARN)
    return Finding("writes", "good") if written else Finding("writes", "failed", Mark.BAD)


def store_rewrite(good: bool, size: int) -> Finding:
    figures = {"size_bytes": size}
    return Finding("rewrite", "good", Mark.OK, figures) if good else Finding("rewrite", "failed", Mark.WARN, figures)


def store_clients(count: int, most: int) -> Finding:
    """`most` is 0 where the store does not say."""
    crowded = bool(most) and count >= most * _CLIENTS_SHARE
    figures = {"count": count, "most": most}
    return Finding("clients", "crowded" if crowded else "room", Mark.WARN if crowded else Mark.OK, figures)


# --- the machine and this process --------------------------------------------------------------------------------


def disk(free: int, whole: int) -> Finding:
    figures = {"free_bytes": free, "whole_bytes": whole}
    if free < whole * _DISK_SHARE_BAD or free < _DISK_BYTES_BAD:
        return Finding("disk", "full", Mark.BAD, figures)
    if free < whole * _DISK_SHARE or free < _DISK_BYTES:
        return Finding("disk", "low", Mark.WARN, figures)
    return Finding("disk", "room", Mark.OK, figures)


def clocks(apart_ms: int) -> Finding:
    """How far this machine's clock is from the store's."""
    mark = _above(abs(apart_ms), _APART_MS, _FAR_APART_MS)
    return Finding("clock", "agrees" if mark is Mark.OK else "apart", mark, {"apart_ms": abs(apart_ms)})


# --- the work ----------------------------------------------------------------------------------------------------


def leads(leading: bool) -> Finding:
    return Finding("leader", "here") if leading else Finding("leader", "elsewhere", Mark.WARN)


def dispatched(late_ms: int) -> Finding:
    """For how long something has been due that no dispatcher looked at. They never leave it for long."""
    mark = _above(late_ms, _LATE_MS, _VERY_LATE_MS)
    return Finding("dispatcher", "on_time" if mark is Mark.OK else "late", mark, {"late_ms": late_ms})


def sampled(age_ms: int | None, up_ms: int) -> Finding:
    """None: there is no sample. One who has just begun has none to show, and that is fine."""
    if age_ms is None or age_ms > _SAMPLE_MS:
        if up_ms < _SAMPLE_MS:
            return Finding("sampler", "begins")
        if age_ms is None:
            return Finding("sampler", "none", Mark.BAD)
        return Finding("sampler", "old", _above(age_ms, _SAMPLE_MS, _SAMPLE_BAD_MS), {"age_ms": age_ms})
    return Finding("sampler", "fresh", Mark.OK, {"age_ms": max(0, age_ms)})


def workers(running: int | None, memory: int) -> Finding:
    """None: what runs them can't be asked."""
    if running is None:
        return Finding("workers", "unknown", Mark.BAD)
    return Finding("workers", "run" if running else "none", Mark.OK, {"n": running, "memory_bytes": memory})


# --- the fleet ---------------------------------------------------------------------------------------------------


def sessions(connected: int, total: int, attention: int) -> Finding:
    figures = {"connected": connected, "total": total, "n": attention}
    if total and not connected:
        return Finding("sessions", "none_connected", Mark.BAD, figures)
    if attention:
        return Finding("sessions", "attention", Mark.WARN, figures)
    return Finding("sessions", "well" if total else "none", Mark.OK, figures)


def proxies(total: int, bad: int, free: int, low: int, direct: bool) -> Finding:
    """`direct`: sessions may do without one. Free places below `low` are few."""
    figures = {"working": total - bad, "total": total, "free": free}
    if not total:
        return Finding("proxies", "direct" if direct else "none", Mark.WARN)
    if bad == total:
        return Finding("proxies", "all_bad", Mark.BAD, figures)
    if bad:
        return Finding("proxies", "some_bad", Mark.WARN, figures)
    return Finding("proxies", "few", Mark.WARN, figures) if free < low else Finding("proxies", "work", Mark.OK, figures)


def senders(jobs: int, connected: int) -> Finding:
    """Messages that any number may send, and none does."""
    if not jobs:
        return Finding("senders", "none")
    return Finding("senders", "moving" if connected else "stuck", Mark.OK if connected else Mark.WARN, {"n": jobs})


def _above(value: float, warn: float, bad: float) -> Mark:
    return Mark.BAD if value > bad else Mark.WARN if value > warn else Mark.OK
