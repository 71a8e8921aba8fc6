"""The pool of proxies: adding, trying, removing, what is told about it; and its credentials, which nobody ever sees."""

import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from switchboard.orchestrator.api_models import CreateRequest, ProvisionRequest, ProxyRequest
from switchboard.orchestrator.sessions import Request as Wish
from switchboard.runners.memory import MemoryWorld
from tests.support.board import (
    PHONES,
    USER,
    WRITTEN,
    Board,
    direct_rules,
    next_orchestrator,
    opened_board,
    refused,
    rounds,
    rules_for,
    running,
    shows_no_credentials,
)
from tests.support.driver import MINUTE
from tests.support.serving import free_port, until
from tests.support.socks5 import GOOD, Mode, Step, Trouble

pytestmark = pytest.mark.anyio

PROXIES = "/api/proxies"
BROKEN = Mode(trouble=Trouble.CLOSE, at=Step.GREETING)


async def items(board: Board) -> list[dict[str, Any]]:
    return list((await board.get(PROXIES))["items"])


# Adding.


async def test_a_proxy_is_tried_at_once_and_shown_without_its_credentials(board: Board) -> None:
    server, url = await board.socks5()
    answer = await board.ask("POST", PROXIES, json={"url": url})
    assert answer.status_code == 201
    expected: dict[str, Any] = {
        "proxyId": "proxy_1",
        "host": f"127.0.0.1:{server.port}",
        "status": "OK",
        "badAt": None,
        "reason": None,
        "sessions": [],
        "capacity": 4,
    }
    assert answer.json() == expected
    assert await items(board) == [expected]
    assert server.asked == [("web.whatsapp.com", 443)]  # by its name: the proxy resolves it


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        (BROKEN, "reset"),
        (Mode(rejects_everyone=True), "auth_rejected"),
        (Mode(http=True), "not_socks"),
        (Mode(reply=5), "connect_refused"),
    ],
)
async def test_one_that_does_not_work_is_added_as_bad_with_the_reason(board: Board, mode: Mode, code: str) -> None:
    server, url = await board.socks5()
    server.mode = mode
    shown = await board.post(PROXIES, {"url": url})
    assert (shown["status"], shown["badAt"]) == ("BAD", "2026-06-09T12:00:00+00:00")
    assert shown["reason"] == code


async def test_the_same_place_again_is_the_same_proxy_with_a_new_password(board: Board) -> None:
    proxy = await board.proxy()
    server = board.socks[proxy]
    session = await board.provision()
    server.password = "an0ther"
    assert (await board.post(f"{PROXIES}/{proxy}/probe"))["code"] == "auth_rejected"
    again = await board.ask("POST", PROXIES, json={"url": f"socks5h://{USER}:an0ther@127.0.0.1:{server.port}"})
    assert again.status_code == 200
    assert (again.json()["proxyId"], again.json()["status"]) == (proxy, "OK")
    assert len(await items(board)) == 1
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert ":an0ther@" in worker.environment["PROXY_URL"]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (f"socks5://{WRITTEN}@h:1", "socks5:// is refused: names would be resolved here and leak past the proxy"),
        (f"http://{WRITTEN}@h:1", "http:// is refused: only SOCKS5 carries all that a worker sends"),
        (f"https://{WRITTEN}@h:1", "https:// is refused"),
        (f"{WRITTEN}@h:1", "does not say what kind of proxy it is"),
        (f"socks5h://{WRITTEN}@h", "the port is missing"),
        (f"socks5h://{WRITTEN}@h:1/x", "nothing may follow the port"),
        (f"socks5h://{WRITTEN} @h:1", "white space"),
        ("", "at least 1 character"),
        ("x" * 1001, "at most 1000 characters"),
        (7, "valid string"),
    ],
)
async def test_a_url_that_is_no_good_is_refused_with_the_reason(board: Board, url: object, sentence: str) -> None:
    refused(await board.ask("POST", PROXIES, json={"url": url}), 400, "INVALID_REQUEST", sentence, field="url")
    assert await items(board) == []


async def test_a_body_without_a_url_is_refused(board: Board) -> None:
    bodies: list[Any] = [{}, [], {"url": "socks5h://h:1", "x": 1}]
    for body in bodies:
        refused(await board.ask("POST", PROXIES, json=body), 400, "INVALID_REQUEST")


# Trying.


async def test_a_probe_says_what_was_found_and_marks_it(board: Board) -> None:
    proxy = await board.proxy()
    found = await board.post(f"{PROXIES}/{proxy}/probe")
    assert (found["proxyId"], found["ok"], found["code"]) == (proxy, True, "ok")
    board.socks[proxy].mode = Mode(reply=5)
    board.now += MINUTE
    found = await board.post(f"{PROXIES}/{proxy}/probe")
    assert (found["ok"], found["code"]) == (False, "connect_refused")
    [shown] = await items(board)
    assert (shown["status"], shown["badAt"]) == ("BAD", "2026-06-09T12:01:00+00:00")
    [event] = await board.told("proxy.bad")
    assert event["proxyId"] == proxy


