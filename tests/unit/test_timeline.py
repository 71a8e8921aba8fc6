"""The steps of a message's way, as they are marked for each status."""

from typing import Any

import pytest

from switchboard.dashboard.pages.timeline import Mark, Step, timeline
from switchboard.domain.messages import Message, Place, Status, Waiting


def message(status: Status, **facts: Any) -> Message:
    return Message("m", "972509876543", "hello", status, Place.DONE, 1, 100, **facts)


def marks(steps: list[Step]) -> str:
    """One letter each: done, current, future, ended."""
    return "".join(step.mark[0] for step in steps)


@pytest.mark.parametrize(
    ("status", "marked"),
    [
        (Status.QUEUED, "dcfff"),
        (Status.FAILED, "dcfff"),
        (Status.SENDING, "ddcff"),
        (Status.SENT, "dddcf"),
        (Status.DELIVERED, "ddddc"),
        (Status.READ, "ddddd"),
        (Status.CANCELLED, "de"),
        (Status.DEAD, "de"),
        (Status.UNCONFIRMED, "de"),
    ],
)
def test_what_is_behind_it_and_what_it_waits_for(status: Status, marked: str) -> None:
    assert marks(timeline(message(status))) == marked


def test_a_moment_to_wait_for_is_a_step_of_its_own() -> None:
    assert marks(timeline(message(Status.SCHEDULED, scheduled_for=500))) == "dcffff"
    assert marks(timeline(message(Status.QUEUED, scheduled_for=500))) == "ddcfff"
    assert timeline(message(Status.SCHEDULED, scheduled_for=500))[1] == Step("scheduled", Mark.CURRENT, 500)


def test_one_put_off_to_the_next_day_says_so_whatever_moment_was_asked_for() -> None:
    put_off = {"wait_reason": Waiting.DAILY_LIMIT, "due": 900}
    for asked in (None, 500):
        steps = timeline(message(Status.SCHEDULED, scheduled_for=asked, **put_off))
        assert steps[1] == Step("put_off", Mark.CURRENT, 900)
        assert marks(steps) == "dcffff"
    assert timeline(message(Status.CANCELLED, **put_off))[1] == Step("cancelled", Mark.ENDED)


def test_what_lies_ahead_can_be_told_from_what_is_done() -> None:
    assert [step.lies_ahead for step in timeline(message(Status.SENDING))] == [False, False, True, True, True]
    assert not any(step.lies_ahead for step in timeline(message(Status.DEAD, attempts=1)))


def test_one_that_ended_after_an_attempt_was_handed_over() -> None:
    steps = timeline(message(Status.DEAD, attempts=3, handed_at=700))
    assert steps == [Step("accepted", Mark.DONE, 100), Step("handed_over", Mark.DONE, 700), Step("dead", Mark.ENDED)]


def test_a_step_that_is_not_done_has_no_moment() -> None:
    """Of an attempt that failed: it is to be handed over anew."""
    assert timeline(message(Status.FAILED, handed_at=700))[1] == Step("handed_over", Mark.CURRENT)
