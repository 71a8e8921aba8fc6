"""What a person may ask of sessions: make, start, stop, link, pause, delete. Writes down what is wanted; the fleet
makes it so. No HTTP here."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from switchboard.domain import errors
from switchboard.domain.clock import Clock
from switchboard.domain.ids import is_proxy_id
from switchboard.domain.proxies import NoPlace, Proxy, Reason, choose
from switchboard.domain.sessions import DIRECT, Code, Command, Session, State, Wanted, check, held_until
from switchboard.orchestrator.proxy_care import ProxyCare, inventory_of
from switchboard.store import Store
from switchboard.store.sessions import Turned, With

_UP = (State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED)
_TRIES = 50
_DEVICE = "Switchboard"
_CODE_MS = 60_000
_LOOK_S = 0.1
_NO_ID = "new"
"""What its page's address would say is where the dashboard makes another one."""


@dataclass(frozen=True, slots=True)
class SessionServiceRules:
    scan_ms: int = 300_000
    allow_direct: bool = False
    patience_s: float = 20.0
    """How long a call waits for a worker to do what was asked."""


@dataclass(frozen=True, slots=True)
class Request:
    """A session somebody wants: `proxy` is the id of one in the pool, or the URL of one to add to it."""

    session: str = ""
    phone: str = ""
    proxy: str = field(default="", repr=False)  # it may hold credentials
    name: str = ""
    proxy_field: str = "proxy"  # what the caller calls it


