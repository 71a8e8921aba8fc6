"""What the terminal shows: a QR code a camera can read, and words an operator can use."""

from datetime import UTC, datetime, timedelta

import pytest
import segno

from switchboard.cli import show

CODE = "2@" + "Q7xk9ZpLmT4vRn2bYw8sHc1dJf6gKe3a" * 5
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def modules(text: str) -> list[list[int]]:
    """The code as a camera sees it: each half of a block is one module."""
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    rows: list[list[int]] = []
    for line in text.split("\n"):
        rows += [[halves[block][half] for block in line] for half in (0, 1)]
    return rows


@pytest.mark.parametrize("code", [CODE, "2@short", CODE + "," + CODE[:77]])
def test_the_qr_code_in_the_terminal_is_the_qr_code(code: str) -> None:
    expected = [list(row) for row in segno.make(code, error="l", micro=False).matrix_iter(border=2)]
    seen = modules(show.qr(code).plain)
    assert [[int(bool(module)) for module in row] for row in expected] == seen[: len(expected)]
    assert not any(any(row) for row in seen[len(expected) :]), "a row that fills the last line is light"
    assert show.qr_size(code) == (len(expected[0]), len(seen) // 2)


def test_a_qr_code_is_dark_on_light_whatever_the_terminals_colours() -> None:
    assert str(show.qr(CODE).style) == "#000000 on #ffffff"


def test_phone_numbers_are_written_for_people() -> None:
    assert show.phone("972501234567") == "+972 50-123-4567"
    assert show.phone(None) == ""
    assert show.phone("1") == "+1"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "just now"), (40, "40 s ago"), (61, "1 min ago"), (7_300, "2 h ago"), (200_000, "2 d ago")],
)
def test_moments_are_told_by_how_long_ago_they_were(seconds: int, words: str) -> None:
    assert show.ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == words


def test_what_is_left_of_a_scan_never_goes_below_nothing() -> None:
    assert show.left((NOW + timedelta(seconds=272)).isoformat(), NOW) == "4:32"
    assert show.left((NOW - timedelta(seconds=5)).isoformat(), NOW) == "0:00"


def test_a_moment_to_come_is_told_by_how_long_it_takes_and_on_this_machines_clock() -> None:
    here = NOW.astimezone()
    for ahead, expected in (
        (timedelta(minutes=28, seconds=40), "in 28 min (%H:%M)"),
        (timedelta(seconds=20), "in 20 s (%H:%M)"),
        (timedelta(days=2, hours=3), "in 2 d (%Y-%m-%d %H:%M)"),
    ):
        assert show.soon((NOW + ahead).isoformat(), NOW) == (here + ahead).strftime(expected)
    assert show.soon((NOW - timedelta(minutes=1)).isoformat(), NOW).startswith("in 0 s")
    assert show.soon(None) == ""


def test_a_session_that_is_down_and_held_says_both() -> None:
    item = {"sessionId": "a", "reason": "auth_failure:status_403", "pausedReason": "restricted", "pausedUntil": None}
    assert "then start it; WhatsApp restricts this number; look at the phone" in show.why(item)
    assert show.why({**item, "reason": None, "pausedReason": None}) == ""
