"""Looks at a whole store from outside and says whether every message is in exactly one place.

Shares nothing with the code it judges: key names are spelled out, and all figures are counted anew.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

FOREVER = "-1"
STATUSES = {
    "jobs": {"queued"},
    "scheduled": {"scheduled", "queued", "failed"},
    "overflow": {"scheduled", "queued"},
    "queue": {"queued"},
    "outbox": {"queued"},
    "claimed": {"sending"},
    "dead": {"dead", "unconfirmed"},
    "done": {"sent", "delivered", "read", "cancelled", "dead", "unconfirmed"},
}
ARRIVED = {
    "sent": {"sent", "delivered", "read"},
    "delivered": {"delivered", "read"},
    "read": {"read"},
}
ENDED = {**ARRIVED, "dead": {"dead"}, "unconfirmed": {"unconfirmed"}, "cancelled": {"cancelled"}}
_READ = {"hash": "hgetall", "set": "smembers", "string": "get"}


@dataclass(frozen=True, slots=True)
class Audit:
    """How many messages are in which place and status, and the messages themselves by id."""

    places: Counter[str]
    statuses: Counter[str]
    messages: Mapping[str, Mapping[str, str]]


async def audit(client: Redis, prefix: str) -> Audit:
    """Raises AssertionError with every fault found."""
    contents, lives = await _read_all(client, prefix)
    look = _Look(contents, lives)
    faults = list(look.faults())
    assert not faults, f"{len(faults)} faults under {prefix}\n" + "\n".join(f"  - {f}" for f in faults[:40])
    messages = look.messages
    return Audit(
        Counter(m["place"] for m in messages.values()),
        Counter(m["status"] for m in messages.values()),
        messages,
    )


async def clear(client: Redis, prefix: str) -> None:
    """Removes what a test left, where it left a lot."""
    keys = await _keys(client, prefix)
    for start in range(0, len(keys), 5000):
        await client.unlink(*keys[start : start + 5000])


async def _keys(client: Redis, prefix: str) -> list[str]:
    pattern = re.sub(r"([\[\]*?\\])", r"\\\1", prefix) + "*"
    return [key async for key in client.scan_iter(match=pattern, count=10_000)]


async def _read_all(client: Redis, prefix: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Everything by its name without the prefix, and how long each message still lives."""
    names = [key.removeprefix(prefix) for key in sorted(set(await _keys(client, prefix)))]
    contents: dict[str, Any] = {}
    lives: dict[str, int] = {}
    for start in range(0, len(names), 5000):
        part = names[start : start + 5000]
        types = client.pipeline(transaction=False)
        for name in part:
            types.type(prefix + name)
        reads = client.pipeline(transaction=False)
        for name, kind in zip(part, await types.execute(), strict=True):
            _queue_read(reads, kind, prefix + name)
            reads.ttl(prefix + name)
        values = await reads.execute()
        contents.update(zip(part, values[::2], strict=True))
        lives.update(zip(part, values[1::2], strict=True))
    return contents, lives


def _queue_read(reads: Any, kind: str, key: str) -> None:
    if kind == "zset":
        reads.zrange(key, 0, -1, withscores=True)
    elif kind == "list":
        reads.lrange(key, 0, -1)
    elif kind == "stream":
        reads.xlen(key)
    else:
        getattr(reads, _READ[kind])(key)


