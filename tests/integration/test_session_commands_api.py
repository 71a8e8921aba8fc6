"""What a person may do with a session, from start to delete; and the codes that link it to a phone."""

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from switchboard.orchestrator.sessions import SessionServiceRules
from tests.support.board import PHONES, SCAN_MS, Board, opened_board, refused, rules_for, running
from tests.support.serving import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


@pytest.fixture
async def patient(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    """Calls wait here until what was asked is done."""
    rules = rules_for(tmp_path, service=SessionServiceRules(SCAN_MS, patience_s=10))
    async with opened_board(valkey_url, prefix, tmp_path, rules) as board:
        await board.proxy()
        yield board


def auth_data(board: Board, session: str) -> Path:
    """As its worker would have written it."""
    folder = board.folder / session
    folder.mkdir(exist_ok=True)
    (folder / "creds.json").write_text("{}")
    return folder


# Stopping and starting.


async def test_a_linked_session_that_is_stopped_keeps_its_place_and_comes_back_without_a_scan(board: Board) -> None:
    session = await board.linked()
    folder = auth_data(board, session)
    stopped = await board.command(session, "stop")
    assert (stopped["status"], stopped["reason"], stopped["proxyId"]) == ("stopped", "by_request", "proxy_1")
    await board.settle()
    assert board.worker(session) is None
    started = await board.command(session, "start")
    assert (started["status"], started["scanBy"]) == ("starting", None)
    await board.up()
    assert board.worker(session) is not None
    assert (folder / "creds.json").exists()


async def test_one_that_was_never_linked_gives_its_place_up_and_is_given_one_again(board: Board) -> None:
    session = await board.running(phone=PHONES[1])
    await board.command(session, "stop")
    await board.settle()
    assert (await board.show(session))["proxyId"] is None
    assert await board.on("proxy_1") == set()
    assert not await board.client.exists(f"{board.prefix}session:temp:{session}")
    assert not await board.client.exists(f"{board.prefix}phone:sessions:{PHONES[1]}")
    started = await board.command(session, "start")
    assert started["scanBy"] is not None
    await board.up()
    assert await board.on("proxy_1") == {session}
    assert board.worker(session) is not None
    assert await board.client.smembers(f"{board.prefix}phone:sessions:{PHONES[1]}") == {session}


async def test_a_restart_replaces_the_worker_and_asks_for_no_scan(board: Board) -> None:
    session = await board.linked()
    before = board.worker(session)
    shown = await board.command(session, "restart")
    assert (shown["status"], shown["reason"], shown["scanBy"]) == ("starting", "restart", None)
    await board.up()
    after = board.worker(session)
    assert before is not None
    assert after is not None
    assert after.generation == before.generation + 1
    assert after.environment == before.environment


async def test_a_start_counts_among_the_sessions_of_its_phone(board: Board) -> None:
    await board.proxy()
    stopped = await board.running(phone=PHONES[1])
    await board.command(stopped, "stop")
    await board.settle()
    for _ in range(4):
        await board.provision(phone=PHONES[1])
    refused(await board.ask("POST", f"/api/sessions/{stopped}/start"), 409, "TOO_MANY_SESSIONS", limit=4)


# Unlinking.


async def test_a_logout_is_ordered_waited_for_and_the_auth_data_put_aside(board: Board) -> None:
    session = await board.linked()
    folder = auth_data(board, session)
    shown = await board.command(session, "logout")
    assert (shown["status"], shown["reason"], shown["phone"]) == ("logged_out", "by_request", PHONES[1])
    await board.settle()
    assert board.worker(session) is not None  # it is given the time to tell WhatsApp
    order = (await board.claim(session))["order"]
    assert order == {"id": order["id"], "type": "logout"}
    assert "order" not in await board.claim(session, order=order["id"])
    await board.disconnected(session, "logged_out")
    await board.settle()
    assert board.worker(session) is None
    assert not folder.exists()
    assert [path.name for path in (board.folder / ".aside").iterdir()] == [f"{session}.{board.now}"]


async def test_a_worker_that_does_not_log_out_is_stopped_all_the_same(board: Board) -> None:
    session = await board.linked()
    await board.command(session, "logout")
    await board.up(14_999)
    assert board.worker(session) is not None
    await board.up(1)
    assert board.worker(session) is None


async def test_after_a_logout_it_is_scanned_anew_with_the_same_name(board: Board) -> None:
    session = await board.linked()
    await board.command(session, "logout")
    await board.disconnected(session, "logged_out")
    await board.settle()
    assert (await board.command(session, "start"))["scanBy"] is not None
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["DEVICE_NAME"] == "Switchboard worker_1"
    await board.connected(session, PHONES[2])
    assert (await board.show(session))["phone"] == PHONES[2]


async def test_a_deleted_session_leaves_nothing_behind(board: Board) -> None:
    session = await board.linked()
    folder = auth_data(board, session)
    answer = await board.http.delete(f"/api/sessions/{session}")
    assert (answer.status_code, answer.json()) == (202, {"deleted": False, "sessionId": session, "unlinked": None})
    assert (await board.claim(session))["order"]["type"] == "logout"
    await board.disconnected(session, "logged_out")
    await board.settle()
    assert not folder.exists()
    assert list((board.folder / ".aside").iterdir()) == []
    refused(await board.ask("GET", f"/api/sessions/{session}"), 404, "SESSION_NOT_FOUND")
    assert await board.on("proxy_1") == set()
    left = [key async for key in board.client.scan_iter(f"{board.prefix}*{session}*")]
    assert left == [f"{board.prefix}session:gone:{session}"], "for a minute: what is said of its end"
    assert 0 < await board.client.ttl(left[0]) <= 60
    [told] = await board.told("session.deleted")
    assert (told["sessionId"], told["unlinked"]) == (session, "1")
    assert (await board.client.get(f"{board.prefix}phone:proxy:{PHONES[1]}")) == "proxy_1"  # for its next time


async def test_that_it_is_still_being_deleted_is_a_documented_answer(board: Board) -> None:
    session = await board.linked()
    assert (await board.ask("DELETE", f"/api/sessions/{session}")).status_code == 202


async def test_deleting_waits_until_it_is_done(patient: Board) -> None:
    session = await patient.provision()
    fleet, wakeups = patient.orchestrator.fleet, patient.store.wakeups
    async with running(fleet.run(), wakeups.run()):
        await until(lambda: patient.worker(session) is not None)
        assert await patient.delete(f"/api/sessions/{session}") == {
            "deleted": True,
            "sessionId": session,
            "unlinked": True,
        }
    assert patient.worker(session) is None


async def test_deleting_says_when_whatsapp_could_not_be_told(board: Board) -> None:
    session = await board.linked()
    await board.http.delete(f"/api/sessions/{session}")
    await board.up(15_000)  # the worker does not obey
    await board.settle()
    [told] = await board.told("session.deleted")
    assert told["unlinked"] == "0"


async def test_while_it_is_being_deleted_nothing_else_may_be_asked(board: Board) -> None:
    session = await board.linked()
    await board.http.delete(f"/api/sessions/{session}")
    for command in ("start", "stop", "restart", "logout", "pause", "resume"):
        answer = await board.ask("POST", f"/api/sessions/{session}/{command}")
        refused(
            answer,
            409,
            "INVALID_TRANSITION",
            f"Can't {'log out' if command == 'logout' else command} session",
            status="stopped",
        )
        assert answer.json()["message"].endswith("it is being deleted.")
    assert (await board.http.delete(f"/api/sessions/{session}")).status_code == 202


# Holding.


async def test_a_pause_holds_the_account_until_it_is_resumed(board: Board) -> None:
    first, second = await board.linked(), await board.linked()
    shown = await board.command(first, "pause")
    assert (shown["status"], shown["paused"], shown["pausedUntil"]) == ("paused", True, None)
    assert shown["pausedReason"] == "by_request"
    assert (await board.show(second))["status"] == "paused"
    assert (await board.command(second, "resume"))["status"] == "connected"
    shown = await board.show(first)
    assert (shown["paused"], shown["pausedReason"]) == (False, None)
    [event] = await board.told("account.paused")
    assert event["account"] == PHONES[1]
    for session in (first, second):
        newest = (await board.get(f"/api/sessions/{session}/events"))["items"][:2]
        assert [(one["type"], one["data"]["reason"]) for one in newest] == [
            ("session.resumed", "by_request"),
            ("session.paused", "by_request"),
        ]


async def test_a_pause_may_have_an_end(board: Board) -> None:
    session = await board.linked()
    shown = await board.command(session, "pause", {"until": "2026-06-09T15:00:00+02:00"})
    assert (shown["status"], shown["pausedUntil"]) == ("paused", "2026-06-09T13:00:00+00:00")
    board.now += 3_600_000
    assert (await board.show(session))["status"] == "connected"
    refused(await board.ask("POST", f"/api/sessions/{session}/resume"), 409, "INVALID_TRANSITION", "it is not paused")


@pytest.mark.parametrize("until_", ["tomorrow", "2026-06-09T15:00:00", "2020-06-09T15:00:00+02:00", 17.5, {"a": 1}])
async def test_a_pause_until_no_moment_or_a_past_one_is_refused(board: Board, until_: Any) -> None:
    session = await board.linked()
    answer = await board.ask("POST", f"/api/sessions/{session}/pause", json={"until": until_})
    refused(answer, 400, "INVALID_REQUEST", field="until")


async def test_a_session_that_was_never_linked_has_nothing_to_pause_or_log_out(board: Board) -> None:
    session = await board.running()
    for command in ("pause", "resume", "logout"):
        answer = await board.ask("POST", f"/api/sessions/{session}/{command}")
        refused(answer, 409, "INVALID_TRANSITION", "it was never linked to a phone", status="starting")


async def test_what_makes_no_sense_is_refused_with_what_would(board: Board) -> None:
    session = await board.linked()
    refused(await board.ask("POST", f"/api/sessions/{session}/start"), 409, "INVALID_TRANSITION", "it runs already")
    await board.command(session, "stop")
    for command, sentence in (("stop", "it is stopped already"), ("restart", "it does not run; start it")):
        answer = await board.ask("POST", f"/api/sessions/{session}/{command}")
        refused(answer, 409, "INVALID_TRANSITION", sentence, sessionId=session, status="stopped")


# Codes.


async def qr(board: Board, session: str, accept: str = "application/json") -> httpx.Response:
    return await board.ask("GET", f"/api/sessions/{session}/qr", headers={"Accept": accept})


async def test_the_qr_code_is_shown_as_json_svg_or_png_and_kept_by_nobody(board: Board) -> None:
    session = await board.running()
    refused(await qr(board, session), 404, "QR_NOT_READY", "is 'starting' and has no code", status="starting")
    await board.qr(session, "2@abc,def", expires_in=20_000)
    answer = await qr(board, session)
    assert answer.json() == {"sessionId": session, "qr": "2@abc,def", "expiresAt": "2026-06-09T12:00:22+00:00"}
    svg = await qr(board, session, "image/svg+xml")
    assert svg.headers["content-type"] == "image/svg+xml"
    root = ElementTree.fromstring(svg.content)  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    png = await qr(board, session, "text/html, image/png;q=0.9")
    assert png.headers["content-type"] == "image/png"
    assert png.content.startswith(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    width, height = struct.unpack(">II", png.content[16:24])
    assert width == height > 8 * 21
    for one in (answer, svg, png):
        assert one.headers["cache-control"] == "no-store"


async def test_a_session_that_is_linked_has_no_code_and_says_that_it_needs_none(board: Board) -> None:
    session = await board.linked()
    refused(await qr(board, session), 404, "QR_NOT_READY", "it is linked already", status="connected")
    await board.command(session, "stop")
    refused(await qr(board, session), 404, "QR_NOT_READY", "it is linked already", status="stopped")


async def test_a_qr_code_ends_and_another_takes_its_place(board: Board) -> None:
    session = await board.running()
    await board.qr(session, "2@first", expires_in=20_000)
    board.now += 20_000
    refused(await qr(board, session), 404, "QR_NOT_READY", "ask again in a moment", status="qr_ready")
    await board.qr(session, "2@second")
    assert (await qr(board, session)).json()["qr"] == "2@second"
    await board.connected(session, PHONES[1])
    refused(await qr(board, session), 404, "QR_NOT_READY", "it is linked already", status="connected")
    stored = await board.client.hgetall(f"{board.prefix}session:{session}")
    assert "2@second" not in str(stored)


async def test_a_pairing_code_comes_from_the_worker_and_is_not_made_up(patient: Board) -> None:
    session = await patient.running()
    path = f"/api/sessions/{session}/pairing-code"
    asking = asyncio.create_task(patient.ask("POST", path, json={"phone": f"+{PHONES[1]}"}))

    async def ordered() -> bool:
        return "order" in await patient.claim(session)

    await until(ordered)
    assert (await patient.claim(session))["order"] == {"id": 1, "type": "pair", "phone": PHONES[1]}
    data = {"code": "ABCD1234", "phoneNumber": PHONES[1], "expiresAt": patient.now + 60_000}
    await patient.tell(session, "PAIRING_CODE", data)
    answer = await asking
    assert answer.json() == {
        "sessionId": session,
        "phone": PHONES[1],
        "code": "ABCD1234",
        "expiresAt": "2026-06-09T12:01:02+00:00",
    }
    assert answer.headers["cache-control"] == "no-store"
    assert (await patient.show(session))["status"] == "qr_ready"
    assert "order" not in await patient.claim(session)


async def test_an_order_that_nobody_took_on_in_time_is_not_given_any_more(board: Board) -> None:
    session = await board.running()
    answer = await board.ask("POST", f"/api/sessions/{session}/pairing-code", json={"phone": PHONES[1]})
    refused(answer, 404, "QR_NOT_READY")
    assert (await board.claim(session))["order"]["type"] == "pair"
    board.now += 60_000
    assert "order" not in await board.claim(session)


async def test_a_pairing_code_is_refused_where_it_makes_no_sense(board: Board) -> None:
    session = await board.running()
    path = f"/api/sessions/{session}/pairing-code"
    for body in ({}, {"phone": ""}, {"phone": "12"}, {"phone": PHONES[1], "x": 1}):
        refused(await board.ask("POST", path, json=body), 400, "INVALID_REQUEST")
    refused(await board.ask("POST", path, json={"phone": PHONES[1]}), 404, "QR_NOT_READY")  # no worker answered
    await board.connected(session, PHONES[1])
    answer = await board.ask("POST", path, json={"phone": PHONES[1]})
    refused(answer, 409, "INVALID_TRANSITION", "it does not wait for a scan")


async def test_a_session_that_is_not_scanned_in_time_is_stopped_and_can_be_started_again(board: Board) -> None:
    session = await board.running()
    await board.qr(session, expires_in=10**7)
    await board.up(SCAN_MS - 2_001)
    assert (await board.show(session))["status"] == "qr_ready"
    await board.up(1)
    shown = await board.show(session)
    assert (shown["status"], shown["reason"], shown["proxyId"]) == ("stopped", "scan_timeout", None)
    assert board.worker(session) is None
    assert await board.on("proxy_1") == set()
    await board.command(session, "start")
    await board.up()
    assert board.worker(session) is not None


async def test_a_code_too_long_for_a_picture_is_refused_or_shown_but_breaks_nothing(board: Board) -> None:
    session = await board.running()
    body = {"sessionId": session, "type": "QR_CODE", "timestamp": board.now, "data": {"qr": "א" * 2_953}}
    answer = await board.signed(session, "/api/webhook", body)
    assert answer.status_code in {200, 400}
    assert (await qr(board, session, "image/svg+xml")).status_code in {200, 404}
