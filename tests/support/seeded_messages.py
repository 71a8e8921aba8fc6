"""Messages of a month in every status and place, some of them in batches, with the figures that follow from them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from switchboard.store.keys import Keys
from tests.support import invented
from tests.support.past import DAY_MS, HOUR_MS, MINUTE_MS, Figures

_AT_ONCE = 5_000
_BATCH_ROWS = 500
_PRIORITY_BAND = 10**13
# Of a thousand messages.
_STATUSES = {
    "delivered": 440, "read": 320, "sent": 95, "queued": 60, "scheduled": 45, "failed": 6, "dead": 7, "unconfirmed": 2,
    "cancelled": 25,
}  # fmt: skip
_WAITING = ("queued", "scheduled", "failed")
_ERRORS = {
    "dead": "not_on_whatsapp",
    "unconfirmed": "no_server_ack",
    "failed": "connection_lost",
    "cancelled": "cancelled",
}
Row = dict[str, str | int]


@dataclass(slots=True)
class SeededMessages:
    """Ids, to pick examples from; how many wait, and where."""

    by_status: dict[str, list[str]] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)
    waiting: int = 0
    scheduled: int = 0

    @property
    def dead(self) -> list[str]:
        return self.by_status.get("dead", []) + self.by_status.get("unconfirmed", [])


@dataclass(slots=True)
class Batch:
    """Its totals are those of its rows."""

    ids: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    created: int = 0

    def add(self, message: str, row: Row) -> None:
        self.ids.append(message)
        self.created = int(row["created"])
        self.ends.update(end for end in ("sent", "delivered", "read") if f"{end}At" in row)
        self.ends.update(end for end in ("dead", "unconfirmed", "cancelled") if row["status"] == end)

    def write(self, pipeline: Any, keys: Keys, name: str) -> None:
        fields = {
            "total": len(self.ids),
            "created": self.created,
            "spreadMs": 2 * HOUR_MS,
            "account": "",
            "session": "",
        }
        pipeline.hset(keys("batch", name), mapping=fields | self.ends)
        pipeline.rpush(keys("batch_rows", name), *self.ids)
        pipeline.zadd(keys("batches"), {name: self.created})


def seed_messages(
    client: Any,
    keys: Keys,
    chance: Random,
    senders: Sequence[tuple[str, str]],
    figures: Figures,
    now: int,
    count: int,
) -> SeededMessages:
    made = SeededMessages()
    batches: dict[str, Batch] = {}
    index: dict[str, float] = {}
    pipeline = client.pipeline(transaction=False)
    for n, (message, row) in enumerate(_rows(chance, senders, now, count)):
        if "batch" in row:
            batches.setdefault(str(row["batch"]), Batch()).add(message, row)
        _count(figures, row)
        _place(pipeline, keys, made, message, row, n)
        pipeline.hset(keys("message", message), mapping=row)
        index[message] = int(row["created"]) + n % 4096 / 4096  # rows of one batch keep their order
        made.by_status.setdefault(str(row["status"]), []).append(message)
        if len(index) == _AT_ONCE or n == count - 1:
            pipeline.zadd(keys("messages"), index)
            pipeline.execute()
            index = {}
    for name, batch in batches.items():
        batch.write(pipeline, keys, name)
    pipeline.execute()
    made.batches = list(batches)
    return made


def _rows(chance: Random, senders: Sequence[tuple[str, str]], now: int, count: int) -> Iterator[tuple[str, Row]]:
    """Spread over the month, oldest first; but what waits came today. One in ten is of a batch, and the last ones are
    of one that is still under way."""
    recipients = list(invented.phones(chance))
    statuses = chance.choices(list(_STATUSES), list(_STATUSES.values()), k=count)
    size = min(_BATCH_ROWS, count // 10)
    batch, begun, last = "", 0, count - size
    for n, status in enumerate(statuses):
        age = chance.randint(1, 8 * HOUR_MS) if status in _WAITING else (count - n) * 30 * DAY_MS // count
        if n % (10 * size) == 0 or n == last:
            batch, begun = f"batch_{chance.getrandbits(72):018x}", n
        extra: Row = {}
        if n - begun < size:
            age = (count - begun) * 30 * DAY_MS // count
            status = _in_batch(status, under_way=n >= last + size // 2)
            extra = {"batch": batch}
        session, phone = chance.choice(senders)
        row: Row = {
            "to": chance.choice(recipients), "text": invented.text(chance), "priority": chance.choice((1, 1, 1, 2, 3)),
            "created": now - age, "account": phone, "session": session, "status": status, "place": "done",
        }  # fmt: skip
        if chance.random() < 0.2:
            row["reference"] = f"order-{chance.randint(10_000, 99_999)}"
        yield f"{chance.getrandbits(72):018x}", row | extra | _course(chance, row, now)


def _in_batch(status: str, under_way: bool) -> str:
    if under_way:
        return "scheduled"
    return "delivered" if status in _WAITING else status


def _course(chance: Random, row: Row, now: int) -> Row:
    """What has become of it: its attempts and its moments, none of them in the future."""
    status, created = str(row["status"]), int(row["created"])
    found: Row = {"error": _ERRORS[status]} if status in _ERRORS else {}
    if status == "queued":
        return found | {"place": "queue"}
    if status in ("scheduled", "failed"):
        due = now + chance.randint(HOUR_MS, 3 * DAY_MS)
        tried: Row = {"attempts": 1, "failures": 1, "waitReason": "delay"} if status == "failed" else {}
        return found | {"place": "scheduled", "due": due, "scheduledFor": due, "waitReason": "scheduled"} | tried
    if status == "cancelled":
        return found
    sent = min(now, created + chance.randint(2_000, 20 * MINUTE_MS))
    found |= {"handed": sent, "attempts": 1, "failures": 0}
    if status in ("dead", "unconfirmed"):
        return found | {"place": "dead", "failures": 1, "unknown": int(status == "unconfirmed")}
    found |= {"sentAt": sent}
    if status in ("delivered", "read"):
        found |= {"deliveredAt": min(now, sent + chance.randint(300, 9_000))}
    if status == "read":
        found |= {"readAt": min(now, int(found["deliveredAt"]) + chance.randint(5_000, 2 * HOUR_MS))}
    return found


def _place(pipeline: Any, keys: Keys, made: SeededMessages, message: str, row: Row, n: int) -> None:
    match row["place"]:
        case "queue":
            made.waiting += 1
            row["score"] = (4 - int(row["priority"])) * _PRIORITY_BAND + n
            pipeline.zadd(keys("queue", str(row["account"])), {message: int(row["score"])})
        case "scheduled":
            made.scheduled += 1
            pipeline.zadd(keys("scheduled"), {message: int(row["due"])})
        case "dead":
            pipeline.zadd(keys("dead"), {message: int(row["handed"])})


def _count(figures: Figures, row: Row) -> None:
    if "handed" not in row:
        return
    session, phone, at = str(row["session"]), str(row["account"]), int(row["handed"])
    if row["place"] == "dead":
        figures.count(session, phone, at, "failed")
    for figure, moment in (("sent", "sentAt"), ("delivered", "deliveredAt"), ("read", "readAt")):
        if moment in row:
            figures.count(session, phone, at, figure)
    if "deliveredAt" in row:
        figures.took(session, phone, at, int(row["deliveredAt"]) - int(row["sentAt"]))
