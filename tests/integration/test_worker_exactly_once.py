"""A worker's word has its effect once: told twice, late, out of turn, from a lost journal, or by somebody else."""

import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchboard.store.worker_calls import Told
from tests.support.board import PHONES, Board, opened_board, refused, signature
from tests.support.driver import UNHURRIED, Driver

pytestmark = pytest.mark.anyio

STREAM, LATER = "journal1", "journal2"


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


def received(text: str = "zanzibar", **fields: object) -> dict[str, Any]:
    return {"from": PHONES[5], "whatsappId": "3A9C", "text": text, "timestamp": 1_781_006_400_000, **fields}


async def passed_on(board: Board) -> list[str]:
    return [event["text"] for event in await board.told("message.received")]


async def state(board: Board, session: str) -> str:
    return (await board.look(session)).state.value


# The very same request.


async def test_the_very_same_request_counts_once(board: Board) -> None:
    session = await board.linked()
    event = {"sessionId": session, "type": "MESSAGE_RECEIVED", "timestamp": board.now, "data": received()}
    claim = {"sessionId": session, "instance": "instance-one", "waitMs": 0}
    ack = {"sessionId": session, "messageId": "0" * 18, "attempt": 1, "timestamp": board.now}
    outbox = f"/api/worker/sessions/{session}/outbox"
    for path, body in (("/api/webhook", event), (f"{outbox}/claim", claim), (f"{outbox}/ack", ack)):
        content = json.dumps(body).encode()
        headers = signature(session, content)
        first = await board.http.post(path, content=content, headers=headers)
        assert first.status_code in {200, 404}
        again = await board.http.post(path, content=content, headers=headers)
        refused(again, 401, "UNAUTHORIZED", "This very request was made before; sign each request anew.")
    assert await passed_on(board) == ["zanzibar"]


async def test_a_replayed_ack_settles_nothing(board: Board) -> None:
    session = await board.linked()
    driver = Driver(board.store, board.client, board.prefix)
    await board.store.accounts.override(PHONES[1], UNHURRIED, None, board.now)
    driver.now = board.now
    await driver.send(session)
    await driver.settle_down()
    message = (await board.claim(session))["message"]
    body = {"sessionId": session, "messageId": message["messageId"], "attempt": 1, "timestamp": board.now}
    content = json.dumps(body).encode()
    headers = signature(session, content)
    path = f"/api/worker/sessions/{session}/outbox/ack"
    assert (await board.http.post(path, content=content, headers=headers)).json()["settled"] is True
    refused(await board.http.post(path, content=content, headers=headers), 401, "UNAUTHORIZED")
    repeated = await board.signed(session, path, body)
    assert repeated.json() == {"settled": False, "status": "sent"}


async def test_a_request_id_of_another_worker_is_no_replay(board: Board) -> None:
    mine, other = await board.linked(PHONES[1]), await board.linked(PHONES[2])
    for session in (mine, other):
        content = json.dumps({"sessionId": session, "instance": "instance-one", "waitMs": 0}).encode()
        headers = signature(session, content)
        same = {**headers, "webhook-id": "msg_the-same"}
        path = f"/api/worker/sessions/{session}/outbox/claim"
        assert (await board.http.post(path, content=content, headers=same)).status_code == 401  # not what was signed
        assert (await board.http.post(path, content=content, headers=headers)).status_code == 200


async def test_one_worker_can_not_speak_for_another(board: Board) -> None:
    mine, other = await board.linked(PHONES[1]), await board.linked(PHONES[2])
    body = {"sessionId": other, "type": "DISCONNECTED", "timestamp": board.now, "data": {"reason": "logged_out"}}
    refused(await board.signed(mine, "/api/webhook", body), 401, "UNAUTHORIZED")
    claim = {"sessionId": other, "instance": "instance-one", "waitMs": 0}
    refused(await board.signed(mine, f"/api/worker/sessions/{other}/outbox/claim", claim), 401, "UNAUTHORIZED")
    refused(await board.signed(mine, f"/api/worker/sessions/{mine}/outbox/claim", claim), 403, "FORBIDDEN")
    assert await state(board, other) == "connected"


# The same event, signed anew.