class SessionService:
    def __init__(self, store: Store, care: ProxyCare, rules: SessionServiceRules, clock: Clock) -> None:
        self._store = store
        self._care = care
        self._rules = rules
        self._clock = clock
        self._choosing = asyncio.Lock()

    # --- making --------------------------------------------------------------------------------------------------

    async def provision(self, request: Request, once: str = "") -> str:
        """A new session, its proxy fixed; returns its id. With the same `once`, the same session again."""
        if request.session == _NO_ID:
            raise errors.InvalidRequest(f"sessionId: '{_NO_ID}' can't be one", "sessionId")
        override = await self._override(request.proxy, request.proxy_field)
        digest = hashlib.sha256(json.dumps([request.session, request.phone, override, request.name]).encode())
        for _ in range(_TRIES):  # the pool may change between the choice and the move
            async with self._choosing:  # those made at the same moment would all take the same proxy for the emptiest
                now = self._clock()
                choice = await self._choose(override, request.phone)
                outcome, session = await self._store.sessions.provision(
                    session=request.session,
                    name=request.name,
                    phone=request.phone,
                    proxy=choice if isinstance(choice, str) else "",  # without a place, it may still be one made before
                    now=now,
                    scan_by=now + self._rules.scan_ms,
                    device=_DEVICE,
                    once=f"provision:{once}" if once else "",
                    digest=digest.hexdigest(),
                )
            if outcome in ("OK", "KNOWN"):
                await self._care.count()
                return session
            if outcome != "NO_ROOM":
                raise self._refusal(outcome, request.session)
            if not isinstance(choice, str):
                raise choice
        raise errors.NoProxyAvailable("Too many sessions are being made at once; try again.", reason="contention")

    async def _override(self, proxy: str, field: str) -> str | None:
        if "://" in proxy:
            return (await self._care.add(proxy, field))[0].id
        if proxy and not is_proxy_id(proxy):  # it may be a URL with a slip in it: not a word of it is repeated
            raise errors.InvalidRequest(
                f"{field}: is neither a proxy of the pool, like proxy_1, nor a socks5h:// URL", field
            )
        return proxy or None

    async def _choose(self, override: str | None, phone: str) -> str | errors.SwitchboardError:
        """The proxy for a new session, or why there is none."""
        pool = await self._store.proxies.all()
        sticky = await self._store.proxies.sticky(phone) if phone else None
        choice = choose(pool, override=override, sticky=sticky)
        if isinstance(choice, Proxy):
            return choice.id
        if choice.reason is Reason.EMPTY_POOL and self._rules.allow_direct:
            return DIRECT
        return _no_proxy(choice, override, pool)

    def _refusal(self, outcome: str, session: str) -> errors.SwitchboardError:
        if outcome == "EXISTS":
            return errors.SessionExists(session)
        if outcome == "TOO_MANY":
            return errors.TooManySessions(self._store.sessions.rules.per_phone)
        return errors.IdempotencyConflict()

    # --- commands ------------------------------------------------------------------------------------------------

    async def start(self, session_id: str) -> None:
        session = await self._allowed(Command.START, session_id)
        now = self._clock()
        fields = {"wanted": Wanted.RUN.value, "notBefore": "", "ends": "", "silences": "", "order": ""}
        turned = await self._store.sessions.turn(
            session.id, State.STARTING, "", now, {With.BUMP, With.SCAN}, fields,
            scan_by=now + self._rules.scan_ms, among=[session.state],
        )  # fmt: skip
        self._done(Command.START, session, turned)

    async def stop(self, session_id: str) -> None:
        session = await self._allowed(Command.STOP, session_id)
        fields = {"wanted": Wanted.STOP.value, "qr": "", "code": "", "scanBy": ""}
        effects = {With.DETACH, With.RELEASE}
        turned = await self._store.sessions.turn(
            session.id, State.STOPPED, "by_request", self._clock(), effects, fields
        )
        self._done(Command.STOP, session, turned)

    async def restart(self, session_id: str) -> None:
        session = await self._allowed(Command.RESTART, session_id)
        now = self._clock()
        fields = {"notBefore": "", "ends": "", "silences": "", "qr": "", "code": ""}
        turned = await self._store.sessions.turn(
            session.id, State.STARTING, "restart", now, {With.DETACH, With.BUMP, With.SCAN}, fields,
            scan_by=now + self._rules.scan_ms, among=_UP,
        )  # fmt: skip
        self._done(Command.RESTART, session, turned)

    async def logout(self, session_id: str) -> None:
        """Unlink it from its phone. The worker is given some seconds to tell WhatsApp."""
        session = await self._allowed(Command.LOGOUT, session_id)
        turned = await self._store.sessions.turn(
            session.id, State.LOGGED_OUT, "by_request", self._clock(), {With.DETACH, With.UNLINK, With.ORDER},
            {"wanted": Wanted.STOP.value, **self._logout_order()},
        )  # fmt: skip
        self._done(Command.LOGOUT, session, turned)
        await self._soon(lambda: self._has_answered(session.id))

    async def delete(self, session_id: str) -> tuple[bool, bool | None]:
        """Log out, stop, remove its data and free its places.

        Whether all of it is done by now; and whether the phone knows, None while that can't be told.
        """
        session = await self._allowed(Command.DELETE, session_id)
        if session.wanted is not Wanted.DELETE:
            linked = session.linked and session.wanted is Wanted.RUN
            fields: dict[str, str | int] = {"wanted": Wanted.DELETE.value, "qr": "", "code": "", "scanBy": ""}
            turned = await self._store.sessions.turn(
                session.id, State.STOPPED, "deleting", self._clock(),
                {With.DETACH, *([With.ORDER] if linked else [])}, fields | (self._logout_order() if linked else {}),
                among=list(State),
            )  # fmt: skip
            self._done(Command.DELETE, session, turned)
        if session.wanted is None:  # its worker is not ours, so there is nobody to wait for
            await self._store.sessions.forget(session.id, self._clock())
        done = await self._soon(lambda: self._is_gone(session.id))
        return done, await self._store.sessions.was_unlinked(session.id) if done else None

    def _logout_order(self) -> dict[str, str | int]:
        return {"orderKind": "logout", "orderBy": self._clock() + self._store.sessions.rules.logout_ms}

    async def sharing(self, session_id: str) -> set[str]:
        """All sessions of its account: what holds one holds them all."""
        session = await self._store.sessions.find(session_id)
        return await self._store.accounts.sessions_of(session.phone) if session.phone else {session_id}

    async def pause(self, session_id: str, until: int | None) -> None:
        """Its account sends nothing, through any session, until then or until it is resumed."""
        session = await self._allowed(Command.PAUSE, session_id)
        if until is not None and until <= self._clock():
            raise errors.InvalidRequest("until: is in the past", "until")
        await self._store.accounts.pause(session.phone or "", until, self._clock())

    async def resume(self, session_id: str) -> None:
        session = await self._allowed(Command.RESUME, session_id)
        now = self._clock()
        account = (await self._store.accounts.look(phone=session.phone or "", now=now)).account
        if not held_until(account.paused_until, now) and not held_until(account.restricted_until, now):
            raise errors.InvalidTransition(session.id, "resume", session.state.value, "it is not paused")
        await self._store.accounts.resume(session.phone or "", now)

    # --- codes ---------------------------------------------------------------------------------------------------

    async def qr(self, session_id: str) -> Code:
        session = await self._store.sessions.find(session_id)
        code = await self._store.sessions.qr(session_id)
        if code is None or not code.good_at(self._clock()) or session.state is not State.QR_READY:
            raise errors.QrNotReady(session_id, session.state.value, _no_qr(session))
        return code

    async def pairing_code(self, session_id: str, phone: str) -> Code:
        """Asks the worker for one. What is returned WhatsApp has accepted; nothing is made up here."""
        await self._allowed(Command.PAIR, session_id)
        await self._store.sessions.ask(session_id, "pair", self._clock() + _CODE_MS, phone)
        if await self._soon(lambda: self._has_code(session_id, phone)):
            code = await self._store.sessions.pairing_code(session_id)
            if code is not None:
                return code
        raise errors.QrNotReady(session_id, (await self._store.sessions.find(session_id)).state.value)

    async def _has_code(self, session_id: str, phone: str) -> bool:
        code = await self._store.sessions.pairing_code(session_id)
        return code is not None and code.phone == phone and code.good_at(self._clock())

    # --- helpers -------------------------------------------------------------------------------------------------

    async def _allowed(self, command: Command, session_id: str) -> Session:
        session = await self._store.sessions.find(session_id)
        check(command, session)
        return session

    def _done(self, command: Command, session: Session, turned: Turned) -> None:
        if turned.outcome == "TOO_MANY":
            raise errors.TooManySessions(self._store.sessions.rules.per_phone)
        if not turned.ok:
            raise errors.InvalidTransition(session.id, command.value, turned.state or "", "it has just changed")

    async def _has_answered(self, session_id: str) -> bool:
        """It did what it was ordered to, or the time for it is over."""
        session = await self._store.sessions.get(session_id)
        return session is None or session.order is None

    async def _is_gone(self, session_id: str) -> bool:
        return await self._store.sessions.get(session_id) is None

    async def _soon(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        for _ in range(round(self._rules.patience_s / _LOOK_S)):
            if await condition():
                return True
            await asyncio.sleep(_LOOK_S)
        return await condition()


def _no_qr(session: Session) -> str:
    if session.linked:
        return "it is linked already"
    return "ask again in a moment" if session.scanning else "start it to be asked for a scan"


def _no_proxy(choice: NoPlace, override: str | None, pool: list[Proxy]) -> errors.SwitchboardError:
    inventory = inventory_of(pool)
    why = {
        Reason.EMPTY_POOL: "The pool is empty. Add a proxy (`switchboard proxies add`, or PROXY_URL_1), or let "
        "sessions connect without one (ALLOW_DIRECT=true).",
        Reason.POOL_FULL: f"No proxy has room: {inventory.used} of {inventory.capacity} places are taken. "
        "Add a proxy, or delete a session.",
        Reason.ALL_BAD: f"None of the {inventory.proxies} proxies works right now. Each is tried again by itself.",
        Reason.OVERRIDE_BAD: f"Proxy '{override}' does not work right now. Choose another, or name none.",
        Reason.OVERRIDE_FULL: f"Proxy '{override}' has no place left. Choose another, or name none.",
    }
    if choice.reason is Reason.OVERRIDE_UNKNOWN:
        return errors.ProxyNotFound(override or "")
    return errors.NoProxyAvailable(why[choice.reason], reason=choice.reason.value)
