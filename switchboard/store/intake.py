"""Accepting messages: the one script call that checks, dedupes and enqueues any number of requests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from switchboard.domain.accounts import Account, Profile
from switchboard.store.scripts import Scripts
from switchboard.store.views import account_view, profile_of


@dataclass(frozen=True, slots=True)
class Row:
    """One message to accept. `due` 0 means now; fractions of a millisecond keep the order of a batch."""

    id: str
    to: str
    text: str
    priority: int = 1
    due: float = 0
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One request: its sender, the guard that was computed for it, and its rows."""

    rows: Sequence[Row]
    session: str | None = None
    phone: str | None = None
    revision: int = -1
    daily: int = 0
    burst: int = 0
    deferrable: bool = False
    rate: tuple[str, int] | None = None  # API key id, calls a minute
    idempotency: tuple[str, str] | None = None  # key, digest of the body
    batch: tuple[str, int] | None = None  # id, spread in ms


class Refusal(StrEnum):
    RATE_LIMITED = "RATE_LIMITED"
    CONFLICT = "CONFLICT"
    NOT_FOUND = "NOT_FOUND"
    NOT_LINKED = "NOT_LINKED"
    MISMATCH = "MISMATCH"
    OPTED_OUT = "OPTED_OUT"
    DAILY_LIMIT = "DAILY_LIMIT"
    QUEUE_FULL = "QUEUE_FULL"


@dataclass(frozen=True, slots=True)
class Accepted:
    """`position` is None while scheduled; `account` is None until a sender is chosen.

    A repeated request gets the very value that the first one got.
    """

    message_id: str
    position: int | None
    account: Account | None
    at: int


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Refusal
    rows: tuple[int, ...] = ()
    sent: int = 0
    resets_at: int = 0


@dataclass(frozen=True, slots=True)
class Stale:
    """The guard was computed from an older profile; here is the current one."""

    profile: Profile


Result = Accepted | Refused | Stale


@dataclass(frozen=True, slots=True)
class IntakeRules:
    room: int = 1000
    idempotency_s: int = 24 * 3600
    burst_ms: int = 600_000


class Intake:
    def __init__(self, scripts: Scripts, rules: IntakeRules, default_zone: ZoneInfo) -> None:
        self._scripts = scripts
        self._rules = rules
        self._zone = default_zone

    async def enqueue(self, entries: Sequence[Entry], now: int) -> list[Result]:
        rules = self._rules
        call = {
            "now": now,
            "room": rules.room,
            "windows": {"idempotencyS": rules.idempotency_s, "burstMs": rules.burst_ms},
            "entries": [_written(entry) for entry in entries],
        }
        (answers,) = await self._scripts.run_together([("enqueue", (json.dumps(call),))])
        return [self._read(answer) for answer in answers]

    def _read(self, answer: list[Any]) -> Result:
        match answer[0]:
            case "OK":
                return self._accepted(answer)
            case "REPLAY":
                return self._accepted(json.loads(answer[1]))
            case "STALE":
                _, revision, first, zone, overrides, phone = answer
                return Stale(profile_of(phone, int(revision), int(first), zone, overrides, self._zone))
            case "OPTED_OUT":
                return Refused(Refusal.OPTED_OUT, rows=tuple(answer[1:]))
            case "DAILY_LIMIT":
                return Refused(Refusal.DAILY_LIMIT, sent=int(answer[1]), resets_at=int(answer[2]))
            case reason:
                return Refused(Refusal(reason))

    def _accepted(self, answer: list[Any]) -> Accepted:
        _, message_id, position, scheduled, view, at = answer
        account = account_view(view, self._zone).account if view else None
        return Accepted(message_id, None if scheduled else int(position), account, int(at))


def _written(entry: Entry) -> dict[str, Any]:
    return {
        "session": entry.session,
        "phone": entry.phone,
        "rev": entry.revision,
        "daily": entry.daily,
        "burst": entry.burst,
        "deferrable": entry.deferrable,
        "rate": entry.rate,
        "idem": entry.idempotency,
        "batch": entry.batch,
        "rows": [(r.id, r.to, r.text, r.priority, r.due, r.reference) for r in entry.rows],
    }
