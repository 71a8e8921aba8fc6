"""All messages and all batches, newest first: as a caller asks for them, and as much as their key may see."""

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.errors import MessageNotFound
from switchboard.gateway.reading import Reading
from tests.support.driver import UNHURRIED, Driver
from tests.support.gateway import SECRET_TEXT, Api, cursor_of, refused

pytestmark = pytest.mark.anyio

PHONE, OTHER = "972500000001", "972500000002"
MESSAGES, BATCHES = "/api/v1/messages", "/api/v1/batches"


async def listed(api: Api, path: str = MESSAGES, key: str | None = None, **asked: object) -> list[str]:
    """The ids of all that is found, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        given: dict[str, Any] = {"params": asked | cursor_of(cursor)} | ({"key": key} if key else {})
        page = await api.get(path, **given)
        assert set(page) == {"items", "nextCursor"}
        found += [item["messageId" if path == MESSAGES else "batchId"] for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            return found


async def send(driver: Driver, api: Api, **fields: object) -> str:
    driver.now += 1
    return str((await api.send(fields))["messageId"])


async def test_each_is_shown_as_its_own_status_shows_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, base_delay_ms=5000, daily=3))
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=3), "Asia/Jerusalem", driver.now)
    sent = [await send(driver, api) for _ in range(4)]
    sent.append(await send(driver, api, scheduledFor="2026-06-09T15:00:00Z"))
    sent.append(await send(driver, api, sessionId=..., reference="no sender yet"))
    await driver.confirm((await driver.attempt()).message_id)
    items = (await api.get(MESSAGES))["items"]
    assert [item["messageId"] for item in items] == sent[::-1]
    assert items == [await api.status(message) for message in sent[::-1]]
    reasons = [item["waiting"] and item["waiting"]["reason"] for item in items]
    assert reasons == ["daily_limit", "scheduled", "daily_limit", "delay", "delay", None]
    assert (items[-1]["status"], items[-1]["createdAt"]) == ("sent", "2026-06-09T15:00:00.001+03:00")


async def test_pages_go_on_while_new_ones_arrive(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    sent = [await send(driver, api) for _ in range(5)]
    driver.now += 1
    sent += await driver.store.batches.rows((await api.batch(4))["batchId"], 0, 10)
    first = await api.get(MESSAGES, params={"limit": 3})
    await send(driver, api)
    second = await api.get(MESSAGES, params={"limit": 200} | cursor_of(first["nextCursor"]))
    seen = [item["messageId"] for page in (first, second) for item in page["items"]]
    assert seen == sent[::-1]


async def test_rows_of_a_batch_are_paged_in_their_order(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await send(driver, api)
    driver.now += 1
    batch = (await api.batch(7, spreadMinutes=5))["batchId"]
    rows = await driver.store.batches.rows(batch, 0, 10)
    assert await listed(api, limit=3, batchId=batch) == rows
    assert (await listed(api, limit=3))[:7] == rows[::-1]


async def test_what_is_asked_for_is_what_is_found(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    mine = await send(driver, api, to="972509876543", reference="order 17/א")
    theirs = await send(driver, api, sessionId="b")
    later = await send(driver, api, sessionId="b", scheduledFor="2026-06-09T15:00:00Z")
    assert await listed(api, sessionId="b") == [later, theirs]
    assert await listed(api, phone=PHONE) == [mine]
    assert await listed(api, to="9876") == [mine]
    assert await listed(api, reference="order 17/א") == [mine]
    assert await listed(api, status="scheduled") == [later]
    assert await listed(api, status="queued, scheduled") == [later, theirs, mine]
    assert await listed(api, status="queued", sessionId="b", phone=OTHER) == [theirs]
    assert await listed(api, status="", sessionId="", phone="", to="", batchId="", reference="") == [
        later,
        theirs,
        mine,
    ]
    assert await listed(api, sessionId="nobody") == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "lost"), ("status", "queued,Sent"), ("sessionId", "a b"), ("phone", "+972"), ("to", "98-76"),
        ("batchId", "batch_1"), ("reference", "x" * 201), ("limit", 0), ("limit", 201), ("cursor", "x"),
        ("cursor", f"1_batch_{'0' * 18}"),
    ],
)  # fmt: skip
async def test_what_makes_no_sense_is_refused_by_name(api: Api, field: str, value: object) -> None:
    refused(await api.ask("GET", MESSAGES, params={field: value}), 400, "INVALID_REQUEST", field=field)


async def test_an_unknown_status_is_told_which_there_are(api: Api) -> None:
    body = refused(await api.ask("GET", MESSAGES, params={"status": "queued,lost"}), 400, "INVALID_REQUEST")
    assert "'lost' is none of scheduled, queued, sending, sent" in body["message"]


@pytest.mark.parametrize("cursor", ["x", f"1_{'0' * 18}", f"nan_batch_{'0' * 18}", "1_batch_0"])
async def test_a_batch_cursor_that_is_none_is_refused(api: Api, cursor: str) -> None:
    refused(await api.ask("GET", BATCHES, params={"cursor": cursor}), 400, "INVALID_REQUEST", field="cursor")


@pytest.mark.parametrize("cursor", ["0", "9" * 16, "1.5"])
async def test_a_made_up_cursor_finds_what_stands_there_and_leaves_no_trace(
    driver: Driver, api: Api, cursor: str
) -> None:
    await driver.link("a", PHONE)
    message = await send(driver, api)
    batch = (await api.batch(1))["batchId"]
    for path, name in ((MESSAGES, "0" * 18), (MESSAGES, message), (BATCHES, "batch_" + "0" * 18)):
        await api.get(path, params={"cursor": f"{cursor}_{name}"})
        assert await driver.client.zcard(driver.prefix + "messages") == 2
        assert await driver.client.zcard(driver.prefix + "batches") == 1
    await api.get(MESSAGES, params={"cursor": f"{cursor}_{message}", "batchId": batch})
    assert len(await listed(api)) == 2


async def test_batches_are_shown_as_each_is_newest_first(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    assert await listed(api, BATCHES) == []
    names = []
    for size in (1, 2, 3):
        driver.now += 1
        names.append((await api.batch(size, spreadMinutes=size))["batchId"])
    await api.delete(f"{BATCHES}/{names[1]}")
    assert await listed(api, BATCHES, limit=2) == names[::-1]
    items = (await api.get(BATCHES))["items"]
    assert items == [await api.get(f"{BATCHES}/{name}") for name in names[::-1]]
    assert [item["cancelled"] for item in items] == [0, 2, 0]


async def test_a_key_of_some_sessions_sees_only_theirs(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    await send(driver, api)
    mine = await send(driver, api, sessionId="b")
    await send(driver, api, sessionId=...)
    theirs = (await api.batch(2))["batchId"]
    batch = (await api.batch(2, sessionId="b"))["batchId"]
    rows = await driver.store.batches.rows(batch, 0, 10)
    _, key = await driver.store.api_keys.create("b's", frozenset({"read"}), frozenset({"b"}), 100)
    assert set(await listed(api, key=key, limit=1)) == {mine, *rows}
    assert await listed(api, key=key, batchId=theirs) == []
    assert await listed(api, key=key, batchId=batch) == rows
    assert await listed(api, BATCHES, key=key) == [batch]
    refused(await api.ask("GET", MESSAGES, params={"sessionId": "a"}, key=key), 403, "FORBIDDEN")
    _, sender = await driver.store.api_keys.create("send", frozenset({"send"}), frozenset(), 100)
    for path in (MESSAGES, BATCHES):
        refused(await api.ask("GET", path, key=sender), 403, "FORBIDDEN", scope="read")
        refused(await api.ask("GET", path, key=None), 401, "UNAUTHORIZED")


async def test_the_text_is_for_the_person_who_runs_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await send(driver, api)  # no answer of the API may hold it: `Api` looks
    reading = Reading(driver.store, driver.policy, ZoneInfo("UTC"), lambda: driver.now)
    assert await reading.text(message) == SECRET_TEXT
    with pytest.raises(MessageNotFound):
        await reading.text("0" * 18)
