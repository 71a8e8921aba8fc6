"""Which sessions need a person, and which a person should see first."""

from enum import IntEnum, StrEnum

from switchboard.domain.accounts import FOREVER, Account
from switchboard.domain.sessions import State, shown_state


class Attention(StrEnum):
    """Why a session will not go on until a person does something."""

    FAILED = "failed"
    LOGGED_OUT = "logged_out"  # by its phone: it is to be scanned anew
    PASSKEY_REQUIRED = "passkey_required"
    SCAN_TIMEOUT = "scan_timeout"  # nobody scanned it in time
    RESTRICTED = "restricted"  # WhatsApp named no end
    WAITING_FOR_PROXY = "waiting_for_proxy"  # the pool has none for it


class Rank(IntEnum):
    """The order of an overview: the lower, the sooner it is to be seen."""

    NEEDS_A_PERSON = 0
    IN_TROUBLE = 1  # it comes back by itself
    ON_ITS_WAY = 2
    AT_REST = 3


_RUNNING = frozenset({State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED})
_TROUBLE = frozenset({State.DISCONNECTED, State.RESTRICTED})
_ON_ITS_WAY = frozenset({State.STARTING, State.QR_READY})


def attention(state: State, reason: str | None, account: Account | None) -> Attention | None:
    """`state` is the session's own. What a person wanted (stopped, logged out on request, paused) needs nobody."""
    match state, reason:
        case State.FAILED, _:
            return Attention.FAILED
        case State.PASSKEY_REQUIRED, _:
            return Attention.PASSKEY_REQUIRED
        case State.LOGGED_OUT, why if why != "by_request":
            return Attention.LOGGED_OUT
        case State.STOPPED, "scan_timeout":
            return Attention.SCAN_TIMEOUT
        case State.DISCONNECTED, "waiting_for_proxy":
            return Attention.WAITING_FOR_PROXY
    if state in _RUNNING and account is not None and account.restricted_until == FOREVER:
        return Attention.RESTRICTED
    return None


def rank(state: State, reason: str | None, account: Account | None, now: int) -> Rank:
    if attention(state, reason, account):
        return Rank.NEEDS_A_PERSON
    seen = shown_state(state, account, now)
    if seen in _TROUBLE:
        return Rank.IN_TROUBLE
    return Rank.ON_ITS_WAY if seen in _ON_ITS_WAY else Rank.AT_REST
