"""The page of what is well: what it looks at, and that it says so when something is not."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from switchboard.domain.condition import Finding, Mark
from switchboard.orchestrator.condition import Condition, HealthReport
from switchboard.runners.base import Observed, RunnerUnavailable
from switchboard.store import open_store
from switchboard.store.store import StoreRules
from tests.support.board import PHONES, UTC, Board, opened_board
from tests.support.dashboard import Desk, opened_desk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        board.now = time.time_ns() // 1_000_000  # the store has a clock of its own
        yield board


def found(report: HealthReport) -> dict[str, Finding]:
    return {finding.about: finding for finding in report.findings}


def condition_of(board: Board) -> Condition:
    return board.orchestrator.condition(board.folder, ["gateway", "orchestrator"])


# --- what is found -----------------------------------------------------------------------------------------------


async def test_a_fleet_that_is_well(board: Board) -> None:
    condition = condition_of(board)
    await board.proxy()
    await board.linked()
    board.orchestrator.fleet.leading = True
    await board.orchestrator.sampler.take()
    seen = found(await condition.report())
    assert {about for about, one in seen.items() if one.mark is not Mark.OK} <= {"writes", "disk"}, seen
    assert seen["writes"].word == "off", "the store of the tests keeps nothing"
    assert seen["sessions"].figures == {"connected": 1, "total": 1, "n": 0}
    assert seen["proxies"].figures == {"working": 1, "total": 1, "free": 3}
    assert seen["workers"].figures["n"] == 1
    assert seen["sampler"].word == "fresh"
    assert seen["parts"].figures == {"names": "gateway, orchestrator"}
    assert str(seen["server"].figures["name"]) in ("Valkey", "Redis")
    assert int(seen["memory"].figures["used_bytes"]) > 100_000
    assert int(seen["process"].figures["memory_bytes"]) > 10_000_000


async def test_what_is_due_and_not_looked_at_means_that_no_dispatcher_runs(board: Board) -> None:
    await board.proxy()
    await board.linked()
    await board.client.zadd(board.prefix + "dispatch:due", {PHONES[1]: board.now - 61_000})
    late = found(await condition_of(board).report())["dispatcher"]
    assert (late.mark, late.figures) == (Mark.BAD, {"late_ms": 61_000})
    await board.store.pace.take(board.now)
    assert found(await condition_of(board).report())["dispatcher"].mark is Mark.OK
    await board.client.zadd(board.prefix + "queue:scheduled", {"a" * 18: board.now - 20_000})
    assert found(await condition_of(board).report())["dispatcher"].mark is Mark.WARN
    await board.client.delete(board.prefix + "queue:scheduled")


async def test_figures_that_are_no_longer_written_down(board: Board) -> None:
    condition = condition_of(board)
    board.orchestrator.fleet.leading = True
    await board.orchestrator.sampler.take()
    board.now += 11 * 60_000
    assert found(await condition.report())["sampler"].word == "old"
    board.now += 60 * 60_000
    assert found(await condition.report())["sampler"].word == "none"


async def test_messages_that_no_number_can_send(board: Board) -> None:
    await board.client.zadd(board.prefix + "gateway:jobs", {"a" * 18: 1})
    assert found(await condition_of(board).report())["senders"].word == "stuck"
    await board.client.delete(board.prefix + "gateway:jobs")


async def test_workers_that_can_not_be_counted(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(self: Any) -> list[Observed]:
        raise RunnerUnavailable("the engine is away")

    monkeypatch.setattr("switchboard.runners.memory.MemoryRunner.list", away)
    assert found(await condition_of(board).report())["workers"].mark is Mark.BAD


async def test_a_store_that_is_away_leaves_the_rest_to_be_told(board: Board, tmp_path: Path) -> None:
    nowhere = open_store(f"unix://{tmp_path}/nowhere", "", StoreRules(UTC))
    board.orchestrator._store = nowhere  # noqa: SLF001 - as if its server had gone
    report = await condition_of(board).report()
    board.orchestrator._store = board.store  # noqa: SLF001
    await nowhere.close()
    assert report.worst is Mark.BAD
    assert found(report)["store"].word == "away"
    assert {"disk", "process", "parts"} <= found(report).keys()


# --- what is shown -----------------------------------------------------------------------------------------------


async def test_the_page_names_first_what_is_not_well_and_says_what_to_do(desk: Desk) -> None:
    page = await desk.page("/status")
    assert "need a look." in page.text
    assert "#row-proxies" in page.links
    assert "Add one: no number can be linked before." in page.text
    assert "/proxies" in page.links
    assert "Switchboard" in page.text
    assert "Good" in page.text
    assert "Look soon" in page.text


class Fine(Condition):
    async def report(self) -> HealthReport:
        return HealthReport([("work", [Finding("leader", "here")])])


async def test_when_all_is_well_it_says_so(board: Board) -> None:
    fine = Fine.__new__(Fine)
    async with opened_desk(board, condition=fine) as desk:
        page = await desk.page("/status")
    assert "Everything is well." in page.text
    assert "Act now" not in page.text


async def test_the_week_is_plotted_once_there_is_one(board: Board, desk: Desk) -> None:
    assert "appears in a moment" in (await desk.page("/status")).text
    for minutes in (30, 20, 10):
        await board.store.samples.add(board.now - minutes * 60_000, {"waiting": minutes, "connected": 4, "sessions": 5})
    page = await desk.page("/status")
    plots = {one.get("id") for one in page.attributes if one["tag"] == "figure"}
    assert plots == {"plot-queue", "plot-connected"}


async def test_in_hebrew(desk: Desk) -> None:
    page = await desk.page("/status", language="he")
    assert 'dir="rtl"' in page.html
    assert "תקינות" in page.text
    assert "מאגר הנתונים" in page.text


# --- nothing there -----------------------------------------------------------------------------------------------


async def test_a_person_at_an_unknown_address_gets_a_page(desk: Desk) -> None:
    page = await desk.page("/no/such/place", status=404)
    assert "There is nothing at this address." in page.text
    assert "nonce-" in page.response.headers["content-security-policy"]
    assert "בכתובת הזאת" in (await desk.page("/no/such/place", status=404, language="he")).text


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        ("GET", "/no/such/place", "application/json"),
        ("GET", "/no/such/place", "*/*"),
        ("GET", "/api/nothing", "text/html"),
        ("POST", "/no/such/place", "*/*"),
        ("POST", "/api/nothing", "text/html"),
    ],
)
async def test_a_program_gets_what_it_gets_everywhere(desk: Desk, method: str, path: str, accept: str) -> None:
    answer = await desk.http.request(method, path, headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/docs", "/openapi.json"])
async def test_what_is_there_is_not_hidden(desk: Desk, path: str) -> None:
    assert (await desk.http.get(path, headers={"Accept": "text/html"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/settings/password", "/settings"),
        ("/settings/keys", "/settings"),
        ("/settings/keys/0123456789ab/revoke", "/settings"),
        ("/sessions/worker_1/queue/x/cancel", "/sessions/worker_1"),
        ("/sign-out", "/"),
        ("/language", "/"),
    ],
)
async def test_where_only_forms_go_a_person_is_led_to_the_page_around_it(desk: Desk, path: str, page: str) -> None:
    shown = await desk.page(path, status=303)
    assert shown.response.headers["location"] == page
    assert shown.response.headers["cache-control"] == "no-store"
    program = await desk.http.get(path, headers={"Accept": "application/json"})
    assert (program.status_code, program.json()["error"]) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("path", ["/settings", "/", "/no/such/place"])
async def test_a_form_that_goes_nowhere_is_answered_by_a_page(desk: Desk, path: str) -> None:
    answer = await desk.http.post(path, headers={"Accept": "text/html", "Accept-Language": "en"})
    assert answer.status_code in {404, 405}
    assert "There is nothing at this address." in answer.text
    assert "nonce-" in answer.headers["content-security-policy"]


async def test_the_api_answers_in_its_own_way(board: Board) -> None:
    answer = await board.ask("DELETE", "/api/sessions")
    assert (answer.status_code, answer.json()["error"]) == (405, "METHOD_NOT_ALLOWED")
