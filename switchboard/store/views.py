"""From what the scripts return to the domain's values. The order of fields is that of lua/lib/accounts.lua."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from switchboard.domain.accounts import Account, Head, InFlight, Profile
from switchboard.domain.hours import Hours
from switchboard.domain.messages import Message, Place, Status, Waiting
from switchboard.domain.sessions import Order, Session, State, Wanted
from switchboard.domain.trust import Overrides


@dataclass(frozen=True, slots=True)
class AccountView:
    """One consistent look at an account, with the message in flight or else the head of its queue."""

    account: Account
    in_flight: InFlight | None
    head: Head | None


@lru_cache(maxsize=20_000)
def profile_of(phone: str, revision: int, first: int, zone: str, overrides: str, default: ZoneInfo) -> Profile:
    """Cached by all of its inputs: an account that did not change is parsed once."""
    return Profile(phone, revision, first, ZoneInfo(zone) if zone else default, zone != "", read_overrides(overrides))


def account_view(raw: Sequence[Any], default_zone: ZoneInfo) -> AccountView:
    (phone, revision, epoch, first, zone, overrides, paused, restricted, not_before, day_ends, day_count,
     burst_until, waiting, connected, recent, flight, head, pause_reason) = raw  # fmt: skip
    account = Account(
        profile=profile_of(phone, int(revision), int(first), zone, overrides, default_zone),
        epoch=int(epoch),
        connected=tuple(sorted(connected)),
        paused_until=int(paused),
        pause_reason=pause_reason,
        restricted_until=int(restricted),
        not_before=int(not_before),
        day_ends_at=int(day_ends),
        day_count=int(day_count),
        recent=tuple(map(int, recent)),
        burst_until=int(burst_until),
        waiting=int(waiting),
    )
    return AccountView(account, _in_flight(flight), _head(head))


def _in_flight(raw: Sequence[str]) -> InFlight | None:
    if not raw:
        return None
    message_id, lease_until, claimed, attempts, failures, unknown = raw
    return InFlight(message_id, int(lease_until), claimed != "", int(attempts), int(failures), unknown == "1")


def _head(raw: Sequence[str]) -> Head | None:
    if not raw:
        return None
    message_id, to, session, attempts, day_ends, count = raw
    return Head(message_id, to, session or None, attempts == "0", int(day_ends), int(count))


def message_of(message_id: str, raw: Mapping[str, str]) -> Message:
    def moment(field: str) -> int | None:
        return int(raw[field]) if field in raw else None

    return Message(
        id=message_id,
        to=raw["to"],
        text=raw["text"],
        status=Status(raw["status"]),
        place=Place(raw["place"]),
        priority=int(raw["priority"]),
        created_at=int(raw["created"]),
        account=raw.get("account"),
        session=raw.get("session"),
        reference=raw.get("reference"),
        batch=raw.get("batch"),
        attempts=int(raw.get("attempts", 0)),
        failures=int(raw.get("failures", 0)),
        unknown=raw.get("unknown") == "1",
        due=moment("due"),
        scheduled_for=moment("scheduledFor"),
        handed_at=moment("handed"),
        sent_at=moment("sentAt"),
        delivered_at=moment("deliveredAt"),
        read_at=moment("readAt"),
        error=raw.get("error"),
        wait_reason=Waiting(raw["waitReason"]) if "waitReason" in raw else None,
    )


def order_of(raw: Mapping[str, str | None]) -> Order | None:
    if not raw.get("order"):
        return None
    return Order(
        int(raw["order"] or 0), raw["orderKind"] or "", int(raw["orderBy"] or 0), raw.get("orderPhone") or None
    )


def session_of(session: str, raw: Mapping[str, str]) -> Session:
    def moment(field: str) -> int | None:
        return int(raw[field]) if raw.get(field) else None

    return Session(
        id=session,
        state=State(raw["status"]),
        created_at=int(raw["createdAt"]),
        name=raw.get("name") or None,
        device=raw.get("device", ""),
        phone=raw.get("phone"),
        declared=raw.get("declared"),
        linked="linked" in raw,
        reason=raw.get("reason") or None,
        wanted=Wanted(raw["wanted"]) if "wanted" in raw else None,
        generation=int(raw.get("generation", 0)),
        launched=moment("launched"),
        proxy=raw.get("proxy"),
        bound_at=int(raw.get("boundAt", 0)),
        connected_at=moment("connectedAt"),
        last_ping=moment("lastPing"),
        started_at=int(raw.get("startedAt", 0)),
        not_before=int(raw.get("notBefore", 0)),
        ends=tuple(map(int, filter(None, raw.get("ends", "").split(",")))),
        silences=int(raw.get("silences", 0)),
        misses=int(raw.get("misses", 0)),
        told=raw.get("told"),
        scan_by=moment("scanBy"),
        aside="aside" in raw,
        order=order_of(raw),
        handle=raw.get("handle"),
    )


def pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def read_overrides(text: str) -> Overrides:
    if not text:
        return Overrides()
    given = json.loads(text)
    if "hours" in given:
        given["hours"] = Hours.parse(given["hours"])
    return Overrides(**given)


def write_overrides(overrides: Overrides) -> str:
    given = {name: value for name, value in asdict(overrides).items() if value is not None}
    if overrides.hours is not None:
        given["hours"] = str(overrides.hours)
    return json.dumps(given) if given else ""
