"""What waits, page by page while others come and go, and taking one back."""

from dataclasses import replace

import pytest

from tests.support.driver import UNHURRIED, Driver
from tests.support.gateway import Api, cursor_of, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
NOBODY = "0" * 18


async def page(api: Api, limit: int, cursor: str | None = None) -> tuple[list[str], str | None]:
    answer = await api.get("/api/v1/queue/a", params={"limit": limit} | cursor_of(cursor))
    assert set(answer) == {"items", "nextCursor"}
    return [item["messageId"] for item in answer["items"]], answer["nextCursor"]


async def test_an_empty_queue_is_one_empty_page(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    assert await page(api, 10) == ([], None)


async def test_a_queue_is_read_page_by_page_in_the_order_it_leaves(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    normal = [(await api.send())["messageId"] for _ in range(7)]
    urgent = [(await api.send({"priority": 3}))["messageId"] for _ in range(3)]
    expected, cursor, seen = urgent + normal, None, []
    for size in (4, 4, 2):
        items, cursor = await page(api, 4, cursor)
        assert len(items) == size
        seen += items
    assert seen == expected
    assert cursor is None


async def test_the_last_full_page_has_no_next(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    for _ in range(4):
        await api.send()
    assert (await page(api, 4))[1] is None
    assert (await page(api, 3))[1] is not None


async def test_a_page_has_50_unless_told_and_200_at_most(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.sessions.disconnect("a", driver.now)
    await api.batch(250)
    driver.now += 1000
    await driver.settle_down()
    assert len((await api.get("/api/v1/queue/a"))["items"]) == 50
    assert len((await page(api, 200))[0]) == 200
    for limit in (0, 201, "many"):
        refused(await api.ask("GET", "/api/v1/queue/a", params={"limit": limit}), 400, "INVALID_REQUEST", field="limit")


async def test_a_cursor_holds_while_others_come_and_go(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    sent = [(await api.send())["messageId"] for _ in range(9)]
    first, cursor = await page(api, 3)
    assert first == sent[:3]
    await api.delete(f"/api/v1/queue/a/{sent[2]}")  # the very one the cursor points to
    await api.delete(f"/api/v1/queue/a/{sent[4]}")
    await api.send({"priority": 3})  # goes in front of what was read
    late = (await api.send())["messageId"]
    assert await driver.hand_over() not in sent
    second, cursor = await page(api, 3, cursor)
    assert second == [sent[3], sent[5], sent[6]]
    third, cursor = await page(api, 3, cursor)
    assert third == [sent[7], sent[8], late]
    assert cursor is None


@pytest.mark.parametrize(
    "cursor", ["x", "1", "_", f"..._{NOBODY}", f"1.2.3_{NOBODY}", f"nan_{NOBODY}", "1_2", f"1_{NOBODY}0"]
)
async def test_a_cursor_that_is_none_is_refused(driver: Driver, api: Api, cursor: str) -> None:
    await driver.link("a", PHONE)
    for path in ("/api/v1/queue/a", "/api/v1/dead-letters"):
        response = await api.ask("GET", path, params={"cursor": cursor})
        refused(response, 400, "INVALID_REQUEST", field="cursor")


async def test_each_waiting_message_says_what_it_waits_for(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, base_delay_ms=5000, daily=2))
    for _ in range(3):
        await api.send()
    items = (await api.get("/api/v1/queue/a"))["items"]
    assert [item["waiting"] for item in items] == [
        {"reason": "delay", "until": "2026-06-09T12:00:00+00:00"},
        {"reason": "delay", "until": "2026-06-09T12:00:05+00:00"},
        {"reason": "daily_limit", "until": "2026-06-10T00:00:00+00:00"},
    ]


async def test_two_sessions_of_one_phone_have_one_queue(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", PHONE)
    sent = [(await api.send({"sessionId": session}))["messageId"] for session in ("a", "b")]
    assert await api.queue("a") == await api.queue("b") == sent


async def test_a_waiting_message_can_be_taken_back(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    kept, taken = [(await api.send())["messageId"] for _ in range(2)]
    assert await api.delete(f"/api/v1/queue/a/{taken}") == {"cancelled": True, "messageId": taken}
    shown = await api.status(taken)
    assert (shown["status"], shown["waiting"]) == ("cancelled", None)
    assert await api.queue() == [kept]
    refused(await api.ask("DELETE", f"/api/v1/queue/a/{taken}"), 409, "MESSAGE_NOT_WAITING", status="cancelled")


async def test_a_scheduled_message_can_be_taken_back(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = (await api.send({"scheduledFor": "2026-06-09T13:00:00Z"}))["messageId"]
    await api.delete(f"/api/v1/queue/a/{message}")
    assert (await api.status(message))["status"] == "cancelled"


async def test_one_that_was_handed_over_and_not_fetched_can_be_taken_back_uncounted(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = (await api.send())["messageId"]
    assert await driver.hand_over() == message
    await api.delete(f"/api/v1/queue/a/{message}")
    assert await driver.claim() is None
    assert (await api.get("/api/anti-ban/sessions/a/limits"))["sentToday"] == 0


async def test_one_that_has_left_can_not_be_taken_back(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = (await api.send())["messageId"]
    await driver.attempt()
    refused(await api.ask("DELETE", f"/api/v1/queue/a/{message}"), 409, "MESSAGE_NOT_WAITING", status="sending")
    await driver.confirm(message)
    refused(await api.ask("DELETE", f"/api/v1/queue/a/{message}"), 409, "MESSAGE_NOT_WAITING", status="sent")


async def test_only_a_message_of_that_session_is_found(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", "972500000002")
    message = (await api.send())["messageId"]
    for session, name in (("b", message), ("a", NOBODY), ("a", "x")):
        refused(await api.ask("DELETE", f"/api/v1/queue/{session}/{name}"), 404, "MESSAGE_NOT_FOUND", messageId=name)
    refused(await api.ask("DELETE", f"/api/v1/queue/nobody/{message}"), 404, "SESSION_NOT_FOUND")
    assert await api.queue() == [message]


async def test_one_without_a_sender_can_be_taken_back_by_its_id_alone(driver: Driver, api: Api) -> None:
    message = (await api.send({"sessionId": ...}))["messageId"]
    await api.delete(f"/api/v1/messages/{message}")
    assert (await driver.message(message)).status == "cancelled"
    again = await api.ask("DELETE", f"/api/v1/messages/{message}")
    assert (again.status_code, again.json()["error"]) == (409, "MESSAGE_NOT_WAITING")
