"""Three attempts with growing gaps; what cannot be repaired is not repeated; a held account costs no attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.accounts import FOREVER
from switchboard.domain.messages import Status
from switchboard.domain.retry import ACCOUNT_HELD, FINAL, FailureClass, Outcome, RetryRules, decide

NOW = 1_768_471_200_000
RULES = RetryRules()
COUNTED = [kind for kind in FailureClass if kind not in ACCOUNT_HELD]


def failed(kind: FailureClass, failures: int = 0, *, unknown: bool = False, until: int | None = None) -> Outcome:
    return decide(RULES, kind, failures, unknown, NOW, until)


def test_the_first_failure_is_tried_again_after_30_seconds() -> None:
    assert failed(FailureClass.RETRYABLE) == Outcome(Status.FAILED, 1, False, retry_at=NOW + 30_000)


def test_the_second_failure_is_tried_again_after_two_minutes() -> None:
    assert failed(FailureClass.RETRYABLE, 1) == Outcome(Status.FAILED, 2, False, retry_at=NOW + 120_000)


def test_the_third_failure_is_the_last() -> None:
    assert failed(FailureClass.RETRYABLE, 2) == Outcome(Status.DEAD, 3, False)


def test_the_number_of_attempts_is_a_setting() -> None:
    assert decide(RetryRules(max_attempts=1), FailureClass.RETRYABLE, 0, False, NOW).status is Status.DEAD
    fourth = decide(RetryRules(max_attempts=4), FailureClass.RETRYABLE, 2, False, NOW)
    assert fourth.retry_at == NOW + 480_000


@pytest.mark.parametrize("kind", [FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED])
def test_what_no_attempt_can_repair_is_dead_at_once(kind: FailureClass) -> None:
    assert failed(kind) == Outcome(Status.DEAD, 1, False)
    assert kind in FINAL


def test_too_fast_pauses_the_account_for_30_minutes_and_costs_the_message_no_attempt() -> None:
    assert failed(FailureClass.RATE_LIMITED, 2) == Outcome(Status.QUEUED, 2, False, paused_until=NOW + 30 * 60_000)


def test_a_restriction_lasts_until_the_time_whatsapp_states() -> None:
    assert failed(FailureClass.RESTRICTED, 2, until=NOW + 1) == Outcome(
        Status.QUEUED, 2, False, restricted_until=NOW + 1
    )


@pytest.mark.parametrize("until", [None, NOW, NOW - 1, 0])
def test_a_restriction_without_a_time_ahead_lasts_until_a_person_resumes_it(until: int | None) -> None:
    assert failed(FailureClass.RESTRICTED, until=until).restricted_until == FOREVER


def test_silence_is_tried_again_and_remembered() -> None:
    assert failed(FailureClass.UNCONFIRMED) == Outcome(Status.FAILED, 1, True, retry_at=NOW + 30_000)


def test_silence_to_the_end_leaves_the_message_unconfirmed() -> None:
    assert failed(FailureClass.UNCONFIRMED, 2, unknown=True).status is Status.UNCONFIRMED


def test_one_silent_attempt_among_failures_leaves_the_message_unconfirmed() -> None:
    assert failed(FailureClass.RETRYABLE, 2, unknown=True).status is Status.UNCONFIRMED
    assert failed(FailureClass.UNCONFIRMED, 2).status is Status.UNCONFIRMED


def test_a_held_account_keeps_what_is_known_about_the_message() -> None:
    for kind in ACCOUNT_HELD:
        outcome = failed(kind, 1, unknown=True)
        assert (outcome.failures, outcome.unknown, outcome.retry_at) == (1, True, None)


@given(st.lists(st.sampled_from(FailureClass)), st.integers(1, 5))
def test_any_sequence_of_failures_ends_after_the_allowed_attempts_and_in_the_right_place(
    kinds: list[FailureClass], max_attempts: int
) -> None:
    rules = RetryRules(max_attempts=max_attempts)
    failures, unknown, now = 0, False, NOW
    for number, kind in enumerate(kinds):
        outcome = decide(rules, kind, failures, unknown, now)
        counted = [before for before in kinds[: number + 1] if before in COUNTED]
        assert outcome.failures == len(counted) <= max_attempts
        assert outcome.status is expected_status(counted, kind, max_attempts)
        assert (outcome.retry_at is not None) is (outcome.status is Status.FAILED)
        if outcome.status in {Status.DEAD, Status.UNCONFIRMED}:
            return
        failures, unknown, now = outcome.failures, outcome.unknown, (outcome.retry_at or now)
    assert failures < max_attempts


def expected_status(counted: list[FailureClass], last: FailureClass, max_attempts: int) -> Status:
    if last in ACCOUNT_HELD:
        return Status.QUEUED
    if last in {FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED}:
        return Status.DEAD
    if len(counted) < max_attempts:
        return Status.FAILED
    return Status.UNCONFIRMED if FailureClass.UNCONFIRMED in counted else Status.DEAD
