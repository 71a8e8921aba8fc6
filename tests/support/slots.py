"""Looks at a whole store from outside and says whether every place is held by exactly one session that may hold it:
places on proxies, places among a phone's linked devices, and the list of those that can send.

Shares nothing with the code it judges: key names are spelled out, and all places are counted anew.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

DIRECT = "direct"
KEPT_AFTER_A_SESSION = ("events", "stats:", "idempotency:", "session:gone:")
"""What may still name a session that is gone: the fleet's history, its figures, and what was answered once."""

# All of it at one moment, in one round trip. A stream counts by its last entry.
_READ_ALL = """
local read = { hash = { 'HGETALL' }, set = { 'SMEMBERS' }, string = { 'GET' }, zset = { 'ZRANGE', 0, -1 },
               list = { 'LRANGE', 0, -1 }, stream = { 'XREVRANGE', '+', '-', 'COUNT', 1 } }
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key).ok
  local command = read[kind]
  found[#found + 1] = { key:sub(#ARGV[1] + 1), kind, redis.call(command[1], key, unpack(command, 2)) }
end
return found
"""


@dataclass(frozen=True, slots=True)
class Slots:
    """Who holds what, at one moment. Two are equal if not one byte of the store has changed between them."""

    contents: Mapping[str, Any]
    sessions: Mapping[str, Mapping[str, str]] = field(compare=False)
    proxies: Mapping[str, Mapping[str, str]] = field(compare=False)

    def on(self, proxy: str) -> set[str]:
        """The sessions that hold a place on a proxy."""
        members: set[str] = self.contents.get(f"proxy:sessions:{proxy}", set())
        return members

    def of(self, phone: str) -> set[str]:
        """The sessions that are, or are about to be, linked devices of a phone."""
        members: set[str] = self.contents.get(f"phone:sessions:{phone}", set())
        return members

    def sticky(self, phone: str) -> str | None:
        return self.contents.get(f"phone:proxy:{phone}")

    def is_good(self, proxy: str | None) -> bool:
        return self.proxies.get(proxy or "", {}).get("status") == "OK"

    def proxy_of(self, session: str) -> str | None:
        return self.sessions.get(session, {}).get("proxy")

    def generation(self, session: str) -> int:
        return int(self.sessions[session]["generation"])

    def all(self, stem: str) -> dict[str, Any]:
        return {name.removeprefix(stem): value for name, value in self.contents.items() if name.startswith(stem)}


async def audit(
    client: Redis, prefix: str, per_proxy: int, per_phone: int, known: Collection[str] = (), *, settled: bool = False
) -> Slots:
    """Raises AssertionError with every fault found. Sessions that were `known` and are gone must have left nothing.

    `settled`: the fleet has nothing left to do, so no worker of an unwanted session can be there any more.
    """
    slots = await look(client, prefix)
    faults = list(_Look(slots, per_proxy, per_phone, settled).faults(set(known) - slots.sessions.keys()))
    assert not faults, f"{len(faults)} faults under {prefix}\n" + "\n".join(f"  - {fault}" for fault in faults[:40])
    return slots


async def look(client: Redis, prefix: str) -> Slots:
    assert not set(prefix) & set("*?[]\\"), "the prefix is used as a pattern"
    answer: Any = await client.eval(_READ_ALL, 0, prefix)
    contents = {name: _shaped(kind, value) for name, kind, value in answer}
    return Slots(contents, _records(contents, "session:"), _records(contents, "proxy:"))


def _shaped(kind: str, value: Any) -> Any:
    if kind == "hash":
        return dict(zip(value[::2], value[1::2], strict=True))
    return set(value) if kind == "set" else value


def _records(contents: Mapping[str, Any], stem: str) -> dict[str, Mapping[str, str]]:
    """`session:temp:…` or `proxy:sessions:…` are no records."""
    names = [name.removeprefix(stem) for name in contents if name.startswith(stem)]
    return {name: contents[stem + name] for name in names if ":" not in name}


