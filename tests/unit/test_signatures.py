"""A request is believed only when the holder of that worker's secret signed exactly these bytes, just now."""

import base64
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.errors import Unauthorized
from switchboard.web.signatures import sign, verify, worker_secret

VECTOR = Path(__file__).parents[2] / "protocol" / "examples" / "signature.json"
SECRET = worker_secret("a master key", "worker_1")
BODY = '{"sessionId":"worker_1","text":"שלום"}'.encode()


def signed(body: bytes = BODY, *, age_s: int = 0) -> dict[str, str]:
    return sign(SECRET, body, message_id="msg_1", timestamp=int(time.time()) - age_s)


def test_a_signed_body_is_believed() -> None:
    verify(SECRET, signed(), BODY)


def test_header_names_may_be_in_any_case() -> None:
    verify(SECRET, {name.title(): value for name, value in signed().items()}, BODY)


def test_one_good_signature_among_several_is_enough() -> None:
    headers = signed()
    headers["webhook-signature"] = f"v1,AAAA v1a,BBBB {headers['webhook-signature']}"
    verify(SECRET, headers, BODY)


def test_another_body_is_refused() -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed(), BODY + b" ")


def test_a_worker_cannot_speak_for_another() -> None:
    with pytest.raises(Unauthorized):
        verify(worker_secret("a master key", "worker_2"), signed(), BODY)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_refused(name: str) -> None:
    headers = signed()
    del headers[name]
    with pytest.raises(Unauthorized):
        verify(SECRET, headers, BODY)


def test_the_id_is_part_of_what_is_signed() -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed() | {"webhook-id": "msg_2"}, BODY)


def test_the_time_is_part_of_what_is_signed() -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed() | {"webhook-timestamp": str(int(time.time()) - 7)}, BODY)


@pytest.mark.parametrize("age_s", [290, -290])
def test_a_clock_may_be_almost_five_minutes_off(age_s: int) -> None:
    verify(SECRET, signed(age_s=age_s), BODY)


@pytest.mark.parametrize("age_s", [310, -310])
def test_a_request_of_another_time_is_refused(age_s: int) -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed(age_s=age_s), BODY)


@pytest.mark.parametrize(
    "signature", ["v1", "v1,", "v1,a", "v1,é", "v1,a,b", ",", " ", "v2,AAAA", "v1,AAAA", "\udcff,AAAA"]
)
def test_a_malformed_signature_is_refused_and_never_an_accident(signature: str) -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed() | {"webhook-signature": signature}, BODY)


@pytest.mark.parametrize("timestamp", ["", "now", "nan", "inf", "-1", "1e400", "9" * 400])
def test_a_malformed_time_is_refused_and_never_an_accident(timestamp: str) -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed() | {"webhook-timestamp": timestamp}, BODY)


def test_a_body_that_is_not_text_is_refused() -> None:
    with pytest.raises(Unauthorized):
        verify(SECRET, signed(), b"\xff\xfe")


@given(message_id=st.text(), signature=st.text(), body=st.binary())
def test_whatever_comes_in_the_only_error_is_unauthorized(message_id: str, signature: str, body: bytes) -> None:
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(time.time())),
        "webhook-signature": signature,
    }
    with pytest.raises(Unauthorized):
        verify(SECRET, headers, body)


def test_signing_gives_the_golden_signature() -> None:
    vector = json.loads(VECTOR.read_text(encoding="utf-8"))
    headers = sign(vector["secret"], vector["body"].encode(), message_id=vector["id"], timestamp=vector["timestamp"])
    assert headers == {
        "webhook-id": vector["id"],
        "webhook-timestamp": str(vector["timestamp"]),
        "webhook-signature": vector["signature"],
    }


def test_a_workers_secret_stays_the_same_over_releases() -> None:
    # A change here cuts off every running worker at the next start of the server.
    assert SECRET == "whsec_AJTwalfYSJbqMBHGuJD+59RwY67Lgf+2catPWRfX77M="


def test_every_session_and_every_master_key_has_another_secret() -> None:
    secrets = {worker_secret(master, session) for master in ("a", "b") for session in ("worker_1", "worker_2")}
    assert len(secrets) == 4
    assert all(len(base64.b64decode(secret.removeprefix("whsec_"))) == 32 for secret in secrets)


def test_there_is_no_secret_without_a_master_key() -> None:
    with pytest.raises(ValueError, match="empty"):
        worker_secret("", "worker_1")
