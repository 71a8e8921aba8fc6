"""The figures for Prometheus: what there is, in the form its parser reads, and nothing about people."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.board import PHONES, Board
from tests.support.driver import UNHURRIED, Driver

pytestmark = pytest.mark.anyio


async def figures(board: Board) -> dict[tuple[str, str], float]:
    """Each figure by its name and its one label; the whole must parse, and show nobody."""
    answer = await board.http.get("/metrics", headers={"X-API-Key": ""})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    for phone in PHONES:
        assert phone not in answer.text
    assert "zanzibar" not in answer.text
    return {
        (sample.name.removeprefix("switchboard_"), ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_without_anything_there_are_zeros_for_every_state(board: Board) -> None:
    found = await figures(board)
    states = {label for name, label in found if name == "sessions"}
    assert states == {
        "starting", "qr_ready", "connected", "disconnected", "logged_out", "failed", "stopped", "passkey_required",
    }  # fmt: skip
    assert {value for (name, _), value in found.items() if name == "sessions"} == {0}
    assert found["places_free", ""] == 0


async def test_sessions_places_messages_and_silence_are_counted(board: Board) -> None:
    await board.proxy()
    bad = await board.proxy()
    await board.store.proxies.mark(bad, ok=False, reason="unreachable", now=board.now)
    connected = await board.linked(PHONES[1], name="zanzibar")
    await board.running(phone=PHONES[2])
    driver = Driver(board.store, board.client, board.prefix)
    await board.store.accounts.override(PHONES[1], UNHURRIED, None, board.now)
    driver.now = board.now
    await driver.send(connected, PHONES[3])
    await driver.send(connected, PHONES[4])
    sent = await driver.attempt(connected)
    await driver.confirm(sent.message_id, session=connected)
    board.now += 7_000
    found = await figures(board)
    assert found["sessions", "connected"] == 1
    assert found["sessions", "starting"] == 1
    assert (found["proxies", "OK"], found["proxies", "BAD"]) == (1, 1)
    assert (found["places_used", ""], found["places_free", ""]) == (2, 2)
    assert found["last_ping_age_seconds", connected] == pytest.approx(9)
    assert found["messages_today", "sent"] == 1
    assert sum(value for (name, _), value in found.items() if name == "messages_waiting") == 1


async def test_what_the_workers_hold_in_memory_is_told_and_left_out_while_their_engine_is_away(board: Board) -> None:
    await board.proxy()
    session = await board.linked()
    board.world.workers[session] = replace(board.world.workers[session], memory_bytes=4711)
    assert (await figures(board))["worker_memory_bytes", session] == 4711
    board.world.unavailable = True
    assert (await figures(board))["sessions", "connected"] == 1