@dataclass
class _Look:
    contents: Mapping[str, Any]
    lives: Mapping[str, int]
    messages: dict[str, Mapping[str, str]] = field(default_factory=dict)
    accounts: dict[str, Mapping[str, str]] = field(default_factory=dict)
    found: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    flying: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.messages.update(self._all("message:"))
        # `account:recent:…`, `account:sessions:…` and `account:connected:…` are not hashes of an account.
        accounts = self._all("account:").items()
        self.accounts.update((phone, account) for phone, account in accounts if ":" not in phone)
        self._find()
        for message_id, message in self.messages.items():
            if message.get("place") in {"outbox", "claimed"}:
                self.flying[message.get("account", "?")].append(message_id)

    def _all(self, stem: str) -> dict[str, Any]:
        return {name.removeprefix(stem): value for name, value in self.contents.items() if name.startswith(stem)}

    def _find(self) -> None:
        for stem, place in (("queue:session:", "queue"), ("queue:overflow:", "overflow")):
            for phone, members in self._all(stem).items():
                self._put(place, phone, [member for member, _ in members])
        for name, place in (
            ("queue:scheduled", "scheduled"),
            ("gateway:jobs", "jobs"),
            ("dead-letters", "dead"),
        ):
            self._put(place, "", [member for member, _ in self.contents.get(name, ())])
        for session, members in self._all("session:outbox:").items():
            self._put("outbox", session, members)
        for phone, account in self.accounts.items():
            if "claimed" in account:
                self._put("claimed", phone, [account.get("inflight", "?")])

    def _put(self, place: str, of: str, members: Sequence[str]) -> None:
        for member in members:
            self.found[member].append((place, of))

    def faults(self) -> Iterator[str]:
        yield from self._strangers()
        for message_id, message in self.messages.items():
            yield from self._one_place(message_id, message)
            yield from self._sound(message_id, message)
        for phone, account in self.accounts.items():
            yield from self._in_flight(phone, account)
            yield from self._counted(phone, account)
            yield from self._due(phone, account)
        yield from self._outboxes()
        yield from self._sessions()
        yield from self._batches()
        yield from self._indexes()
        yield from self._figures()

    def _strangers(self) -> Iterator[str]:
        for member, places in self.found.items():
            if member not in self.messages:
                yield f"{places} holds {member!r}, which is no message"

    def _one_place(self, message_id: str, message: Mapping[str, str]) -> Iterator[str]:
        place = message.get("place", "nowhere")
        of = {"queue": "account", "overflow": "account", "claimed": "account", "outbox": "session"}.get(place)
        named = [] if place == "done" else [(place, message.get(of, "?") if of else "")]
        if place not in STATUSES:
            yield f"message {message_id} says it is in {place!r}"
        elif self.found.get(message_id, []) != named:
            yield f"message {message_id} says {named or 'done'}, found in {self.found.get(message_id, [])}"

    def _sound(self, message_id: str, message: Mapping[str, str]) -> Iterator[str]:
        place, status = message.get("place", ""), message.get("status", "")
        if status not in STATUSES.get(place, set()):
            yield f"message {message_id} is {status!r} in {place!r}"
        if (self.lives[f"message:{message_id}"] > 0) != (place == "done"):
            yield f"message {message_id} in {place!r} has {self.lives[f'message:{message_id}']} s to live"
        if place == "queue":
            scores = dict(self.contents[f"queue:session:{message['account']}"])
            if scores.get(message_id) != float(message["score"]):
                yield f"message {message_id} remembers another place in its queue than it has"
            elif scores[message_id] // 1e13 != 4 - int(message["priority"]):
                yield f"message {message_id} stands among another priority than its own"

    def _in_flight(self, phone: str, account: Mapping[str, str]) -> Iterator[str]:
        flying = self.flying.get(phone, [])
        if len(flying) > 1:
            yield f"account {phone} has {len(flying)} in flight: {flying}"
        if flying != [account["inflight"]] if "inflight" in account else flying:
            yield f"account {phone} thinks {account.get('inflight')} is in flight, and {flying} is"
        if ("leaseUntil" in account) != ("inflight" in account):
            yield f"account {phone} has a lease without a message, or a message without a lease"
        if "claimed" in account:
            message = self.messages.get(account.get("inflight", ""), {})
            if account["claimed"].partition("/")[0] != message.get("session"):
                yield f"account {phone}: {account['claimed']} claimed what {message.get('session')} was given"

    def _counted(self, phone: str, account: Mapping[str, str]) -> Iterator[str]:
        if int(account.get("dayCount", 0)) < 0:
            yield f"account {phone} has sent {account['dayCount']} today"
        moments = list(map(int, self.contents.get(f"account:recent:{phone}", ())))
        if moments != sorted(moments, reverse=True):
            yield f"account {phone} has its last hand-overs out of order: {moments}"

    def _due(self, phone: str, account: Mapping[str, str]) -> Iterator[str]:
        """Somebody will look at it: when its lease ends, or because it has something to send."""
        due = phone in dict(self.contents.get("dispatch:due", ()))
        connected = self.contents.get(f"account:connected:{phone}", set())
        held = FOREVER in (account.get("paused"), account.get("restricted"))
        waits = self.contents.get(f"queue:session:{phone}") or self.contents.get(f"queue:overflow:{phone}")
        if "inflight" in account and not due:
            yield f"account {phone} has a message in flight and nobody looks when its lease ends"
        elif waits and connected and not held and not due:
            yield f"account {phone} has something to send and nobody will look at it"

    def _outboxes(self) -> Iterator[str]:
        for session, members in self._all("session:outbox:").items():
            if len(members) > 1:
                yield f"session {session} was handed {len(members)} messages at once"

    def _sessions(self) -> Iterator[str]:
        for phone, members in self._all("account:connected:").items():
            for session in members:
                stored = self.contents.get(f"session:{session}", {})
                if (stored.get("phone"), stored.get("status")) != (phone, "connected"):
                    yield f"session {session} is listed as connected for {phone}, and is {stored}"

    def _batches(self) -> Iterator[str]:
        rows: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for message in self.messages.values():
            if "batch" in message:
                rows[message["batch"]].append(message)
        for batch, members in rows.items():
            stored = self.contents.get(f"batch:{batch}", {})
            counted = {end: sum(m["status"] in among for m in members) for end, among in ENDED.items()}
            if {end: int(stored.get(end, 0)) for end in ENDED} != counted:
                yield f"batch {batch} says {stored}, and its rows say {counted}"
            if (self.lives.get(f"batch:{batch}", 0) > 0) != all(m["place"] == "done" for m in members):
                yield f"batch {batch} is forgotten before its rows, or after them"
            if int(stored.get("total", 0)) != len(members):
                yield f"batch {batch} has {len(members)} of {stored.get('total')} rows"

    def _indexes(self) -> Iterator[str]:
        """An entry may outlive what it stands for, never the other way round."""
        for message_id in self.messages.keys() - dict(self.contents.get("messages", ())).keys():
            yield f"message {message_id} is in no list of all messages"
        batches = {name for name in self._all("batch:") if not name.startswith("rows:")}
        for batch in batches - dict(self.contents.get("batches", ())).keys():
            yield f"batch {batch} is in no list of all batches"

    def _figures(self) -> Iterator[str]:
        """What arrived can be counted again from the messages; failures can't, a redrive forgets them."""
        counted: dict[str, Counter[str]] = defaultdict(Counter)
        for message in self.messages.values():
            for figure, among in ARRIVED.items():
                if message.get("status") in among:
                    for scope in (f"session:{message['session']}", f"account:{message['account']}", "fleet"):
                        counted[f"{scope}:{message['day']}"][f"{figure}:{message['hour']}"] += 1
        stored = self._all("stats:")
        for name in stored.keys() | counted.keys():
            figures = {k: int(v) for k, v in stored.get(name, {}).items() if k.partition(":")[0] in ARRIVED}
            if +Counter(figures) != counted[name]:
                yield f"figures of {name} are {figures}, the messages say {dict(counted[name])}"
            if any(int(value) < 0 for value in stored.get(name, {}).values()):
                yield f"figures of {name} went below nothing: {stored[name]}"