@pytest.mark.parametrize("proxy", ["proxy_9", "x", "proxy_1:2", "direct"])
async def test_a_proxy_that_does_not_exist_is_not_found(board: Board, proxy: str) -> None:
    for method, path in (("POST", f"{PROXIES}/{proxy}/probe"), ("DELETE", f"{PROXIES}/{proxy}")):
        refused(await board.ask(method, path), 404, "PROXY_NOT_FOUND", f"There is no proxy '{proxy}'.")


async def test_a_bad_proxy_comes_back_by_itself(board: Board) -> None:
    proxy = await board.proxy()
    board.socks[proxy].mode = BROKEN
    await board.post(f"{PROXIES}/{proxy}/probe")
    await board.orchestrator.care.round()
    assert [one["status"] for one in await items(board)] == ["BAD"]
    board.socks[proxy].mode = GOOD
    await board.orchestrator.care.round()
    assert [one["status"] for one in await items(board)] == ["OK"]
    assert len(await board.told("proxy.bad")) == 1
    assert [event["proxyId"] for event in await board.told("proxy.recovered")] == [proxy]
    seen = board.socks[proxy].connections
    await board.orchestrator.care.round()
    assert board.socks[proxy].connections == seen  # those that work are not tried


async def test_the_pool_is_looked_after_all_the_time(valkey_url: str, prefix: str, tmp_path: Path) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, rules_for(tmp_path, probe_ms=5)) as board:
        proxy = await board.proxy()
        await board.store.proxies.mark(proxy, ok=False, reason="unreachable", now=board.now)

        async def works() -> bool:
            return (await board.store.proxies.find(proxy)).ok

        async with running(board.orchestrator.care.run()):
            await until(works)


# Removing.


async def test_a_proxy_nobody_is_on_can_be_removed(board: Board) -> None:
    proxy = await board.proxy()
    assert await board.delete(f"{PROXIES}/{proxy}") == {"removed": True, "proxyId": proxy}
    assert await items(board) == []
    assert await board.proxy() == "proxy_2"  # a name is not used twice


async def test_one_that_is_not_to_run_has_not_moved_when_it_is_started_later(board: Board) -> None:
    proxy = await board.proxy()
    session = await board.linked()
    await board.command(session, "stop")
    await board.settle()
    await board.delete(f"/api/proxies/{proxy}?force=true")
    await board.proxy()
    await board.command(session, "start")
    await board.up()
    assert not [told for told in await board.told("proxy.failover") if told["sessionId"] == session]


async def test_one_that_is_in_use_is_removed_by_force_and_its_sessions_move_or_wait(board: Board) -> None:
    proxy = await board.proxy()
    moving, waiting = await board.linked(PHONES[1]), await board.linked(PHONES[2])
    other = await board.proxy()
    await board.fill(other, 3)
    answer = await board.ask("DELETE", f"{PROXIES}/{proxy}")
    refused(answer, 409, "PROXY_IN_USE", "2 sessions are on proxy 'proxy_1'", sessions=[moving, waiting])
    await board.delete(f"{PROXIES}/{proxy}", params={"force": True})
    assert [(await board.show(one))["reason"] for one in (moving, waiting)] == ["proxy_removed"] * 2
    await board.all_up()
    places = {(await board.show(one))["proxyId"] for one in (moving, waiting)}
    assert places == {other, None}
    [left] = [one for one in (moving, waiting) if (await board.look(one)).proxy is None]
    assert board.worker(left) is None
    assert (await board.show(left))["reason"] == "waiting_for_proxy"
    [moved] = {moving, waiting} - {left}
    told = ["disconnected proxy_removed", "proxy_1 to proxy_2", "starting failover", "starting "]
    assert await history(board, moved) == told
    assert await history(board, left) == ["disconnected proxy_removed", "disconnected waiting_for_proxy"]
    refused(await board.ask("DELETE", f"{PROXIES}/{other}", params={"force": "x"}), 400, "INVALID_REQUEST")


async def history(board: Board, session: str) -> list[str]:
    """Of its states and its proxies, since it was connected."""
    events = (await board.get(f"/api/sessions/{session}/events"))["items"]
    told = [(event["type"].partition(".")[2], event["data"]) for event in events if "." in event["type"]]
    kinds = [kind for kind, _ in told]
    since = reversed(told[: kinds.index("connected")])
    return [f"{it['from']} to {it['to']}" if "to" in it else f"{kind} {it['reason']}" for kind, it in since]


# The pool of the settings.


async def test_the_settings_pool_is_seeded_once_and_leaves_with_the_settings(
    valkey_url: str, prefix: str, tmp_path: Path
) -> None:
    dead = f"socks5h://{WRITTEN}@127.0.0.1:{free_port()}"
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        _, url = await board.socks5()
        care = board.orchestrator.care
        await care.seed([url, dead])
        await care.seed([url, dead])
        assert [one["proxyId"] for one in await items(board)] == ["proxy_1", "proxy_2"]

        async def tried() -> bool:
            return [one["status"] for one in await items(board)] == ["OK", "BAD"]

        await until(tried)
        added = await board.proxy()
        session = await board.provision(proxy="proxy_1")
        await care.seed([])
        assert [one["proxyId"] for one in await items(board)] == ["proxy_1", added]  # a session is on the first
        await board.command(session, "stop")
        await board.settle()
        await care.seed([])
        assert [one["proxyId"] for one in await items(board)] == [added]