@dataclass(frozen=True, slots=True)
class _Look:
    slots: Slots
    per_proxy: int
    per_phone: int
    settled: bool

    def faults(self, gone: Collection[str]) -> Iterator[str]:
        yield from (broken := list(self._registers()))
        if broken:  # nothing else can be told
            return
        yield from self._caps()
        yield from self._proxy_places()
        yield from self._reservations()
        yield from self._devices()
        yield from self._senders()
        for session in gone:
            yield from self._left_behind(session)

    def _registers(self) -> Iterator[str]:
        sessions, proxies = self.slots.sessions, self.slots.proxies
        if self.slots.contents.get("sessions", set()) != sessions.keys():
            yield f"the list of sessions is {self.slots.contents.get('sessions')}, their records {set(sessions)}"
        if self.slots.contents.get("proxies", set()) != proxies.keys():
            yield f"the pool is {self.slots.contents.get('proxies')}, its records {set(proxies)}"
        for session, record in sessions.items():
            if not {"status", "generation", "createdAt", "wanted"} <= record.keys():
                yield f"session {session} is only half there: {record}"

    def _caps(self) -> Iterator[str]:
        for proxy, members in self.slots.all("proxy:sessions:").items():
            if len(members) > self.per_proxy:
                yield f"proxy {proxy} has {len(members)} sessions: {sorted(members)}"
        for phone, members in self.slots.all("phone:sessions:").items():
            if len(members) > self.per_phone:
                yield f"phone {phone} has {len(members)} sessions: {sorted(members)}"

    def _proxy_places(self) -> Iterator[str]:
        """A session is on the proxy it names, and on no other."""
        for proxy, members in self.slots.all("proxy:sessions:").items():
            for session in members:
                if self.slots.proxy_of(session) != proxy:
                    yield f"{session} holds a place on {proxy}, and names {self.slots.proxy_of(session)}"
        for session, record in self.slots.sessions.items():
            place = record.get("proxy", DIRECT)
            if place != DIRECT and (place not in self.slots.proxies or session not in self.slots.on(place)):
                yield f"session {session} is on {place} without holding a place there"
            if record["status"] == "connected" and "proxy" not in record:
                yield f"session {session} is connected, and has no proxy"
            if "proxy" in record and self._is_over(record):
                yield f"session {session} is on {place}, and nobody needs it: {record}"
            if ("boundAt" in record) != ("proxy" in record):
                yield f"session {session} is on {record.get('proxy')} since {record.get('boundAt')}"

    def _is_over(self, record: Mapping[str, str]) -> bool:
        """Neither linked nor about to be, and its worker and its auth data are gone."""
        gone = self.settled or (record.get("launched", "0") == "0" and record["status"] != "logged_out")
        return "linked" not in record and record["wanted"] == "stop" and gone

    def _reservations(self) -> Iterator[str]:
        """A place is only reserved until the session is linked."""
        reserved = self.slots.all("session:temp:")
        for session, record in self.slots.sessions.items():
            due = None if "linked" in record else record.get("proxy")
            if reserved.get(session) != due:
                yield f"session {session} has {reserved.get(session)} reserved instead of {due}: {record}"
        for session in reserved.keys() - self.slots.sessions.keys():
            yield f"{session} has a place reserved, and is no session"

    def _devices(self) -> Iterator[str]:
        """A phone's devices are those linked to it, and those that wait to be and said which phone they mean."""
        for phone, members in self.slots.all("phone:sessions:").items():
            for session in members:
                if not self._may_be_device(self.slots.sessions.get(session, {}), phone):
                    yield f"{session} counts for {phone}, and is {self.slots.sessions.get(session)}"
        for session, record in self.slots.sessions.items():
            linked, waits = "linked" in record, record["wanted"] == "run" and "declared" in record
            due = record.get("phone" if linked else "declared", "?")
            if (linked or waits) and session not in self.slots.of(due):
                yield f"session {session} does not count for {due}: {record}"

    def _may_be_device(self, record: Mapping[str, str], phone: str) -> bool:
        if not record or "linked" in record:
            return record.get("phone") == phone
        return record.get("declared") == phone and not self._is_over(record)

    def _senders(self) -> Iterator[str]:
        """Those that can send are those connected, each for its own phone; and the phone has a proxy of its own."""
        listed = {(s, phone) for phone, members in self.slots.all("account:connected:").items() for s in members}
        connected = {
            (session, record.get("phone"))
            for session, record in self.slots.sessions.items()
            if record["status"] == "connected"
        }
        if listed != connected:
            yield f"{sorted(listed)} can send, and {sorted(map(str, connected))} are connected"
        for session, phone in connected:
            record = self.slots.sessions[session]
            if "linked" not in record:
                yield f"session {session} is connected and not linked"
            if record.get("proxy") != DIRECT and self.slots.sticky(phone or "?") is None:
                yield f"session {session} is connected, and its phone {phone} has no proxy of its own"

    def _left_behind(self, session: str) -> Iterator[str]:
        for name, value in self.slots.contents.items():
            if name.startswith(KEPT_AFTER_A_SESSION):
                continue
            inside = value.values() if isinstance(value, dict) else [value] if isinstance(value, str) else value
            if name.endswith(f":{session}") or session in inside:
                yield f"session {session} is gone, and {name} is left: {value}"
