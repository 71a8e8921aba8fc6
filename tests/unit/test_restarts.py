"""A worker that ended or went silent comes back after a gap that grows; a crash loop is given up, silence never."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.restarts import Again, GiveUp, RestartRules, after_end, after_silence, is_silent
from switchboard.domain.sessions import Session, State, Wanted

NOON = 1_781_006_400_000
RULES = RestartRules()
WINDOW = RULES.loop_window_ms
TIMEOUT = 180_000
RUNNING = Session("a", State.CONNECTED, 0, wanted=Wanted.RUN, generation=3, launched=3, started_at=NOON)


def test_the_gap_after_an_end_grows_until_it_is_given_up() -> None:
    ends: tuple[int, ...] = ()
    gaps = []
    for _ in range(4):
        verdict = after_end(RULES, ends, NOON)
        assert isinstance(verdict, Again)
        gaps.append(verdict.at - NOON)
        ends = verdict.ends
    assert gaps == [2_000, 8_000, 32_000, 128_000]
    assert after_end(RULES, ends, NOON) == GiveUp((NOON,) * 5)


def test_ends_before_the_window_are_forgotten() -> None:
    old = (NOON - WINDOW,) * 4
    assert after_end(RULES, old, NOON) == Again(NOON + 2_000, (NOON,))
    recent = (NOON - WINDOW + 1,) * 4
    assert after_end(RULES, recent, NOON) == GiveUp((*recent, NOON))


def test_no_gap_is_longer_than_the_longest() -> None:
    patient = RestartRules(loop_ends=1_000)
    verdict = after_end(patient, (NOON,) * 500, NOON)
    assert verdict == Again(NOON + patient.longest_gap_ms, (NOON,) * 501)


@given(st.lists(st.integers(0, 2 * WINDOW), max_size=40).map(sorted))
def test_a_crash_loop_is_five_ends_within_ten_minutes_and_nothing_else(moments: list[int]) -> None:
    ends: tuple[int, ...] = ()
    for count, moment in enumerate(moments, start=1):
        verdict = after_end(RULES, ends, moment)
        ends = verdict.ends
        assert ends == tuple(end for end in moments[:count] if end > moment - WINDOW)
        assert isinstance(verdict, GiveUp) is (len(ends) >= RULES.loop_ends)
        if isinstance(verdict, GiveUp):
            return
        assert moment < verdict.at <= moment + RULES.longest_gap_ms


def test_silence_is_met_at_once_and_then_with_growing_gaps_for_ever() -> None:
    gaps = [after_silence(RULES, silences, NOON) - NOON for silences in range(7)]
    assert gaps == [0, 8_000, 32_000, 128_000, 512_000, 900_000, 900_000]
    assert after_silence(RULES, 10_000, NOON) == NOON + RULES.longest_gap_ms


@pytest.mark.parametrize(
    ("since", "last_ping", "silent_after"),
    [
        (0, None, NOON + TIMEOUT),  # from when it was started,
        (0, NOON + 5, NOON + 5 + TIMEOUT),  # from its last word,
        (NOON + 9, NOON + 5, NOON + 9 + TIMEOUT),  # or from when we began to listen, whichever was last
        (0, NOON - 5, NOON + TIMEOUT),
    ],
)
def test_silence_is_counted_from_the_last_moment_it_could_have_been_heard(
    since: int, last_ping: int | None, silent_after: int
) -> None:
    session = replace(RUNNING, last_ping=last_ping)
    assert not is_silent(session, since, TIMEOUT, silent_after)
    assert is_silent(session, since, TIMEOUT, silent_after + 1)


@pytest.mark.parametrize("state", [State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED])
def test_a_worker_must_be_heard_of_in_every_state_in_which_it_runs(state: State) -> None:
    assert is_silent(replace(RUNNING, state=state), 0, TIMEOUT, NOON + TIMEOUT + 1)


@pytest.mark.parametrize("state", [State.LOGGED_OUT, State.FAILED, State.STOPPED, State.PASSKEY_REQUIRED])
def test_nothing_is_expected_of_a_session_that_has_ended(state: State) -> None:
    assert not is_silent(replace(RUNNING, state=state), 0, TIMEOUT, NOON + 10 * TIMEOUT)


@pytest.mark.parametrize(
    "session",
    [
        replace(RUNNING, wanted=Wanted.STOP),
        replace(RUNNING, wanted=Wanted.DELETE),
        replace(RUNNING, wanted=None),
        replace(RUNNING, launched=2),  # the one that is wanted was not started yet
        replace(RUNNING, launched=None),
    ],
)
def test_nor_of_a_worker_that_is_not_the_one_we_started(session: Session) -> None:
    assert not is_silent(session, 0, TIMEOUT, NOON + 10 * TIMEOUT)