# The places that are left.


async def test_the_inventory_counts_places_on_proxies_that_work(board: Board) -> None:
    assert await board.get("/api/inventory") == {
        "proxies": 0, "bad": 0, "capacity": 0, "used": 0, "free": 0, "direct": False,
    }  # fmt: skip
    proxy, bad = await board.proxy(), await board.proxy()
    await board.fill(proxy, 3)
    await board.store.proxies.mark(bad, ok=False, reason="unreachable", now=board.now)
    assert await board.get("/api/inventory") == {
        "proxies": 2, "bad": 1, "capacity": 8, "used": 3, "free": 1, "direct": False,
    }  # fmt: skip


async def test_that_few_places_are_left_is_told_once_and_so_is_the_end_of_it(board: Board) -> None:
    proxy = await board.proxy()
    sessions = await board.fill(proxy, 3)
    assert await board.told("inventory.low") != []
    await board.fill(proxy, 1)
    await board.orchestrator.care.round()
    [low] = await board.told("inventory.low")
    assert (low["free"], low["capacity"]) == ("1", "4")
    assert await board.told("inventory.enough") == []
    for session in sessions:
        await board.command(session, "stop")
    await board.settle()
    for _ in range(2):
        await board.orchestrator.care.round()
    [enough] = await board.told("inventory.enough")
    assert (enough["free"], enough["capacity"]) == ("3", "4")


async def test_going_direct_needs_leave_and_an_empty_pool(valkey_url: str, prefix: str, tmp_path: Path) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board:
        direct = await board.linked(PHONES[1])
        proxy = await board.proxy()
        await board.settle()
        assert (await board.show(direct))["status"] == "connected"  # it is not disturbed
        await board.command(direct, "restart")
        await board.up()
        worker = board.worker(direct)
        assert worker is not None
        assert worker.environment["PROXY_URL"] != "direct"
        await board.store.proxies.mark(proxy, ok=False, reason="unreachable", now=board.now)
        answer = await board.ask("POST", "/api/sessions/provision")
        refused(answer, 409, "NO_PROXY_AVAILABLE", reason="all_bad")


async def test_once_that_leave_is_taken_back_a_direct_session_waits_for_a_proxy(
    valkey_url: str, prefix: str, tmp_path: Path
) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board:
        session = await board.linked(PHONES[1])
        strict = next_orchestrator(board, MemoryWorld())
        for _ in range(3):
            board.now += MINUTE
            await rounds(board, strict)
        assert board.worker(session) is None
        assert (await board.show(session))["reason"] == "waiting_for_proxy"


# Credentials.


async def test_credentials_are_in_no_log_no_event_no_key_and_no_repr(board: Board) -> None:
    """`Board.ask` holds every answer against them, too."""
    with structlog.testing.capture_logs() as logs:
        proxy = await board.proxy()
        session = await board.linked(proxy=proxy)
        await board.ask("POST", PROXIES, json={"url": f"socks5h://{WRITTEN}@127.0.0.1:{board.socks[proxy].port}"})
        other = await board.proxy()
        board.socks[proxy].mode = Mode(rejects_everyone=True)
        await board.post(f"{PROXIES}/{proxy}/probe")
        await board.disconnected(session, "connection_lost")
        await board.up()
        await board.delete(f"{PROXIES}/{proxy}")
        await board.orchestrator.care.seed([f"socks5h://{WRITTEN}@127.0.0.1:1"])
        await board.get(f"/api/sessions/{session}/events")
        await board.get(PROXIES)
    assert (await board.look(session)).proxy == other
    assert len(logs) > 5
    shows_no_credentials(json.dumps(logs, default=repr))
    shows_no_credentials(json.dumps(await board.told()))
    names = [key async for key in board.client.scan_iter(f"{board.prefix}*")]
    shows_no_credentials(" ".join(names))
    worker = board.worker(session)
    url = await board.store.proxies.url_of(other)
    assert url is not None
    shows_no_credentials(repr([worker, url, await board.store.proxies.all(), await board.look(session)]))
    shows_no_credentials(str(url))


@pytest.mark.parametrize("kind", ["rules", "wish", "proxy", "provision", "create"])
def test_what_carries_a_url_does_not_show_it(kind: str) -> None:
    url = f"socks5h://{WRITTEN}@127.0.0.1:1080"
    things: dict[str, object] = {
        "rules": rules_for(Path("/nowhere"), proxy_urls=[url]),
        "wish": Wish(proxy=url),
        "proxy": ProxyRequest(url=url),
        "provision": ProvisionRequest.model_validate({"proxy": url}),
        "create": CreateRequest.model_validate({"sessionId": "a", "proxyOverride": url}),
    }
    shows_no_credentials(repr(things[kind]))
