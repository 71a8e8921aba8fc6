"""Sessions: their record, their places, and every move from one state to another."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from switchboard.domain.errors import SessionNotFound
from switchboard.domain.sessions import Code, Order, Session, State, sources
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys
from switchboard.store.scripts import Scripts
from switchboard.store.views import order_of, session_of

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class SessionRules:
    per_proxy: int = 4
    per_phone: int = 4
    logout_ms: int = 15_000
    """How long a worker has to log out before it is stopped all the same."""


class With(StrEnum):
    """What goes with a change of state; see lua/transition.lua."""

    WORKER = "worker"
    DETACH = "detach"
    BUMP = "bump"
    RELEASE = "release"
    UNLINK = "unlink"
    ORDER = "order"
    SCAN = "scan"
    SCANNING = "scanning"


@dataclass(frozen=True, slots=True)
class Turned:
    """`outcome` is OK, or else STALE, MOVED, TOO_MANY, OTHER_PHONE or REFUSED. `state` is the one before."""

    outcome: str
    state: str | None = None

    @property
    def ok(self) -> bool:
        return self.outcome == "OK"


class Sessions:
    def __init__(self, client: Redis, keys: Keys, scripts: Scripts, rules: SessionRules) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self.rules = rules

    # --- looking -------------------------------------------------------------------------------------------------

    async def get(self, session: str) -> Session | None:
        async with store_errors():
            raw = await self._client.hgetall(self._keys("session", session))
        return session_of(session, raw) if raw else None

    async def find(self, session: str) -> Session:
        found = await self.get(session)
        if found is None:
            raise SessionNotFound(session)
        return found

    async def all(self) -> list[Session]:
        return await self.get_many(sorted(await self.ids()))

    async def get_many(self, ids: Sequence[str]) -> list[Session]:
        """Those of these that exist, in the order asked for."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for session in ids:
                pipeline.hgetall(self._keys("session", session))
            records = await pipeline.execute()
        return [session_of(session, raw) for session, raw in zip(ids, records, strict=True) if raw]

    async def ids(self) -> set[str]:
        async with store_errors():
            return set(await self._client.smembers(self._keys("sessions")))

    async def qr(self, session: str) -> Code | None:
        return await self._code(session, "qr", "qrUntil")

    async def pairing_code(self, session: str) -> Code | None:
        return await self._code(session, "code", "codeUntil")

    async def _code(self, session: str, text: str, until: str) -> Code | None:
        async with store_errors():
            found = await self._client.hmget(self._keys("session", session), [text, until, "codePhone"])
        return Code(found[0], int(found[1]) if found[1] else None, found[2]) if found[0] else None

    async def order(self, session: str) -> Order | None:
        async with store_errors():
            names = ["order", "orderKind", "orderBy", "orderPhone"]
            return order_of(
                dict(zip(names, await self._client.hmget(self._keys("session", session), names), strict=True))
            )

    async def events(self, session: str, limit: int, before: str | None) -> list[tuple[str, dict[str, str]]]:
        """Newest first."""
        async with store_errors():
            found = await self._client.xrevrange(
                self._keys("session_events", session), f"({before}" if before else "+", "-", limit
            )
        return [(entry, fields) for entry, fields in found]

    async def states(self, session: str, since: int) -> list[tuple[int, State]]:
        """Its changes after `since`, oldest first, preceded by the one that held then, if it is known."""
        async with store_errors():
            found = await self._client.lrange(self._keys("session_states", session), 0, -1)
        changes = [(int(at), State(state)) for at, _, state in (entry.partition(" ") for entry in reversed(found))]
        changes.sort(key=lambda change: change[0])  # a clock that was set back
        before = [change for change in changes if change[0] <= since]
        return [*before[-1:], *changes[len(before) :]]

    # --- places --------------------------------------------------------------------------------------------------

    async def register(self, session: str, now: int) -> None:
        """Make a session known whose worker somebody else runs. Repeating it changes nothing."""
        async with store_errors():
            await self._client.hsetnx(self._keys("session", session), "createdAt", str(now))
            if await self._client.hsetnx(self._keys("session", session), "status", State.STARTING.value):
                await self._client.lpush(self._keys("session_states", session), f"{now} {State.STARTING.value}")
            await self._client.sadd(self._keys("sessions"), session)

    async def provision(
        self,
        *,
        session: str,
        name: str,
        phone: str,
        proxy: str,
        now: int,
        scan_by: int,
        device: str,
        once: str = "",
        digest: str = "",
    ) -> tuple[str, str]:
        """The outcome (see lua/provision.lua) and the session's id."""
        rules = self.rules
        outcome, *found = await self._scripts.run(
            "provision", session, name, phone, proxy, rules.per_proxy, rules.per_phone, now, scan_by, once, digest,
            _DAY_S, device,
        )  # fmt: skip
        return outcome, found[0] if found else session

    async def assign(self, session: str, old: str | None, new: str, now: int) -> str:
        """OK, STALE, or NO_ROOM: then choose anew."""
        return str(await self._scripts.run("assign", session, old or "", new, self.rules.per_proxy, now))

    async def vacate(self, session: str) -> bool:
        """Its places are free, if it is neither wanted nor linked. To be called once its worker is gone."""
        return bool(await self._scripts.run("vacate", session))

    async def forget(self, session: str, now: int) -> bool:
        return bool(await self._scripts.run("forget", session, now))

    async def was_unlinked(self, session: str) -> bool | None:
        """Whether WhatsApp was told that a session which was deleted lately is no device of its phone any more."""
        async with store_errors():
            found = await self._client.get(self._keys("gone", session))
        return None if found is None else found == "1"

    # --- states --------------------------------------------------------------------------------------------------

    async def connect(self, session: str, phone: str, now: int) -> Turned:
        rules = self.rules
        outcome, *rest = await self._scripts.run(
            "connect", session, phone, now, _names(sources(State.CONNECTED)), rules.per_phone, rules.per_proxy,
            now + rules.logout_ms,
        )  # fmt: skip
        return _turned(session, outcome, rest)

    async def disconnect(
        self, session: str, now: int, state: State = State.DISCONNECTED, reason: str = "", by_worker: bool = False
    ) -> Turned:
        effects = {With.DETACH, With.WORKER} if by_worker else {With.DETACH}
        return await self.turn(session, state, reason, now, effects)

    async def turn(
        self,
        session: str,
        state: State,
        reason: str,
        now: int,
        effects: Collection[With] = (),
        fields: Mapping[str, str | int] | None = None,
        *,
        scan_by: int | None = None,
        among: Sequence[State] | None = None,
    ) -> Turned:
        """To `state`, from any state the table allows (or, if narrower, one `among` these)."""
        flat = [part for pair in (fields or {}).items() for part in pair]
        outcome, *rest = await self._scripts.run(
            "transition", session, _names(sources(state) if among is None else among), state, reason, now,
            _names(effects), scan_by or "", self.rules.per_phone, *flat,
        )  # fmt: skip
        return _turned(session, outcome, rest)

    async def proxy_error(self, session: str, at: int, code: str, now: int, gaps: tuple[int, int]) -> Turned:
        """`gaps` are the first and the longest one before the next start of a session that reports again and again."""
        froms = _names(sources(State.DISCONNECTED))
        outcome, *rest = await self._scripts.run("proxy_error", session, at, code, now, froms, *gaps)
        return _turned(session, outcome, rest)

    async def ask(self, session: str, kind: str, until: int, phone: str = "") -> int:
        """Give its worker an order; returns the order's number."""
        number = int(await self._scripts.run("order", session, kind, phone, until))
        if not number:
            raise SessionNotFound(session)
        return number

    # --- its worker ----------------------------------------------------------------------------------------------

    async def launch(self, session: str, generation: int, now: int, told: str = "") -> bool:
        """`told` stands for what the worker is told of us."""
        return bool(await self._scripts.run("launch", session, generation, now, told))

    async def keep_handle(self, session: str, handle: str) -> None:
        async with store_errors():
            if await self._client.exists(self._keys("session", session)):
                await self._client.hset(self._keys("session", session), "handle", handle)
                await self._client.hdel(self._keys("session", session), "misses")

    async def clear_aside(self, session: str) -> None:
        async with store_errors():
            await self._client.hdel(self._keys("session", session), "aside")

    async def ping(self, session: str, now: int, proof: bool = True) -> bool:
        return bool(await self._scripts.run("ping", session, now, int(proof)))

    async def order_done(self, session: str) -> None:
        """It has logged out, as it was ordered to."""
        await self._scripts.run("order_done", session)


def _names(words: Collection[StrEnum]) -> str:
    return ",".join(word.value for word in words)


def _turned(session: str, outcome: str, rest: Sequence[Any]) -> Turned:
    if outcome == "NOT_FOUND":
        raise SessionNotFound(session)
    return Turned(outcome, str(rest[0]) if rest else None)