@pytest.mark.parametrize("number", [(STREAM, 1), None])
async def test_a_received_message_told_again_is_passed_on_once(board: Board, number: tuple[str, int] | None) -> None:
    session = await board.linked()
    for _ in range(3):
        await board.tell(session, "MESSAGE_RECEIVED", received(backfilled=True), at=board.now, number=number)
    [event] = await board.told("message.received")
    assert event == {
        "type": "message.received",
        "sessionId": session,
        "account": PHONES[1],
        "at": str(board.now),
        "from": PHONES[5],
        "whatsappId": "3A9C",
        "text": "zanzibar",
        "writtenAt": "1781006400000",
        "backfilled": "1",
    }
    shown = await board.ask("GET", f"/api/sessions/{session}/events")
    assert "zanzibar" not in shown.text


@pytest.mark.parametrize("number", [(STREAM, 1), (STREAM, 7), None], ids=["in turn", "early", "without a number"])
async def test_so_it_is_when_two_requests_at_once_were_both_told_that_it_is_new(
    board: Board, number: tuple[str, int] | None
) -> None:
    session = await board.linked()
    stream, sequence = number or ("", None)
    told = Told(session, stream, sequence, f"{stream}:{sequence}", about_state=False, at=board.now)
    calls = board.store.worker_calls
    assert [await calls.heard(told, board.now) for _ in range(2)] == ["NEW", "NEW"]
    kept = [
        await calls.keep(told, board.now, "MESSAGE_RECEIVED", "", "message.received", {"text": "zanzibar"})
        for _ in range(2)
    ]
    assert kept == [True, False]
    assert await passed_on(board) == ["zanzibar"]


async def test_two_messages_with_the_same_words_are_two(board: Board) -> None:
    session = await board.linked()
    for n in (1, 2):
        await board.tell(session, "MESSAGE_RECEIVED", received(), number=(STREAM, n))
    assert await passed_on(board) == ["zanzibar"] * 2


async def test_a_state_told_late_changes_the_state_no_more_and_is_shown_as_late(board: Board) -> None:
    session = await board.running()
    await board.qr(session)
    await board.connected(session, PHONES[1], number=(STREAM, 2))
    await board.disconnected(session, "restart_required", number=(STREAM, 1))
    assert await state(board, session) == "connected"
    items = (await board.get(f"/api/sessions/{session}/events"))["items"]
    assert items[0]["type"] == "DISCONNECTED"
    assert items[0]["data"] == {"reason": "restart_required", "late": True}


async def test_without_numbers_the_time_it_happened_decides(board: Board) -> None:
    session = await board.running()
    await board.connected(session, PHONES[1], at=board.now)
    await board.disconnected(session, "restart_required", at=board.now - 1)
    assert await state(board, session) == "connected"
    await board.disconnected(session, "restart_required", at=board.now + 1)
    assert await state(board, session) == "disconnected"


async def test_a_new_journal_counts_from_one_again_and_an_old_one_has_no_more_say(board: Board) -> None:
    session = await board.running()
    for n in range(1, 4):
        await board.tell(session, "MESSAGE_RECEIVED", received(f"old {n}"), number=(STREAM, n))
    await board.connected(session, PHONES[1], number=(LATER, 1))
    await board.tell(session, "MESSAGE_RECEIVED", received("new 2"), number=(LATER, 2))
    await board.disconnected(session, "restart_required", number=(STREAM, 4))
    assert await state(board, session) == "connected"
    await board.tell(session, "MESSAGE_RECEIVED", received("old 5"), number=(STREAM, 5))
    for _ in range(2):
        await board.tell(session, "MESSAGE_RECEIVED", received("new 2"), number=(LATER, 2))
        await board.tell(session, "MESSAGE_RECEIVED", received("old 5"), number=(STREAM, 5))
    assert await passed_on(board) == ["old 1", "old 2", "old 3", "new 2", "old 5"]


async def test_what_an_old_journal_told_before_is_not_told_again_after_a_new_one_began(board: Board) -> None:
    session = await board.running()
    for stream, n, text in ((STREAM, 1, "old 1"), (LATER, 1, "new 1"), (STREAM, 1, "old 1")):
        await board.tell(session, "MESSAGE_RECEIVED", received(text), number=(stream, n))
    assert await passed_on(board) == ["old 1", "new 1"]


# Any order, any number of times.

