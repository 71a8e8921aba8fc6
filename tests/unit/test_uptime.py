"""The up-time strip: spans that touch, cut at both ends, and the share of the time it was up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.sessions import State
from switchboard.domain.uptime import Span, share_up, strip

UP, DOWN, STARTING = State.CONNECTED, State.DISCONNECTED, State.STARTING


def test_changes_become_spans_that_touch_and_the_last_one_lasts() -> None:
    assert strip([(10, STARTING), (20, UP), (50, DOWN)], 0, 100) == [
        Span(STARTING, 10, 20),
        Span(UP, 20, 50),
        Span(DOWN, 50, 100),
    ]


def test_what_held_before_the_stretch_is_cut_at_its_start() -> None:
    assert strip([(10, UP), (50, DOWN)], 30, 60) == [Span(UP, 30, 50), Span(DOWN, 50, 60)]


def test_what_came_after_the_stretch_is_left_out() -> None:
    assert strip([(10, UP), (50, DOWN), (70, UP)], 0, 60) == [Span(UP, 10, 50), Span(DOWN, 50, 60)]


def test_a_state_that_took_no_time_is_not_there_and_what_it_parted_is_one_span() -> None:
    assert strip([(10, UP), (20, DOWN), (20, UP)], 0, 30) == [Span(UP, 10, 30)]


@pytest.mark.parametrize(("changes", "start", "end"), [([], 0, 10), ([(10, UP)], 0, 10), ([(0, UP)], 5, 5)])
def test_where_nothing_is_known_there_is_no_span(changes: list[tuple[int, State]], start: int, end: int) -> None:
    assert strip(changes, start, end) == []


def test_the_share_is_of_the_time_that_is_known() -> None:
    assert share_up(strip([(50, UP), (75, DOWN)], 0, 100)) == 0.5
    assert share_up(strip([(50, UP)], 0, 100)) == 1
    assert share_up(strip([(0, STARTING)], 0, 100)) == 0
    assert share_up([]) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from([UP, DOWN, STARTING])), max_size=20))
def test_at_every_moment_the_strip_says_what_the_newest_change_said(changes: list[tuple[int, State]]) -> None:
    changes.sort(key=lambda change: change[0])
    spans = strip(changes, 20, 80)
    for moment in range(20, 80):
        newest = [state for at, state in changes if at <= moment][-1:]
        assert [span.state for span in spans if span.start <= moment < span.end] == newest
    assert all(one.state is not other.state and one.end == other.start for one, other in pairwise(spans))
