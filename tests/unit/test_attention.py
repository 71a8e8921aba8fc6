"""Which sessions need a person: what will not mend itself, and was not wanted."""

from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.accounts import FOREVER, Account, Profile
from switchboard.domain.attention import Attention, Rank, attention, rank
from switchboard.domain.sessions import NEXT, State

NOON = 1_781_006_400_000
RUNNING = [State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED]


def held(paused: int = 0, restricted: int = 0) -> Account:
    return Account(Profile("972500000001", 1, NOON, ZoneInfo("UTC")), paused_until=paused, restricted_until=restricted)


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        (State.FAILED, "replaced", Attention.FAILED),
        (State.FAILED, None, Attention.FAILED),
        (State.PASSKEY_REQUIRED, "passkey_required", Attention.PASSKEY_REQUIRED),
        (State.LOGGED_OUT, "logged_out", Attention.LOGGED_OUT),
        (State.LOGGED_OUT, "logout_unconfirmed", Attention.LOGGED_OUT),
        (State.LOGGED_OUT, None, Attention.LOGGED_OUT),
        (State.LOGGED_OUT, "by_request", None),
        (State.STOPPED, "scan_timeout", Attention.SCAN_TIMEOUT),
        (State.STOPPED, "by_request", None),
        (State.STOPPED, "deleting", None),
        (State.DISCONNECTED, "waiting_for_proxy", Attention.WAITING_FOR_PROXY),
        (State.DISCONNECTED, "no_ping", None),
        (State.QR_READY, None, None),
        (State.STARTING, None, None),
        (State.CONNECTED, None, None),
    ],
)
def test_it_needs_a_person_if_it_will_not_go_on_by_itself(state: State, reason: str | None, code: str | None) -> None:
    assert attention(state, reason, None) == code
    assert attention(state, reason, held(paused=FOREVER)) == code
    assert attention(state, reason, held(restricted=NOON + 1)) == code


@pytest.mark.parametrize("state", list(NEXT))
def test_a_restriction_without_an_end_needs_a_person_while_the_session_runs(state: State) -> None:
    found = attention(state, "by_request", held(restricted=FOREVER))
    assert (found is Attention.RESTRICTED) is (state in RUNNING)


@pytest.mark.parametrize(
    ("state", "reason", "account", "expected"),
    [
        (State.FAILED, None, None, Rank.NEEDS_A_PERSON),
        (State.CONNECTED, None, held(restricted=FOREVER), Rank.NEEDS_A_PERSON),
        (State.CONNECTED, None, held(restricted=NOON + 1), Rank.IN_TROUBLE),
        (State.CONNECTED, None, held(restricted=NOON), Rank.AT_REST),
        (State.DISCONNECTED, "no_ping", None, Rank.IN_TROUBLE),
        (State.QR_READY, None, None, Rank.ON_ITS_WAY),
        (State.STARTING, "failover", None, Rank.ON_ITS_WAY),
        (State.CONNECTED, None, held(paused=FOREVER), Rank.AT_REST),
        (State.CONNECTED, None, None, Rank.AT_REST),
        (State.STOPPED, "by_request", None, Rank.AT_REST),
        (State.LOGGED_OUT, "by_request", None, Rank.AT_REST),
    ],
)
def test_trouble_comes_first_then_what_is_on_its_way_then_the_rest(
    state: State, reason: str | None, account: Account | None, expected: Rank
) -> None:
    assert rank(state, reason, account, NOON) is expected
