"""A session: its states, which may follow which, and what a person may ask of it in each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from switchboard.domain.accounts import FOREVER, Account
from switchboard.domain.errors import InvalidTransition

DIRECT = "direct"
"""As a proxy id: none, on purpose."""


class State(StrEnum):
    STARTING = "starting"  # a worker is wanted, and has not spoken yet
    QR_READY = "qr_ready"  # waits for a person to scan, or to type a pairing code
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"  # it was open, or should be; it comes back by itself
    LOGGED_OUT = "logged_out"  # the phone unlinked it: a new scan is needed
    FAILED = "failed"  # it will not come back by itself; the reason says why
    STOPPED = "stopped"  # by a person, or not scanned in time
    PASSKEY_REQUIRED = "passkey_required"  # the phone asks for a passkey, which no worker can give
    PAUSED = "paused"  # connected, and its account is held: shown, never stored
    RESTRICTED = "restricted"  # the same, held by WhatsApp


_ENDS = {State.LOGGED_OUT, State.FAILED, State.STOPPED, State.PASSKEY_REQUIRED}
_UP = {State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED}

NEXT: Mapping[State, frozenset[State]] = {
    State.STARTING: frozenset(_UP | _ENDS),
    State.QR_READY: frozenset(_UP | _ENDS),
    # Connected to qr_ready is no way: a worker that lost its link says so, or starts anew, first.
    State.CONNECTED: frozenset((_UP | _ENDS) - {State.QR_READY}),
    State.DISCONNECTED: frozenset(_UP | _ENDS),
    # What has ended begins again only by being started; stopping it settles that it stays so.
    State.LOGGED_OUT: frozenset({State.STARTING, State.STOPPED, State.LOGGED_OUT}),
    State.FAILED: frozenset({State.STARTING, State.STOPPED, State.LOGGED_OUT}),
    State.STOPPED: frozenset({State.STARTING, State.LOGGED_OUT}),
    State.PASSKEY_REQUIRED: frozenset({State.STARTING, State.STOPPED, State.LOGGED_OUT}),
}
"""The one table of states. PAUSED and RESTRICTED are not in it: they lie over CONNECTED (see `shown`)."""


def sources(target: State) -> list[State]:
    """The states that may lead to `target`, for the move that checks them."""
    return [state for state, following in NEXT.items() if target in following]


class Wanted(StrEnum):
    """What a person wants of a session's worker. The fleet makes it so."""

    RUN = "run"
    STOP = "stop"
    DELETE = "delete"


class Command(StrEnum):
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    LOGOUT = "logout"
    PAUSE = "pause"
    RESUME = "resume"
    PAIR = "pairing-code"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is asked to do besides sending, until it is done or the time is over."""

    id: int
    kind: str  # logout | pair
    until: int
    phone: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One session as the store knows it."""

    id: str
    state: State
    created_at: int
    name: str | None = None
    device: str = ""
    phone: str | None = None  # of its last link
    declared: str | None = None  # the phone that is to scan it
    linked: bool = False  # it has auth data that WhatsApp accepted
    reason: str | None = None
    wanted: Wanted | None = None  # None: its worker is somebody else's business
    generation: int = 0  # grows whenever the worker must be replaced
    launched: int | None = None  # the generation that was started last
    proxy: str | None = None  # None while it has no place
    bound_at: int = 0
    connected_at: int | None = None
    last_ping: int | None = None
    started_at: int = 0
    not_before: int = 0  # no start before this moment
    ends: tuple[int, ...] = ()  # when its worker ended unasked, newest last
    silences: int = 0  # restarts in a row for want of a PING
    misses: int = 0  # starts in a row that found nothing to run on
    told: str | None = None  # what its worker was told of us, as a mark
    scan_by: int | None = None
    aside: bool = False  # its auth data is no good any more, and is to be put aside
    order: Order | None = None
    handle: str | None = None

    @property
    def is_heard(self) -> bool:
        """What its worker says counts: it is the one that was started last, or none of ours."""
        return self.launched is None or self.launched == self.generation

    @property
    def scanning(self) -> bool:
        """It has a place only for as long as the scan lasts."""
        return self.scan_by is not None


@dataclass(frozen=True, slots=True)
class Code:
    """What a person scans or types to link a phone."""

    text: str
    expires_at: int | None
    phone: str | None = None

    def good_at(self, now: int) -> bool:
        return self.expires_at is None or now < self.expires_at


def shown(session: Session, account: Account | None, now: int) -> tuple[State, int | None]:
    """The state to show, and until when a hold lasts (None: it has no end, or there is none)."""
    if account is None:
        return session.state, None
    until = max(held_until(account.paused_until, now), held_until(account.restricted_until, now))
    return shown_state(session.state, account, now), None if until in (0, _NEVER) else until


def shown_state(state: State, account: Account | None, now: int) -> State:
    if account is None or state is not State.CONNECTED:
        return state
    if held_until(account.restricted_until, now):
        return State.RESTRICTED
    return State.PAUSED if held_until(account.paused_until, now) else state


def hold_reason(account: Account, now: int) -> str | None:
    """Why it sends nothing: restricted (by WhatsApp), rate_limited (WhatsApp said "too fast") or by_request."""
    if held_until(account.restricted_until, now):
        return State.RESTRICTED.value
    return (account.pause_reason or "by_request") if held_until(account.paused_until, now) else None


_NEVER = 2**62


def held_until(moment: int, now: int) -> int:
    """0 if not held at `now`; a moment that never comes if it has no end."""
    if moment == FOREVER:
        return _NEVER
    return moment if moment > now else 0


_VERBS = {Command.LOGOUT: "log out", Command.PAIR: "get a pairing code for"}


def check(command: Command, session: Session) -> None:
    """Refuse what makes no sense for a session in this state, and say what would."""
    reason = _refusal(command, session)
    if reason:
        raise InvalidTransition(session.id, _VERBS.get(command, command.value), session.state.value, reason)


def possible(session: Session) -> frozenset[Command]:
    """What `check` lets pass."""
    return frozenset(command for command in Command if _refusal(command, session) is None)


def _refusal(command: Command, session: Session) -> str | None:
    if session.wanted is Wanted.DELETE:
        return None if command is Command.DELETE else "it is being deleted"
    ended = session.state in _ENDS
    match command:
        case Command.START if not ended:
            return "it runs already; restart it to begin anew"
        case Command.STOP if ended:
            return "it is stopped already" if session.state is State.STOPPED else "it does not run"
        case Command.RESTART if ended:
            return "it does not run; start it"
        case Command.PAUSE | Command.RESUME if session.phone is None:
            return "it was never linked to a phone, so there is nothing to send"
        case Command.PAIR if not session.scanning or ended:
            return "it does not wait for a scan; start it first"
        case Command.LOGOUT:
            return _no_logout(session, ended)
    return None


def _no_logout(session: Session, ended: bool) -> str | None:
    if session.phone is None:
        return "it was never linked to a phone; delete it instead"
    if session.state is State.LOGGED_OUT:
        return "it is logged out already"
    if ended:
        return "it does not run, so it can't tell WhatsApp; start it first, or remove the device on the phone"
    return None
