"""A session's states: which may follow which, what a person may ask in each, and what is shown of it."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.accounts import FOREVER, Account, Profile
from switchboard.domain.errors import InvalidTransition
from switchboard.domain.sessions import NEXT, Code, Command, Session, State, Wanted, check, held_until, shown, sources

NOON = 1_781_006_400_000
STORED = [state for state in State if state not in (State.PAUSED, State.RESTRICTED)]

WAYS = """
    from                starting qr_ready connected disconnected logged_out failed stopped passkey_required
    starting            yes      yes      yes       yes          yes        yes    yes     yes
    qr_ready            yes      yes      yes       yes          yes        yes    yes     yes
    connected           yes      -        yes       yes          yes        yes    yes     yes
    disconnected        yes      yes      yes       yes          yes        yes    yes     yes
    logged_out          yes      -        -         -            yes        -      yes     -
    failed              yes      -        -         -            yes        -      yes     -
    stopped             yes      -        -         -            yes        -      -       -
    passkey_required    yes      -        -         -            yes        -      yes     -
"""
"""Every state that is stored against every other. What has ended begins again only by being started."""


def ways() -> dict[tuple[State, State], bool]:
    [header, *rows] = [line.split() for line in WAYS.strip().splitlines()]
    cells = [(row[0], to, word) for row in rows for to, word in zip(header[1:], row[1:], strict=True)]
    return {(State(old), State(new)): word == "yes" for old, new, word in cells}


@pytest.mark.parametrize("old", STORED)
@pytest.mark.parametrize("new", STORED)
def test_a_state_follows_another_as_the_table_says(old: State, new: State) -> None:
    assert (new in NEXT[old]) is ways()[old, new]
    assert (old in sources(new)) is ways()[old, new]


def test_the_table_knows_every_stored_state_and_no_other() -> None:
    assert set(NEXT) == set(STORED)
    assert set(ways()) == {(old, new) for old in STORED for new in STORED}


@pytest.mark.parametrize("only_shown", [State.PAUSED, State.RESTRICTED])
def test_a_hold_is_shown_and_never_entered_or_left(only_shown: State) -> None:
    assert only_shown not in NEXT
    assert sources(only_shown) == []


# What a person may ask. A linked session has a phone; one that waits for its scan has a time to be scanned by.

LINKED = Session("a", State.CONNECTED, NOON, phone="972500000001", wanted=Wanted.RUN)
SCANNING = Session("a", State.QR_READY, NOON, wanted=Wanted.RUN, scan_by=NOON + 1)

RUNS = "it runs already; restart it to begin anew"
STOPPED = "it is stopped already"
DOES_NOT_RUN = "it does not run"
VERBS = {Command.LOGOUT: "log out", Command.PAIR: "get a pairing code for"}
ENDED = "it does not run; start it"
OUT = "it is logged out already"
GONE = "it does not run, so it can't tell WhatsApp; start it first, or remove the device on the phone"
NEVER = "it was never linked to a phone; delete it instead"
NOBODY = "it was never linked to a phone, so there is nothing to send"
NO_SCAN = "it does not wait for a scan; start it first"
UP = ["starting", "qr_ready", "connected", "disconnected"]
ENDS = ["logged_out", "failed", "stopped", "passkey_required"]

OF_A_LINKED_ONE: dict[Command, dict[str, str]] = {
    Command.START: dict.fromkeys(UP, RUNS),
    Command.STOP: dict.fromkeys(ENDS, DOES_NOT_RUN) | {"stopped": STOPPED},
    Command.RESTART: dict.fromkeys(ENDS, ENDED),
    Command.LOGOUT: dict.fromkeys(ENDS, GONE) | {"logged_out": OUT},
    Command.PAUSE: {},
    Command.RESUME: {},
    Command.PAIR: dict.fromkeys(UP + ENDS, NO_SCAN),
    Command.DELETE: {},
}
OF_ONE_THAT_WAITS_FOR_ITS_SCAN: dict[Command, dict[str, str]] = {
    **OF_A_LINKED_ONE,
    Command.LOGOUT: dict.fromkeys(UP + ENDS, NEVER),
    Command.PAUSE: dict.fromkeys(UP + ENDS, NOBODY),
    Command.RESUME: dict.fromkeys(UP + ENDS, NOBODY),
    Command.PAIR: dict.fromkeys(ENDS, NO_SCAN),
}
"""What is refused, in which state, and why. All else is allowed."""


def refusal(command: Command, session: Session) -> str | None:
    try:
        check(command, session)
        return None
    except InvalidTransition as error:
        refused = error
    assert refused.details == {"sessionId": "a", "status": session.state.value}
    asked, _, reason = refused.message.partition(": ")
    assert asked == f"Can't {VERBS.get(command, command.value)} session 'a', which is '{session.state.value}'"
    return reason.removesuffix(".")


@pytest.mark.parametrize("state", STORED)
@pytest.mark.parametrize("command", Command)
def test_a_command_is_refused_where_it_makes_no_sense(command: Command, state: State) -> None:
    assert refusal(command, replace(LINKED, state=state)) == OF_A_LINKED_ONE[command].get(state)
    waiting = replace(SCANNING, state=state)
    assert refusal(command, waiting) == OF_ONE_THAT_WAITS_FOR_ITS_SCAN[command].get(state)


@pytest.mark.parametrize("state", STORED)
@pytest.mark.parametrize("command", Command)
def test_a_session_that_is_being_deleted_can_only_be_deleted(command: Command, state: State) -> None:
    going = replace(LINKED, state=state, wanted=Wanted.DELETE)
    assert refusal(command, going) == (None if command is Command.DELETE else "it is being deleted")


# What is shown.


def held(paused: int = 0, restricted: int = 0) -> Account:
    profile = Profile("972500000001", 1, NOON, ZoneInfo("UTC"))
    return Account(profile, paused_until=paused, restricted_until=restricted)


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (None, (State.CONNECTED, None)),
        (held(), (State.CONNECTED, None)),
        (held(paused=NOON), (State.CONNECTED, None)),
        (held(paused=NOON + 1), (State.PAUSED, NOON + 1)),
        (held(paused=FOREVER), (State.PAUSED, None)),
        (held(restricted=NOON + 1), (State.RESTRICTED, NOON + 1)),
        (held(restricted=FOREVER), (State.RESTRICTED, None)),
        (held(paused=NOON + 2, restricted=NOON + 1), (State.RESTRICTED, NOON + 2)),
        (held(paused=NOON + 1, restricted=NOON), (State.PAUSED, NOON + 1)),
        (held(paused=FOREVER, restricted=NOON + 1), (State.RESTRICTED, None)),
    ],
)
def test_a_hold_of_the_account_lies_over_connected(account: Account | None, expected: tuple[State, int | None]) -> None:
    assert shown(LINKED, account, NOON) == expected


@pytest.mark.parametrize("state", [state for state in STORED if state is not State.CONNECTED])
def test_a_hold_hides_no_other_state_but_its_end_is_told(state: State) -> None:
    session = replace(LINKED, state=state)
    assert shown(session, held(paused=NOON + 1), NOON) == (state, NOON + 1)
    assert shown(session, held(restricted=FOREVER), NOON) == (state, None)


def test_what_is_over_holds_nothing_and_for_ever_outlasts_all() -> None:
    assert held_until(0, NOON) == 0
    assert held_until(NOON, NOON) == 0
    assert held_until(NOON + 1, NOON) == NOON + 1
    assert held_until(FOREVER, NOON) > NOON + 100 * 365 * 86_400_000


def test_a_code_is_good_until_the_moment_it_expires() -> None:
    assert Code("2@x", NOON).good_at(NOON - 1)
    assert not Code("2@x", NOON).good_at(NOON)
    assert Code("2@x", None).good_at(NOON)


def test_a_session_waits_for_a_scan_while_it_has_a_time_for_it() -> None:
    assert SCANNING.scanning
    assert not LINKED.scanning
