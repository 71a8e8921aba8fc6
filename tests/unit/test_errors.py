"""Every error a caller can meet has a code of its own, a sentence, and its details."""

import re
from collections.abc import Iterator

from switchboard.domain import errors
from switchboard.domain.errors import SwitchboardError


def tree(root: type[SwitchboardError]) -> Iterator[type[SwitchboardError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


KINDS = [kind for kind in tree(SwitchboardError) if kind.__module__ == errors.__name__]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[A-Z]+(_[A-Z]+)*", code) for code in codes)


def test_the_codes_are_those_callers_rely_on() -> None:
    promised = """
        UNAUTHORIZED FORBIDDEN RATE_LIMITED INVALID_REQUEST SESSION_NOT_FOUND SESSION_NOT_LINKED
        RECIPIENT_OPTED_OUT DAILY_LIMIT_REACHED QUEUE_FULL IDEMPOTENCY_CONFLICT
    """
    assert set(promised.split()) <= {kind.code for kind in KINDS}


def test_the_picture_of_the_tree_shows_every_error() -> None:
    assert errors.__doc__ is not None
    drawn = re.findall(r"^(?:[│├└─ ]*)([A-Z][A-Za-z]+)(?:$|  )", errors.__doc__, re.MULTILINE)
    assert sorted(drawn) == sorted(kind.__name__ for kind in KINDS)


def test_an_error_carries_a_sentence_and_the_details_of_the_answer() -> None:
    error = errors.DailyLimitReached(20, 20, "2026-01-16T00:00:00+02:00")
    assert str(error) == error.message
    assert error.details == {"limit": 20, "sent": 20, "resetsAt": "2026-01-16T00:00:00+02:00"}


def test_a_wrong_field_is_named_when_there_is_one() -> None:
    assert errors.InvalidRequest("is too short", field="to").details == {"field": "to"}
    assert errors.InvalidRequest("is no JSON").details == {}
