"""The dispatcher's side of the store: what is due, what was planned, what waits for a sender."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from switchboard.domain.pacing import Defer, HandOver, Plan, Recall, Wait
from switchboard.store.scripts import Scripts
from switchboard.store.views import AccountView, account_view

TAKE_LEASE_MS = 5_000
"""How long a dispatcher may take to plan what it took, before another one may."""


@dataclass(frozen=True, slots=True)
class PaceRules:
    room: int = 1000
    burst_ms: int = 600_000
    retention_s: int = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Due:
    """Taken accounts, how many scheduled messages were released, and when to look again."""

    accounts: list[AccountView]
    released: int
    next_at: int | None


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what it was made from: the guard of its commit."""

    view: AccountView
    plan: Plan
    spare: int
    burst: int


@dataclass(frozen=True, slots=True)
class Job:
    message_id: str
    to: str
    known: str | None


class Pace:
    def __init__(self, scripts: Scripts, rules: PaceRules, default_zone: ZoneInfo) -> None:
        self._scripts = scripts
        self._rules = rules
        self._zone = default_zone

    async def take(self, now: int, limit: int = 200) -> Due:
        """Release what is due and take the accounts that are, in one round trip."""
        rules = self._rules
        (released, next_release), (next_visit, *views) = await self._scripts.run_together(
            [
                ("release", (now, limit, rules.room, rules.burst_ms, rules.retention_s)),
                ("take", (now, TAKE_LEASE_MS, limit)),
            ]
        )
        moments = [_ceil_ms(moment) for moment in (next_release, next_visit) if moment != ""]
        accounts = [account_view(view, self._zone) for view in views]
        return Due(accounts, int(released), min(moments, default=None))

    async def commit(self, plans: Sequence[Planned], now: int) -> list[str]:
        """Carry out plans; one of OK, STALE, CAPPED, OPTED_OUT for each. What is not OK is planned anew."""
        call = {
            "now": now,
            "room": self._rules.room,
            "retentionS": self._rules.retention_s,
            "plans": [_written(planned) for planned in plans],
        }
        return list(await self._scripts.run("dispatch", json.dumps(call)))

    async def jobs(self, now: int, limit: int = 200, candidates: int = 16) -> tuple[list[Job], list[AccountView]]:
        jobs, views = await self._scripts.run("jobs", now, limit, candidates)
        return (
            [Job(message_id, to, known or None) for message_id, to, known in jobs],
            [account_view(view, self._zone) for view in views],
        )

    async def route(self, choices: Sequence[tuple[str, str]], now: int) -> int:
        """Commit (message, phone) choices; how many were still there to be routed."""
        call = {"now": now, "room": self._rules.room, "choices": list(choices)}
        return int(await self._scripts.run("route", json.dumps(call)))


def _ceil_ms(score: str) -> int:
    return -int(-float(score) // 1)


def _written(planned: Planned) -> dict[str, Any]:
    view = planned.view
    common: dict[str, Any] = {
        "phone": view.account.profile.phone,
        "epoch": view.account.epoch,
        "spare": planned.spare,
        "burst": planned.burst,
        "head": None if view.in_flight else view.head.message_id if view.head else "",
    }
    match planned.plan:
        case HandOver() as plan:
            return common | {
                "kind": "hand",
                "session": plan.session,
                "message": plan.message_id,
                "daily": plan.daily,
                "perMinute": plan.per_minute,
                "day": plan.day,
                "hour": f"{plan.hour:02}",
                "dayEnds": plan.day_ends_at,
                "notBefore": plan.not_before,
                "lease": plan.lease_until,
                "recipientCap": plan.recipient_cap,
                "recipientDayEnds": plan.recipient_day_ends_at,
            }
        case Wait() as plan:
            return common | {"kind": "wait", "at": plan.until or 0}
        case Defer() as plan:
            return common | {
                "kind": "defer",
                "message": plan.message_id,
                "at": plan.until,
                "reason": plan.reason,
            }
        case Recall() as plan:
            return common | {"kind": "recall", "message": plan.message_id}
        case plan:
            raise TypeError(f"{type(plan).__name__} is settled, not committed")