BEFORE_ITS_LINK = ["QR_CODE", "CONNECTED", "DISCONNECTED"]
ONCE_LINKED = ["CONNECTED", "DISCONNECTED"]
"""What a worker may say about its state. MESSAGE_RECEIVED may come at any time."""


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """What happened, in order; and the order in which it is told, each at least once."""
    kinds: list[str] = []
    for _ in range(draw(st.integers(1, 7))):
        words = ONCE_LINKED if "CONNECTED" in kinds else BEFORE_ITS_LINK
        kinds.append(draw(st.sampled_from(["MESSAGE_RECEIVED", *words])))
    repeated = draw(st.lists(st.integers(0, len(kinds) - 1), max_size=6))
    return kinds, draw(st.permutations([*range(len(kinds)), *repeated]))


def data_of(kind: str, n: int, phone: str) -> dict[str, Any]:
    data: dict[str, dict[str, Any]] = {
        "QR_CODE": {"qr": f"2@{n}"},
        "CONNECTED": {"phoneNumber": phone, "jid": f"{phone}@s.whatsapp.net", "fingerprint": "x"},
        "DISCONNECTED": {"reason": "restart_required"},
        "MESSAGE_RECEIVED": received(f"text {n}"),
    }
    return data[kind]


OTHER_PHONES = (f"9725{n:08}" for n in count())


@given(history=histories())
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_however_a_history_is_told_its_effect_is_that_of_telling_it_in_order(
    board: Board, history: tuple[list[str], list[int]]
) -> None:
    kinds, order = history
    ends = []
    for told in (range(len(kinds)), order):
        phone = next(OTHER_PHONES)
        session = f"of-{phone}"
        await board.store.sessions.register(session, board.now)
        for n in told:
            await board.tell(session, kinds[n], data_of(kinds[n], n, phone), at=board.now + n, number=(STREAM, n + 1))
        texts = [event["text"] for event in await board.told("message.received") if event["sessionId"] == session]
        kept = [fields["type"] for _, fields in await board.store.sessions.events(session, 200, None)]
        ends.append((await state(board, session), sorted(texts), sorted(kind for kind in kept if kind.isupper())))
    assert ends[0] == ends[1]
    assert len(ends[0][1]) == kinds.count("MESSAGE_RECEIVED")


# Words nobody knows.


async def test_an_unknown_event_is_kept_and_shown(board: Board) -> None:
    session = await board.linked()
    for _ in range(2):
        await board.tell(session, "BATTERY_LOW", {"percent": 7, "שלום": ["x"]}, at=board.now)
    items = (await board.get(f"/api/sessions/{session}/events"))["items"]
    assert [item["data"] for item in items if item["type"] == "BATTERY_LOW"] == [{"percent": 7, "שלום": ["x"]}]


async def test_what_is_kept_of_an_unknown_event_is_bounded(board: Board) -> None:
    session = await board.linked()
    await board.tell(session, "VERBOSE", {"pad": "x" * 4_085}, number=(STREAM, 1))
    await board.tell(session, "VERBOSE", {"pad": "x" * 4_086}, number=(STREAM, 2))
    await board.tell(session, "VERBOSE", {"pad": "x" * 200_000}, number=(STREAM, 3))
    items = (await board.get(f"/api/sessions/{session}/events", params={"limit": 3}))["items"]
    assert [len(str(item["data"].get("pad", ""))) for item in items] == [0, 0, 4_085]
    assert [item["data"].get("tooLong") for item in items] == [200_011, 4_097, None]


async def test_a_session_keeps_its_newest_events_only(board: Board) -> None:
    session = await board.linked()
    for n in range(400):
        await board.store.sessions.disconnect(session, board.now + n, reason=f"r{n}")
    assert await board.client.xlen(f"{board.prefix}session:events:{session}") < 320


@pytest.mark.parametrize(
    "value",
    ["NaN", "-Infinity", '"\\ud800"', "1" * 5_000],
    ids=["nan", "infinity", "half a character", "many digits"],
)
async def test_a_value_that_json_can_not_carry_back_breaks_nothing(board: Board, value: str) -> None:
    session = await board.linked()
    head = json.dumps({"sessionId": session, "type": "ODD", "timestamp": board.now})[:-1]
    content = f'{head}, "data": {{"x": {value}}}}}'.encode()
    answer = await board.http.post("/api/webhook", content=content, headers=signature(session, content))
    assert answer.status_code in {200, 400}, answer.text
    await board.get(f"/api/sessions/{session}/events")
