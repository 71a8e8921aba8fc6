"""A past for sessions that have none: figures of some weeks by hour, samples of a week by the minute, states.

Written the way the moves write it (lua/lib/messages.lua, lua/lib/sessions.lua, store/samples.py), only all at once.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any

from switchboard.store.keys import Keys

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
_STATS_S = 90 * 86_400
# How busy an hour is beside the others: shops open at nine, have lunch, and close in the evening.
_BUSY = (0, 0, 0, 0, 0, 0, 0, 2, 5, 9, 10, 9, 6, 7, 9, 10, 9, 8, 6, 4, 2, 1, 0, 0)


class Figures:
    """Counts what became of messages, and writes it down by session, account and fleet: instead of what is there."""

    def __init__(self) -> None:
        self._days: dict[str, Counter[str]] = defaultdict(Counter)

    def count(self, session: str, phone: str, at: int, figure: str, by: int = 1) -> None:
        day, hour = _day_and_hour(at // HOUR_MS)
        self._add(session, phone, day, f"{figure}:{hour}", by)

    def took(self, session: str, phone: str, at: int, ms: int) -> None:
        """From sent to delivered, all of them together."""
        self._add(session, phone, _day_and_hour(at // HOUR_MS)[0], "deliveryMs", ms)

    def _add(self, session: str, phone: str, day: str, field: str, by: int) -> None:
        for scope in (f"session:{session}:{day}", f"account:{phone}:{day}", f"fleet:{day}"):
            self._days[scope][field] += by

    def write(self, pipeline: Any, keys: Keys) -> None:
        for scope, figures in self._days.items():
            pipeline.hset(keys("stats", scope), mapping=figures)
            pipeline.expire(keys("stats", scope), _STATS_S)


@cache
def _day_and_hour(hours: int) -> tuple[str, str]:
    day, hour = datetime.fromtimestamp(hours * HOUR_MS / 1000, UTC).strftime("%Y-%m-%d %H").split()
    return day, hour


def invent_figures(figures: Figures, chance: Random, session: str, phone: str, now: int, days: int = 30) -> None:
    """Of whole hours that are over: a little more each day, less on Saturdays."""
    scale = chance.uniform(0.4, 1.6)
    for at in range(now - days * DAY_MS, now - HOUR_MS, HOUR_MS):
        moment = datetime.fromtimestamp(at / 1000, UTC)
        growth = 0.4 + 0.6 * (at - now + days * DAY_MS) / (days * DAY_MS)
        quiet = 0.3 if moment.weekday() == 5 else 1.0
        sent = round(_BUSY[moment.hour] * scale * growth * quiet * chance.uniform(0.6, 1.4))
        if not sent:
            continue
        delivered = sum(chance.random() < 0.95 for _ in range(sent))
        figures.count(session, phone, at, "sent", sent)
        figures.count(session, phone, at, "delivered", delivered)
        figures.count(session, phone, at, "read", round(delivered * chance.uniform(0.5, 0.8)))
        figures.took(session, phone, at, delivered * chance.randint(800, 2_500))
        if chance.random() < 0.08:
            figures.count(session, phone, at, "failed")


def invent_samples(
    pipeline: Any, keys: Keys, chance: Random, now: int, base: Mapping[str, int], every_ms: int = MINUTE_MS
) -> None:
    """A week of them, around these figures; queues are long by day and empty at night."""
    entries: dict[str, int] = {}
    last = now // MINUTE_MS * MINUTE_MS
    for at in range(last - 7 * DAY_MS + MINUTE_MS, last, every_ms):
        hour = datetime.fromtimestamp(at / 1000, UTC).hour
        busy = _BUSY[hour] / max(_BUSY)
        figures = {
            "waiting": round(base["waiting"] * busy * chance.uniform(0.8, 1.2)),
            "scheduled": round(base["scheduled"] * chance.uniform(0.9, 1.1)),
            "jobs": 0,
            "dead": base["dead"],
            "connected": max(0, base["connected"] - (chance.random() < 0.03)),
            "sessions": base["sessions"],
            "sent": round(base["sent"] * sum(_BUSY[: hour + 1]) / sum(_BUSY)),
        }
        entries[f"{at} {json.dumps(figures, separators=(',', ':'))}"] = at
    if entries:
        pipeline.zadd(keys("samples"), entries)


def write_states(pipeline: Any, keys: Keys, session: str, changes: Sequence[tuple[int, str]]) -> None:
    """Oldest first, before whatever is written down already."""
    for at, state in reversed(changes):
        pipeline.rpush(keys("session_states", session), f"{at} {state}")


def invent_states(chance: Random, now: int, days: int = 30) -> list[tuple[int, str]]:
    """Linked so many days ago, and up since then but for a few short breaks."""
    at = now - days * DAY_MS
    changes = [(at, "starting"), (at + 4_000, "qr_ready"), (at + 31_000, "connected")]
    at += HOUR_MS
    while (at := at + chance.randint(6 * HOUR_MS, 5 * DAY_MS)) < now - 2 * HOUR_MS:
        changes += [(at, "disconnected"), (at + chance.randint(3_000, 40 * MINUTE_MS), "connected")]
    return changes
