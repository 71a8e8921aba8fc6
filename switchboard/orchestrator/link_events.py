"""What a worker's word about its own session does: codes, connected, disconnected, its proxy, its life."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from switchboard.domain.clock import Clock
from switchboard.domain.restarts import RestartRules
from switchboard.domain.sessions import Session, State, Wanted, held_until
from switchboard.orchestrator.models import (
    AuthFailureData,
    ConnectedData,
    DisconnectedData,
    EventBody,
    PairingData,
    PingData,
    ProxyErrorData,
    QrData,
    StatusData,
)
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.store import Store
from switchboard.store.sessions import Turned, With

_log = structlog.get_logger(__name__)

# Reasons that explain themselves. Any other disconnection may be the proxy's fault, so the proxy is tried.
_EXPLAINED = frozenset({"logged_out", "replaced", "restart_required", "qr_expired", "stopped", "auth_failure"})
_BLOCKED = frozenset({"blocked", "account_blocked", "banned", "forbidden", "403", "status_403"})
_NO_CODES: Mapping[str, str] = {"qr": "", "qrUntil": "", "code": "", "codeUntil": "", "codePhone": ""}
_GIVE_UP: Mapping[str, str] = {"wanted": Wanted.STOP.value, "scanBy": "", **_NO_CODES}


@dataclass(frozen=True, slots=True)
class LinkRules:
    ping_timeout_ms: int = 180_000
    scan_ms: int = 300_000
    restarts: RestartRules = field(default_factory=RestartRules)


class LinkEvents:
    def __init__(self, store: Store, care: ProxyCare, rules: LinkRules, clock: Clock) -> None:
        self._store = store
        self._care = care
        self._rules = rules
        self._clock = clock

    async def qr(self, event: EventBody, data: QrData) -> None:
        await self._scan(event, {"qr": data.qr, "qrUntil": data.expiresAt or ""})

    async def pairing_code(self, event: EventBody, data: PairingData) -> None:
        code = {"code": data.code, "codeUntil": data.expiresAt or "", "codePhone": data.phoneNumber, "order": ""}
        await self._scan(event, code)

    async def _scan(self, event: EventBody, code: Mapping[str, str | int]) -> None:
        """A link that was lost without a word needs a scan, too. None is waited for for ever."""
        session = await self._store.sessions.find(event.sessionId)
        effects = {With.DETACH, With.UNLINK} if session.linked else {With.DETACH}
        scan_by = session.scan_by or self._clock() + self._rules.scan_ms
        await self._turn(event, State.QR_READY, "", effects, {**code, "scanBy": scan_by})

    async def connected(self, event: EventBody, data: ConnectedData) -> None:
        turned = await self._store.sessions.connect(event.sessionId, data.phoneNumber, self._clock())
        tell = _log.info if turned.ok or turned.outcome == "MOVED" else _log.warning
        tell("session.connected", session=event.sessionId, outcome=turned.outcome)

    async def disconnected(self, event: EventBody, data: DisconnectedData) -> None:
        """Logged out: a new scan is needed. Replaced: somebody else uses this link, so a person must decide.
        Anything else: the worker connects again by itself; was it the proxy, it gets another one."""
        session = await self._store.sessions.find(event.sessionId)
        if data.reason == "logged_out" and _was_asked(session):
            await self._store.sessions.order_done(session.id)  # why it is in its state was said before
            return
        if data.reason == "logged_out":
            effects = {With.DETACH, With.UNLINK}
            await self._turn(event, State.LOGGED_OUT, "logged_out", effects, {**_GIVE_UP, "order": ""})
            return
        if data.reason == "replaced":
            await self._turn(event, State.FAILED, "replaced", {With.DETACH, With.RELEASE}, _GIVE_UP)
            return
        turned = await self._turn(event, State.DISCONNECTED, data.reason, {With.DETACH}, _NO_CODES)
        if turned.ok and data.reason not in _EXPLAINED:
            self._care.suspect(session.proxy)

    async def status_change(self, event: EventBody, data: StatusData) -> None:
        match data.status:
            case "passkey_required":
                effects = {With.DETACH, With.RELEASE}
                await self._turn(event, State.PASSKEY_REQUIRED, "passkey_required", effects, _GIVE_UP)
            case "failed":
                await self._turn(event, State.FAILED, "worker_gave_up", {With.DETACH, With.RELEASE}, _GIVE_UP)
            case "disconnected":
                await self._turn(event, State.DISCONNECTED, "", {With.DETACH}, _NO_CODES)
            case "restricted":
                await self._restrict(event.sessionId)
            # The others have events of their own, which say more than a word.

    async def proxy_error(self, event: EventBody, data: ProxyErrorData) -> None:
        gaps = (self._rules.restarts.first_gap_ms, self._rules.restarts.longest_gap_ms)
        turned = await self._store.sessions.proxy_error(
            event.sessionId, event.timestamp, data.code, self._clock(), gaps
        )
        _log.warning(
            "session.proxy_error", session=event.sessionId, code=data.code, outcome=turned.outcome, proxy=turned.state
        )

    async def auth_failure(self, event: EventBody, data: AuthFailureData) -> None:
        """WhatsApp does not let this session in. Trying again would only make it worse."""
        if data.code in _BLOCKED:  # first: told again after a crash, this is done whatever the state is by then
            await self._restrict(event.sessionId)
        effects = {With.DETACH, With.RELEASE}
        await self._turn(event, State.FAILED, f"auth_failure:{data.code}", effects, _GIVE_UP)

    async def ping(self, event: EventBody, data: PingData) -> None:
        """Counts only if it proves something: an open socket that WhatsApp was heard on lately."""
        now = self._clock()
        session = await self._store.sessions.find(event.sessionId)
        heard = data.lastInboundAt is not None and now - data.lastInboundAt <= self._rules.ping_timeout_ms
        proof = data.socketOpen and heard
        if proof or session.scanning:  # nobody can be heard before the scan
            await self._store.sessions.ping(event.sessionId, now, proof)

    async def _restrict(self, session_id: str) -> None:
        """Until a person resumes it, unless WhatsApp has said until when already."""
        session, now = await self._store.sessions.find(session_id), self._clock()
        if session.phone is None or not session.is_heard:
            return
        account = (await self._store.accounts.look(phone=session.phone, now=now)).account
        if not held_until(account.restricted_until, now):
            await self._store.accounts.restrict(session.phone, None, now)

    async def _turn(
        self, event: EventBody, state: State, reason: str, effects: set[With], fields: Mapping[str, str | int]
    ) -> Turned:
        turned = await self._store.sessions.turn(
            event.sessionId, state, reason, self._clock(), {With.WORKER, *effects}, fields
        )
        if not turned.ok:
            _log.info("session.not_believed", session=event.sessionId, said=state.value, outcome=turned.outcome)
        elif turned.state != state:
            tell = _log.info if state is State.QR_READY else _log.warning
            tell(f"session.{state.value}", session=event.sessionId, was=turned.state, reason=reason)
        return turned


def _was_asked(session: Session) -> bool:
    """To log out, by us."""
    asked = session.order is not None and session.order.kind == "logout"
    return asked and session.is_heard and session.wanted is not Wanted.RUN
