"""What comes back from a browser counts only if it is ours, for the purpose it was made for, and in time."""

import base64
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.dashboard.access.scan_links import ScanClaim, ScanLinks, still_good
from switchboard.dashboard.access.signing import Signer
from switchboard.domain.errors import ScanLinkExpired, ScanLinkInvalid
from switchboard.domain.sessions import Session, State

HOUR = 3_600_000
SIGNER = Signer("a secret of some length")
SESSION = Session("worker_1", State.QR_READY, created_at=1_000)


class Watch:
    now = 5_000

    def __call__(self) -> int:
        return self.now


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_was_signed_opens_and_fits_into_a_url(value: str) -> None:
    signed = SIGNER.sign("cookie", value)
    assert re.fullmatch(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+", signed)
    assert SIGNER.open("cookie", signed) == value


def test_it_opens_for_its_own_purpose_and_secret_only() -> None:
    signed = SIGNER.sign("cookie", "value")
    assert SIGNER.open("scan", signed) is None
    assert Signer("another secret").open("cookie", signed) is None
    assert Signer(b"a secret of some length").open("cookie", signed) == "value"


def test_every_changed_character_is_noticed() -> None:
    signed = SIGNER.sign("cookie", "value")
    for place in range(len(signed)):
        other = "A" if signed[place] != "A" else "B"
        assert SIGNER.open("cookie", signed[:place] + other + signed[place + 1 :]) is None


@pytest.mark.parametrize(
    "signed", ["", ".", "..", "value", "value.", ".sig", "ערך.חתימה", "a.\udcff", "\udcff.a", "%%.=="]
)
def test_what_is_nothing_of_the_kind_is_refused_quietly(signed: str) -> None:
    assert SIGNER.open("cookie", signed) is None


def test_a_purpose_and_a_value_are_not_mixed_up() -> None:
    assert SIGNER.mark("a", "bc") != SIGNER.mark("ab", "c")


def test_a_mark_does_not_show_its_value() -> None:
    mark = SIGNER.mark("csrf", "token")
    assert "token" not in mark
    assert len(base64.urlsafe_b64decode(mark + "=")) == 32


def test_there_is_no_signing_with_an_empty_secret() -> None:
    with pytest.raises(ValueError, match="empty"):
        Signer("")


def test_a_link_says_for_which_session_and_until_when() -> None:
    watch = Watch()
    links = ScanLinks(SIGNER, watch, HOUR)
    link = links.make(SESSION)
    assert link.expires_at == 5_000 + HOUR
    watch.now = link.expires_at - 1
    assert links.read(link.token) == ScanClaim("worker_1", 1_000, 5_000, link.expires_at)


def test_a_link_ends_at_its_moment() -> None:
    watch = Watch()
    links = ScanLinks(SIGNER, watch, HOUR)
    link = links.make(SESSION)
    watch.now = link.expires_at
    with pytest.raises(ScanLinkExpired):
        links.read(link.token)


def test_a_link_of_somebody_else_is_none() -> None:
    foreign = ScanLinks(Signer("another secret"), Watch(), HOUR).make(SESSION)
    links = ScanLinks(SIGNER, Watch(), HOUR)
    for token in (foreign.token, SIGNER.sign("cookie", "1000.5000.9999999999.worker_1"), "", "worker_1"):
        with pytest.raises(ScanLinkInvalid):
            links.read(token)


CLAIM = ScanClaim("worker_1", 1_000, 5_000, 5_000 + HOUR)


def test_a_link_is_good_for_the_very_session_it_was_made_for() -> None:
    assert still_good(CLAIM, SESSION)
    assert not still_good(CLAIM, replace(SESSION, id="worker_2"))
    assert not still_good(CLAIM, replace(SESSION, created_at=2_000)), "deleted, and made again under the same name"


def test_a_link_is_used_up_by_the_scan_that_follows_it() -> None:
    assert still_good(CLAIM, replace(SESSION, connected_at=4_999)), "an older link of the phone, since lost"
    for linked in (True, False):
        after = replace(SESSION, connected_at=6_000, linked=linked)
        assert not still_good(CLAIM, after), "also when the phone unlinked it again"
    assert not still_good(CLAIM, replace(SESSION, connected_at=5_000))
