"""Making sessions and looking at them: whose proxy, which id, how many, and every reason why not.

Each answer is held against the OpenAPI document, and none may show a proxy's credentials (see `Board.ask`).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from switchboard.domain.sessions import DIRECT
from tests.support.board import (
    PASSWORD,
    PHONES,
    WRITTEN,
    Board,
    direct_rules,
    good,
    opened_board,
    refused,
    rules_for,
)
from tests.support.driver import NOON, UNHURRIED, Driver
from tests.support.socks5 import Mode, Step, Trouble

pytestmark = pytest.mark.anyio

PROVISION = "/api/sessions/provision"
SESSIONS = "/api/sessions"


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path, rules_for(tmp_path, default_country="IL")) as board:
        yield board


# Making.


async def test_a_new_session_has_its_proxy_before_anything_is_scanned(board: Board) -> None:
    proxy = await board.proxy()
    answer = await board.ask("POST", PROVISION, json={"name": "Support"})
    assert answer.status_code == 201
    assert answer.json() == {
        "sessionId": "worker_1",
        "name": "Support",
        "status": "starting",
        "phone": None,
        "proxyId": proxy,
        "deviceName": "Switchboard worker_1",
        "trustLevel": None,
        "limits": None,
        "sentToday": 0,
        "queueSize": 0,
        "createdAt": "2026-06-09T12:00:00+00:00",
        "connectedAt": None,
        "lastPing": None,
        "paused": False,
        "pausedUntil": None,
        "pausedReason": None,
        "scanBy": "2026-06-09T12:05:00+00:00",
        "reason": None,
    }
    assert await board.client.get(f"{board.prefix}session:temp:worker_1") == proxy
    assert await board.on(proxy) == {"worker_1"}


async def test_sessions_made_at_the_same_moment_spread_over_the_proxies(board: Board) -> None:
    proxies = [await board.proxy() for _ in range(3)]
    await asyncio.gather(*(board.ask("POST", PROVISION, json={}) for _ in range(6)))
    assert [len(await board.on(proxy)) for proxy in proxies] == [2, 2, 2]


async def test_its_worker_is_told_its_proxy_its_secret_and_its_name_for_life(board: Board) -> None:
    proxy = await board.proxy()
    session = await board.running()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["PROXY_URL"] == f"socks5h://{WRITTEN}@127.0.0.1:{board.socks[proxy].port}"
    assert worker.environment["DEVICE_NAME"] == "Switchboard worker_1"
    assert worker.environment["SESSION_ID"] == session
    assert worker.environment["WEBHOOK_SECRET"].startswith("whsec_")
    assert PASSWORD not in repr(worker)


async def test_without_a_body_there_is_a_session_all_the_same(board: Board) -> None:
    await board.proxy()
    assert good(await board.ask("POST", PROVISION))["sessionId"] == "worker_1"


async def test_an_id_of_ones_own_is_kept_and_counting_goes_around_it(board: Board) -> None:
    await board.proxy()
    assert (await board.post(SESSIONS, {"sessionId": "worker_1"}))["sessionId"] == "worker_1"
    assert await board.provision() == "worker_2"


async def test_the_least_loaded_proxy_is_taken(board: Board) -> None:
    proxies = [await board.proxy() for _ in range(3)]
    chosen = [(await board.show(await board.provision()))["proxyId"] for _ in range(6)]
    assert chosen == proxies * 2


async def test_a_proxy_can_be_demanded_by_id_or_by_url(board: Board) -> None:
    await board.proxy()
    second = await board.proxy()
    assert (await board.show(await board.provision(proxy=second)))["proxyId"] == second
    own = await board.post(SESSIONS, {"sessionId": "own", "proxyOverride": second})
    assert own["proxyId"] == second
    _, url = await board.socks5()
    assert (await board.show(await board.provision(proxy=url)))["proxyId"] == "proxy_3"
    assert (await board.show(await board.provision(proxy=url)))["proxyId"] == "proxy_3"


async def test_a_phone_gets_the_proxy_it_had(board: Board) -> None:
    await board.proxy()
    sticky = await board.proxy()
    first = await board.linked(PHONES[1], proxy=sticky)
    assert (await board.look(first)).proxy == sticky
    assert (await board.show(await board.provision(phone=f"+{PHONES[1]}")))["proxyId"] == sticky


# Why not.


@pytest.mark.parametrize(
    ("path", "body", "field", "sentence"),
    [
        (PROVISION, {"phone": "123"}, "phone", "phone: "),
        (PROVISION, {"phone": "x" * 41}, "phone", "at most 40 characters"),
        (PROVISION, {"proxy": "socks5://h:1"}, "proxy", "socks5:// is refused: names would be resolved here"),
        (PROVISION, {"proxy": "http://h:1"}, "proxy", "http:// is refused: only SOCKS5 carries all"),
        (PROVISION, {"proxy": f"socks5h://{WRITTEN}@h"}, "proxy", "the port is missing"),
        (PROVISION, {"proxy": "x" * 1001}, "proxy", "at most 1000 characters"),
        (PROVISION, {"name": "x" * 101}, "name", "at most 100"),
        (PROVISION, {"name": "a\x00b"}, "name", "holds a control character"),
        (PROVISION, {"colour": "red"}, "colour", "there is no such field"),
        (PROVISION, [], "body", ""),
        (SESSIONS, {}, "sessionId", "required"),
        (SESSIONS, {"sessionId": "a b"}, "sessionId", "1 to 64 letters, digits, _ and -"),
        (SESSIONS, {"sessionId": "x" * 65}, "sessionId", "1 to 64 letters"),
        (SESSIONS, {"sessionId": "a:b"}, "sessionId", "1 to 64 letters"),
        (SESSIONS, {"sessionId": "new"}, "sessionId", "'new' can't be one"),
        (SESSIONS, {"sessionId": "a", "proxyOverride": "http://h:1"}, "proxyOverride", "http:// is refused"),
        (SESSIONS, {"sessionId": "a", "phone": "0"}, "phone", "phone: "),
    ],
)
async def test_a_body_that_is_wrong_names_the_field(
    board: Board, path: str, body: Any, field: str, sentence: str
) -> None:
    await board.proxy()
    refused(await board.ask("POST", path, json=body), 400, "INVALID_REQUEST", sentence, field=field)
    assert (await board.get(SESSIONS))["items"] == []


async def test_an_id_that_is_taken_is_refused(board: Board) -> None:
    await board.proxy()
    await board.post(SESSIONS, {"sessionId": "mine"})
    sentence = "There is a session 'mine' already."
    refused(await board.ask("POST", SESSIONS, json={"sessionId": "mine"}), 409, "SESSION_EXISTS", sentence)


async def test_an_empty_pool_says_what_to_do(board: Board) -> None:
    answer = await board.ask("POST", PROVISION)
    refused(answer, 409, "NO_PROXY_AVAILABLE", "The pool is empty. Add a proxy", reason="empty_pool")


async def test_a_full_pool_says_how_full(board: Board) -> None:
    await board.fill(await board.proxy())
    answer = await board.ask("POST", PROVISION)
    refused(answer, 409, "NO_PROXY_AVAILABLE", "No proxy has room: 4 of 4 places are taken", reason="pool_full")


async def test_a_pool_of_which_nothing_works_says_so(board: Board) -> None:
    proxy = await board.proxy()
    await board.store.proxies.mark(proxy, ok=False, reason="unreachable", now=board.now)
    answer = await board.ask("POST", PROVISION)
    refused(answer, 409, "NO_PROXY_AVAILABLE", "None of the 1 proxies works right now", reason="all_bad")


async def test_a_demanded_proxy_is_used_or_refused_never_replaced(board: Board) -> None:
    await board.proxy()
    full, bad = await board.proxy(), await board.proxy()
    await board.fill(full)
    await board.store.proxies.mark(bad, ok=False, reason="unreachable", now=board.now)
    answers = {one: await board.ask("POST", PROVISION, json={"proxy": one}) for one in (full, bad, "proxy_9", DIRECT)}
    refused(answers[full], 409, "NO_PROXY_AVAILABLE", f"Proxy '{full}' has no place left", reason="override_full")
    refused(answers[bad], 409, "NO_PROXY_AVAILABLE", f"Proxy '{bad}' does not work", reason="override_bad")
    refused(answers["proxy_9"], 404, "PROXY_NOT_FOUND", "There is no proxy 'proxy_9'.")
    refused(answers[DIRECT], 400, "INVALID_REQUEST", "proxy: is neither a proxy of the pool")


async def test_a_demanded_url_that_does_not_work_is_added_as_bad_and_refused(board: Board) -> None:
    server, url = await board.socks5()
    server.mode = Mode(trouble=Trouble.CLOSE, at=Step.GREETING)
    answer = await board.ask("POST", PROVISION, json={"proxy": url})
    refused(answer, 409, "NO_PROXY_AVAILABLE", "Proxy 'proxy_1' does not work", reason="override_bad")


async def test_credentials_written_without_a_scheme_are_not_repeated(board: Board) -> None:
    """A slip of the hand: `user:password@host:port` is neither an id nor a URL. `ask` holds the answer against them."""
    await board.proxy()
    answer = await board.ask("POST", PROVISION, json={"proxy": f"{WRITTEN}@127.0.0.1:1080"})
    assert answer.status_code in {400, 404}


async def test_a_phone_has_four_sessions_at_most(board: Board) -> None:
    await board.proxy()
    await board.proxy()
    for _ in range(4):
        await board.provision(phone=PHONES[1])
    sentence = "This phone has its 4 sessions already; delete one first"
    for path, body in ((PROVISION, {}), (SESSIONS, {"sessionId": "fifth"})):
        answer = await board.ask("POST", path, json={"phone": PHONES[1], **body})
        refused(answer, 409, "TOO_MANY_SESSIONS", sentence, limit=4)
    await board.provision(phone=PHONES[2])


async def test_many_at_once_never_get_more_places_than_there_are(board: Board) -> None:
    proxies = [await board.proxy(), await board.proxy()]
    answers = await asyncio.gather(*(board.ask("POST", PROVISION) for _ in range(14)))
    assert sorted(answer.status_code for answer in answers) == [201] * 8 + [409] * 6
    assert [len(await board.on(proxy)) for proxy in proxies] == [4, 4]
    assert len({answer.json()["sessionId"] for answer in answers if answer.status_code == 201}) == 8


async def test_a_phone_may_be_written_as_people_do(board: Board) -> None:
    await board.proxy()
    session = await board.provision(phone="050-000-0001")
    assert await board.client.smembers(f"{board.prefix}phone:sessions:{PHONES[1]}") == {session}


# The same wish again.


async def test_the_same_idempotency_key_gives_the_same_session(board: Board) -> None:
    await board.proxy()
    headers = {"Idempotency-Key": "order-17"}
    first = await board.post(PROVISION, {"name": "x"}, headers=headers)
    assert await board.post(PROVISION, {"name": "x"}, headers=headers) == first
    refused(await board.ask("POST", PROVISION, json={"name": "y"}, headers=headers), 409, "IDEMPOTENCY_CONFLICT")
    other = await board.key("admin")
    assert (await board.post(PROVISION, {"name": "x"}, headers=headers, key=other))["sessionId"] == "worker_2"
    assert len((await board.get(SESSIONS))["items"]) == 2


async def test_so_it_does_when_that_session_took_the_last_place(board: Board) -> None:
    await board.fill(await board.proxy(), 3)
    headers = {"Idempotency-Key": "order-17"}
    first = await board.post(PROVISION, {"name": "x"}, headers=headers)
    assert await board.post(PROVISION, {"name": "x"}, headers=headers) == first


async def test_the_wish_of_a_session_that_was_deleted_since_is_answered_as_documented(board: Board) -> None:
    await board.proxy()
    headers = {"Idempotency-Key": "order-17"}
    session = (await board.post(PROVISION, {}, headers=headers))["sessionId"]
    await board.http.delete(f"{SESSIONS}/{session}")
    await board.settle()
    await board.ask("POST", PROVISION, json={}, headers=headers)


# Without proxies.


async def test_with_an_empty_pool_and_leave_to_do_so_a_session_goes_direct(
    valkey_url: str, prefix: str, tmp_path: Path
) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board:
        session = await board.running()
        worker = board.worker(session)
        assert worker is not None
        assert worker.environment["PROXY_URL"] == "direct"
        assert (await board.show(session))["proxyId"] == "direct"
        assert (await board.get("/api/inventory"))["direct"] is True
        await board.proxy()
        assert (await board.show(await board.provision()))["proxyId"] == "proxy_1"
        assert (await board.get("/api/inventory"))["direct"] is False


# Looking.


async def test_sessions_are_listed_page_by_page_in_the_order_people_count(board: Board) -> None:
    for _ in range(3):
        await board.fill(await board.proxy())
    await board.proxy()
    await board.post(SESSIONS, {"sessionId": "another"})
    expected = ["another", *[f"worker_{n}" for n in range(1, 13)]]
    found: list[str] = []
    params: dict[str, Any] = {"limit": 5}
    while True:
        page = await board.get(SESSIONS, params=params)
        assert len(page["items"]) <= 5
        found += [item["sessionId"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert found == expected
    assert [item["sessionId"] for item in (await board.get(SESSIONS))["items"]] == expected


@pytest.mark.parametrize("params", [{"limit": 0}, {"limit": 201}, {"cursor": "a:b"}, {"limit": "x"}])
async def test_a_page_that_can_not_be_is_refused(board: Board, params: dict[str, Any]) -> None:
    refused(await board.ask("GET", SESSIONS, params=params), 400, "INVALID_REQUEST", field=next(iter(params)))


async def test_a_linked_session_is_shown_with_what_its_account_may_do(board: Board) -> None:
    await board.proxy()
    session = await board.linked(PHONES[1])
    driver = Driver(board.store, board.client, board.prefix)
    driver.now = board.now
    await driver.send(session)
    await driver.send(session)
    await driver.settle_down()
    shown = await board.show(session)
    assert (shown["status"], shown["phone"], shown["trustLevel"]) == ("connected", PHONES[1], "cold")
    assert shown["limits"] == {
        "daily": 20, "perMinute": 5, "baseDelayMs": 5000, "jitterMs": 3000, "hours": "09:00-21:00",
    }  # fmt: skip
    assert (shown["sentToday"], shown["queueSize"]) == (1, 1)
    assert shown["connectedAt"] == shown["lastPing"] == "2026-06-09T12:00:02+00:00"
    assert shown["scanBy"] is None
    await board.store.accounts.override(PHONES[1], UNHURRIED, "Asia/Jerusalem", board.now)
    assert (await board.show(session))["connectedAt"] == "2026-06-09T15:00:02+03:00"
    assert (await board.show(session))["limits"]["daily"] == 10_000


async def test_its_events_are_shown_newest_first_and_page_by_page(board: Board) -> None:
    await board.proxy()
    session = await board.running()
    await board.qr(session)
    await board.connected(session, PHONES[1])
    whole = await board.get(f"{SESSIONS}/{session}/events")
    kinds = [item["type"] for item in whole["items"]]
    assert kinds == ["CONNECTED", "session.connected", "QR_CODE", "session.qr_ready", "session.starting"]
    assert whole["items"][0]["data"] == {"phoneNumber": PHONES[1], "fingerprint": "Switchboard"}
    assert whole["items"][2]["data"] == {"expiresAt": NOON + 2_000 + 60_000}
    assert whole["items"][0]["at"] == "2026-06-09T12:00:02+00:00"
    first = await board.get(f"{SESSIONS}/{session}/events", params={"limit": 2})
    rest = await board.get(f"{SESSIONS}/{session}/events", params={"limit": 3, "cursor": first["nextCursor"]})
    assert first["items"] + rest["items"] == whole["items"]
    refused(await board.ask("GET", f"{SESSIONS}/{session}/events", params={"cursor": "x"}), 400, "INVALID_REQUEST")


# Who may.


@pytest.mark.parametrize("session", ["nobody", "a:b", "x" * 65, "%2e%2e"])
async def test_a_session_that_does_not_exist_is_not_found(board: Board, session: str) -> None:
    calls = [("GET", ""), ("DELETE", ""), ("GET", "/events"), ("GET", "/qr"), ("POST", "/pairing-code")]
    calls += [("POST", f"/{name}") for name in ("start", "stop", "restart", "logout", "pause", "resume")]
    for method, rest in calls:
        body = {"json": {"phone": PHONES[1]}} if rest == "/pairing-code" else {}
        answer = await board.ask(method, f"{SESSIONS}/{session}{rest}", **body)
        refused(answer, 404, "SESSION_NOT_FOUND", "There is no session or account")


async def test_keys_do_what_their_scope_and_sessions_allow(board: Board) -> None:
    await board.proxy()
    mine, other = await board.provision(), await board.provision()
    reader, sender = await board.key("read"), await board.key("send")
    bound = await board.key("admin", sessions=(mine, "own"))
    assert len((await board.get(SESSIONS, key=reader))["items"]) == 2
    assert [item["sessionId"] for item in (await board.get(SESSIONS, key=bound))["items"]] == [mine]
    await board.get(f"{SESSIONS}/{mine}", key=bound)
    await board.post(SESSIONS, {"sessionId": "own"}, key=bound)
    for key, method, path in [
        (sender, "GET", SESSIONS),
        (reader, "POST", PROVISION),
        (reader, "GET", f"{SESSIONS}/{mine}/qr"),
        (reader, "POST", f"{SESSIONS}/{mine}/stop"),
        (reader, "DELETE", f"{SESSIONS}/{mine}"),
        (reader, "GET", "/api/proxies"),
        (reader, "GET", "/api/inventory"),
        (bound, "POST", PROVISION),
        (bound, "GET", f"{SESSIONS}/{other}"),
        (bound, "GET", f"{SESSIONS}/{other}/events"),
        (bound, "GET", f"{SESSIONS}/{other}/qr"),
        (bound, "POST", f"{SESSIONS}/{other}/stop"),
        (bound, "POST", f"{SESSIONS}/{other}/pause"),
        (bound, "DELETE", f"{SESSIONS}/{other}"),
        (bound, "GET", "/api/proxies"),
        (bound, "GET", "/api/inventory"),
        (bound, "GET", "/api/fleet"),
        (sender, "GET", "/api/fleet"),
        (bound, "DELETE", "/api/proxies/proxy_1"),
    ]:
        refused(await board.ask(method, path, key=key), 403, "FORBIDDEN")
        refused(await board.ask(method, path, key=None), 401, "UNAUTHORIZED")
        refused(await board.ask(method, path, key="sk_unknown"), 401, "UNAUTHORIZED")
    refused(await board.ask("POST", SESSIONS, json={"sessionId": "x"}, key=bound), 403, "FORBIDDEN")
    assert (await board.show(other))["status"] == "starting"


async def test_a_key_has_its_calls_a_minute(board: Board) -> None:
    slow = await board.key("read", per_minute=1)
    await board.get(SESSIONS, key=slow)
    refused(await board.ask("GET", SESSIONS, key=slow), 429, "RATE_LIMITED")
