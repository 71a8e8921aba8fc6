"""What the dashboard says about reasons, waits and events, in each of its languages."""

from typing import get_args
from zoneinfo import ZoneInfo

import pytest

from switchboard.cli.words import REASONS
from switchboard.dashboard.catalogue import NAMES, Catalogue
from switchboard.dashboard.formats import Formats
from switchboard.dashboard.words import Words
from switchboard.domain.messages import Waiting
from switchboard.domain.retry import FailureClass
from switchboard.domain.sessions import State
from switchboard.orchestrator.prober import Code

_CATALOGUE = Catalogue()
_MORE_REASONS = (
    "worker_exited", "worker_exited:70", "worker_exited:74", "not_started:it took too long", "failure_503",
    "crash_loop:worker_exited:74", "auth_failure:status_403", "stream_error_503", "connection_closed", "http_502",
)  # fmt: skip
_EVENTS = (
    *(f"session.{state}" for state in State), "session.resumed", "session.deleted", "session.qr",
    "session.pairing_code", "proxy.added", "proxy.removed", "proxy.bad", "proxy.recovered", "proxy.failover",
    "proxy.moved", "proxy.split", "account.burst", "account.paused", "account.restricted", "account.resumed",
    "message.sent", "message.delivered", "message.read", "message.failed", "message.dead", "message.unconfirmed",
    "message.cancelled", "message.discarded", "message.redriven", "message.received", "inventory.low",
    "inventory.enough", "QR_CODE", "PAIRING_CODE", "CONNECTED", "DISCONNECTED", "STATUS_CHANGE", "PROXY_ERROR",
    "AUTH_FAILURE",
)  # fmt: skip
"""Every kind that the store or a worker writes down."""


def speak(language: str) -> Words:
    return Words(_CATALOGUE[language], Formats(language, ZoneInfo("Asia/Jerusalem")))


ENGLISH = speak("en")
PHONE, CARD = "972501234567", "\u2066+972 50-123-4567\u2069"


@pytest.fixture(params=NAMES)
def words(request: pytest.FixtureRequest) -> Words:
    return speak(request.param)


@pytest.mark.parametrize("word", [*REASONS, *_MORE_REASONS])
def test_every_reason_of_a_session_is_told_in_words(words: Words, word: str) -> None:
    said = words.reason(word)
    assert " " in said
    assert "{" not in said


@pytest.mark.parametrize("word", Waiting)
def test_every_wait_is_told_in_words_with_its_moment(words: Words, word: Waiting) -> None:
    assert words.waiting(word) != word or word == "scheduled"
    assert "12:34" in words.waiting(word, "2026-03-01T12:34:00+02:00")


@pytest.mark.parametrize("kind", _EVENTS)
def test_every_event_is_a_sentence_whether_its_fields_are_there_or_not(words: Words, kind: str) -> None:
    bare = words.event(kind, {})
    assert bare != kind
    assert "{" not in bare
    full = words.event(kind, dict.fromkeys(("account", "phoneNumber", "from", "to", "reason", "code"), "x"))
    assert "{" not in full


@pytest.mark.parametrize("word", FailureClass)
def test_every_class_of_failures_is_told_in_words(words: Words, word: FailureClass) -> None:
    assert " " in words.failure(word)


@pytest.mark.parametrize("code", sorted({*get_args(Code)} - {"ok"}))
def test_every_fault_of_a_proxy_is_told_in_words(words: Words, code: str) -> None:
    assert " " in words.fault(code)


@pytest.mark.parametrize("word", ["something_new", "broken", "exit_74", "until", "{detail}", "a:b", "<b>x</b>"])
def test_what_nobody_here_knows_is_shown_as_it_is(words: Words, word: str) -> None:
    assert words.reason(word) == words.waiting(word) == words.fault(word) == words.failure(word) == word
    assert words.event(word, {"detail": "y"}) == word
    assert word in words.hold(word, None)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "crash_loop:worker_exited:74",
            "again and again (its worker ended by itself (code 74: it can't use its folder",
        ),
        ("worker_exited:137", "its worker ended by itself (code 137)"),
        ("not_started:There is no worker: {x}", "could not be started: There is no worker: {x}"),
        ("auth_failure:status_403", "(status_403): it may be blocked"),
        ("auth_failure:client_outdated", "too old for WhatsApp"),
        ("stream_error_503", "broke (stream_error_503)"),
        (None, ""),
        ("", ""),
    ],
)
def test_a_reason_with_a_detail_says_both(reason: str | None, said: str) -> None:
    assert said in ENGLISH.reason(reason)


@pytest.mark.parametrize(
    ("reason", "until", "said"),
    [
        ("rate_limited", "2026-03-01T14:30:00+02:00", "WhatsApp said “too fast”; it goes on by itself: 1 Mar, 14:30"),
        ("by_request", None, "paused on request, until it is resumed"),
        ("restricted", None, "WhatsApp restricts this number; look at the phone, then resume it"),
        (None, None, ""),
    ],
)
def test_a_hold_says_why_and_how_it_ends(reason: str | None, until: str | None, said: str) -> None:
    assert ENGLISH.hold(reason, until) == said


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("session.connected", {"sessionId": "a", "account": PHONE}, "a: Connected as " + CARD),
        ("session.connected", {"account": PHONE}, "Connected as " + CARD),
        ("session.stopped", {"reason": "scan_timeout"}, "Stopped: it was not scanned in time; scan it anew"),
        ("session.starting", {"reason": "", "sessionId": "a"}, "a: Starting"),
        ("session.paused", {"reason": "by_request"}, "Its number is paused"),
        ("session.paused", {"reason": "rate_limited"}, "Its number is paused: WhatsApp said “too fast”"),
        ("account.restricted", {"account": "x", "reason": "by_request"}, "\u2066x\u2069 is restricted by WhatsApp"),
        ("proxy.failover", {"from": "proxy_1", "to": "proxy_2"}, "Moved from proxy_1 to proxy_2"),
        ("proxy.bad", {"proxyId": "proxy_1", "reason": "timeout"}, "proxy_1 does not work: did not answer in time"),
        ("message.dead", {"reason": "refused", "error": "e_1"}, "A message was given up: WhatsApp refused it (e_1)"),
        ("message.received", {"from": PHONE}, "A message came in from " + CARD),
        ("STATUS_CHANGE", {"status": "restricted", "late": "True"}, "The worker reports: Restricted (told late)"),
        ("DISCONNECTED", {"reason": "stopped", "sessionId": "a"}, "a: The worker was stopped"),
        ("DISCONNECTED", {"reason": "something"}, "The worker lost the connection: something"),
        ("SOMETHING_NEW", {"sessionId": "a"}, "a: SOMETHING_NEW"),
    ],
)  # fmt: skip
def test_an_event_says_who_what_and_why(kind: str, fields: dict[str, str], said: str) -> None:
    assert ENGLISH.event(kind, fields) == said


def test_the_text_of_a_message_is_never_told() -> None:
    assert "secret" not in ENGLISH.event("message.received", {"from": "1", "text": "secret"})


def test_the_languages_have_the_same_words_with_the_same_places() -> None:
    english, hebrew = (_CATALOGUE[language].texts for language in ("en", "he"))
    pages = ("reason.", "waiting.", "event.", "words.")
    assert {key for key in english if key.startswith(pages)} == {key for key in hebrew if key.startswith(pages)}
