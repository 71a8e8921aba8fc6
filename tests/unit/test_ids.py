"""A message's WhatsApp id follows from its own, so that no attempt can use another one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.ids import (
    is_batch_id,
    is_message_id,
    is_session_id,
    message_id_of,
    natural,
    new_batch_id,
    new_message_id,
    whatsapp_id,
)

MESSAGE_IDS = st.text("0123456789abcdef", min_size=18, max_size=18)


@given(MESSAGE_IDS)
def test_the_whatsapp_id_is_always_the_same_and_leads_back(message_id: str) -> None:
    assert whatsapp_id(message_id) == whatsapp_id(message_id)
    assert message_id_of(whatsapp_id(message_id)) == message_id


@given(MESSAGE_IDS, MESSAGE_IDS)
def test_two_messages_never_share_a_whatsapp_id(one: str, other: str) -> None:
    assert (whatsapp_id(one) == whatsapp_id(other)) is (one == other)


def test_names_are_sorted_as_people_count() -> None:
    names = ["worker_10", "b", "worker_2", "a-2-x", "a-10-x", "worker_02", "7"]
    assert sorted(names, key=natural) == ["7", "a-2-x", "a-10-x", "b", "worker_02", "worker_2", "worker_10"]


def test_it_looks_like_the_ids_whatsapp_web_makes() -> None:
    assert whatsapp_id("0123456789abcdef01") == "3EB00123456789ABCDEF01"


@pytest.mark.parametrize("foreign", ["", "3EB0", "3EB0123", "3A" + "0" * 20, "3eb0" + "0" * 18, "3EB0" + "0" * 19])
def test_an_id_that_is_not_ours_leads_nowhere(foreign: str) -> None:
    assert message_id_of(foreign) is None


def test_new_ids_are_message_ids_and_do_not_repeat() -> None:
    made = [new_message_id() for _ in range(1_000)]
    assert all(map(is_message_id, made))
    assert len(set(made)) == 1_000


def test_a_batch_id_is_not_taken_for_a_message_id() -> None:
    made = new_batch_id()
    assert is_batch_id(made)
    assert not is_message_id(made)
    assert not is_batch_id(made.removeprefix("batch_"))
    assert new_batch_id() != made


@pytest.mark.parametrize("text", ["", "abc", "G" * 18, "A" * 18, "0" * 17, "0" * 19, "0" * 18 + "\n", "batch_00"])
def test_anything_else_is_no_message_id(text: str) -> None:
    assert not is_message_id(text)


@pytest.mark.parametrize("text", ["worker_1", "a", "A-b_9", "x" * 64])
def test_session_ids_are_plain_words(text: str) -> None:
    assert is_session_id(text)


@pytest.mark.parametrize("text", ["", "_a", "-a", "a b", "a/b", "a:b", "../a", "x" * 65, "a\n", "שלום"])
def test_what_could_break_a_path_or_a_key_is_no_session_id(text: str) -> None:
    assert not is_session_id(text)
