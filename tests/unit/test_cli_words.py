"""What the terminal says about a reason: what happened, and what to do."""

from typing import get_args

import pytest

from switchboard.cli import words
from switchboard.orchestrator.prober import Code

OURS = (
    "scan_timeout", "logged_out", "by_request", "deleting", "logout_unconfirmed", "other_phone", "replaced",
    "passkey_required", "too_many_sessions", "worker_gave_up", "waiting_for_proxy", "proxy_error", "proxy_removed",
    "failover", "moving_to_own_proxy", "restart", "switchboard_stopped", "no_ping", "worker_gone", "worker_exited",
    "worker_exited:70", "not_started:it took too long", "crash_loop:worker_exited:74", "auth_failure:status_403",
)  # fmt: skip
"""Every reason that the server writes down by itself."""

OF_OUR_WORKER = (
    "restart_required", "qr_expired", "stopped", "failure_503", "failure_null", "http_502", "stream_error_503",
    "connection_lost", "connection_closed", "connection_closed_428",
)  # fmt: skip
FAULTS_OF_OUR_WORKER = (
    "auth_failed", "auth_refused", "timeout", "refused", "unknown_host", "unreachable", "connect_refused",
    "not_socks", "closed", "failed", "tls_not_trusted",
)  # fmt: skip


@pytest.mark.parametrize("reason", OURS + OF_OUR_WORKER)
def test_every_reason_of_ours_is_told_in_words(reason: str) -> None:
    assert words.reason(reason) != reason
    assert " " in words.reason(reason)


@pytest.mark.parametrize("code", sorted({*get_args(Code), *FAULTS_OF_OUR_WORKER} - {"ok"}))
def test_every_fault_of_a_proxy_is_told_in_words(code: str) -> None:
    assert " " in words.fault(code)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("scan_timeout", "it was not scanned in time"),
        ("worker_exited:137", "its worker ended by itself, code 137"),
        ("worker_exited", "its worker ended by itself"),
        ("worker_exited:74", "code 74 (it can't use its folder: free space, or make the folder writable)"),
        ("crash_loop:worker_exited:1", "(its worker ended by itself, code 1); see its log, then start it"),
        ("not_started:There is no worker to run: WORKER_COMMAND is not set.", "WORKER_COMMAND is not set"),
        ("auth_failure:status_403", "(status_403): it may be blocked; look at the phone, then start it"),
        ("auth_failure:client_outdated", "too old for WhatsApp: update it, then start it"),
        ("waiting_for_proxy", "(see: switchboard proxies list; add one: switchboard proxies add)"),
        ("stream_error_503", "broke (stream_error_503); it connects again by itself"),
        ("something_new", "something_new"),
        (None, ""),
    ],
)
def test_a_reason_says_what_to_know_and_do(reason: str | None, said: str) -> None:
    assert said in words.reason(reason)


@pytest.mark.parametrize(
    ("reason", "when", "said"),
    [
        (
            "rate_limited",
            "in 28 min (14:30)",
            'WhatsApp said "too fast"; it goes on by itself in 28 min (14:30), or: switchboard sessions resume a',
        ),
        ("by_request", "", "it is paused on request; to go on: switchboard sessions resume a"),
        ("restricted", "in 2 h (16:30)", "WhatsApp restricts this number; it goes on by itself in 2 h (16:30)"),
        (
            "restricted",
            "",
            "WhatsApp restricts this number; look at the phone, then: switchboard sessions resume a",
        ),
        (None, "", ""),
    ],
)
def test_a_hold_says_why_until_when_and_how_to_end_it(reason: str | None, when: str, said: str) -> None:
    assert words.hold(reason, when, "a") == said


def test_a_certificate_that_is_not_trusted_says_so_and_what_it_is_with_the_simulator() -> None:
    assert "the proxy may read along" in words.fault("tls_not_trusted")
    assert "NODE_EXTRA_CA_CERTS" in words.fault("tls_not_trusted")
    assert words.fault("something_new") == "something_new"
