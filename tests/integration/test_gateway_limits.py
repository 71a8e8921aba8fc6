"""An account's limits: the table's by its age, a person's where they set one, and what that does to an estimate."""

from typing import Any

import pytest

from tests.support.driver import DAY, NOON, Driver
from tests.support.gateway import Api, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
PATH = "/api/anti-ban/sessions/a/limits"
COLD: dict[str, Any] = {
    "sessionId": "a",
    "phone": PHONE,
    "trustLevel": "cold",
    "daily": 20,
    "perMinute": 5,
    "baseDelayMs": 5000,
    "jitterMs": 3000,
    "hours": "09:00-21:00",
    "timezone": "UTC",
    "overridden": [],
    "nextLevelAt": "2026-06-12T12:00:00+00:00",
    "sentToday": 0,
}
WARM: dict[str, Any] = {
    "trustLevel": "warm",
    "daily": 100,
    "perMinute": 15,
    "baseDelayMs": 3000,
    "jitterMs": 2000,
    "hours": "08:00-22:00",
    "nextLevelAt": "2026-06-23T12:00:00+00:00",
}
HOT: dict[str, Any] = {
    "trustLevel": "hot",
    "daily": 500,
    "perMinute": 30,
    "baseDelayMs": 2000,
    "jitterMs": 2000,
    "hours": "07:00-23:00",
    "nextLevelAt": None,
}


@pytest.mark.parametrize(
    ("age", "expected"),
    [(0, {}), (3 * DAY - 1, {}), (3 * DAY, WARM), (14 * DAY - 1, WARM), (14 * DAY, HOT)],
)
async def test_the_limits_grow_with_the_account(driver: Driver, api: Api, age: int, expected: dict[str, Any]) -> None:
    await driver.link("a", PHONE, None)
    driver.now += age
    assert await api.get(PATH) == COLD | expected


async def test_any_of_them_can_be_overridden_and_the_answer_says_which(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    assert await api.put(PATH, {"daily": 7}) == COLD | {"daily": 7, "overridden": ["daily"]}
    every = {
        "daily": 1,
        "perMinute": 2,
        "baseDelayMs": 0,
        "jitterMs": 4,
        "hours": "22:00-06:30",
        "timezone": "Asia/Jerusalem",
    }
    shown = COLD | every | {"overridden": list(every), "nextLevelAt": "2026-06-12T15:00:00+03:00"}
    assert await api.put(PATH, every) == shown
    assert await api.get(PATH) == shown


async def test_what_is_not_given_again_is_the_tables_again(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await api.put(PATH, {"daily": 7, "hours": "00:00-24:00", "timezone": "Asia/Jerusalem"})
    assert await api.put(PATH, {"perMinute": 6}) == COLD | {"perMinute": 6, "overridden": ["perMinute"]}
    assert await api.put(PATH, {}) == COLD


async def test_deleting_them_brings_the_table_back(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await api.put(PATH, {"daily": 7, "timezone": "Asia/Jerusalem"})
    assert await api.delete(PATH) == COLD
    assert await api.delete(PATH) == COLD


async def test_an_override_stays_while_the_account_grows(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await api.put(PATH, {"daily": 7})
    driver.now += 14 * DAY
    shown = await api.get(PATH)
    assert (shown["trustLevel"], shown["daily"], shown["perMinute"]) == ("hot", 7, 30)


async def test_two_sessions_of_one_phone_share_them(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await driver.link("b", PHONE, None)
    await api.put(PATH, {"daily": 7})
    assert await api.get("/api/anti-ban/sessions/b/limits") == COLD | {
        "sessionId": "b", "daily": 7, "overridden": ["daily"],
    }  # fmt: skip


async def test_what_was_sent_today_is_told(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await driver.send()
    await driver.settle_down()
    assert (await api.get(PATH))["sentToday"] == 1
    driver.now += DAY // 2
    assert (await api.get(PATH))["sentToday"] == 0


NEXT_DAY = "2026-06-10T00:00:00+00:00"


@pytest.mark.parametrize(
    ("override", "third"),
    [
        ({}, "2026-06-09T12:00:13+00:00"),
        ({"jitterMs": 0}, "2026-06-09T12:00:10+00:00"),
        ({"baseDelayMs": 60_000, "jitterMs": 0}, "2026-06-09T12:02:00+00:00"),
        ({"perMinute": 2}, "2026-06-09T12:01:00+00:00"),
        ({"daily": 2}, "2026-06-10T09:00:00+00:00"),
        ({"daily": 2, "hours": "00:00-24:00"}, NEXT_DAY),
        ({"hours": "13:00-14:00", "jitterMs": 0}, "2026-06-09T13:00:10+00:00"),
        ({"hours": "07:00-11:00", "jitterMs": 0}, "2026-06-10T07:00:10+00:00"),
        ({"timezone": "Asia/Tokyo", "jitterMs": 0}, "2026-06-10T09:00:10+09:00"),
    ],
)
async def test_they_decide_when_a_message_leaves(
    driver: Driver, api: Api, override: dict[str, Any], third: str
) -> None:
    await driver.link("a", PHONE, None)
    await api.put(PATH, override)
    await api.send()
    await api.send()
    assert (await api.send())["estimatedDelivery"] == third


async def test_a_change_reaches_what_already_waits(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await api.put(PATH, {"hours": "13:00-14:00"})
    message = (await api.send())["messageId"]
    assert not await driver.settle_down()
    assert (await api.status(message))["waiting"] == {"reason": "hours", "until": "2026-06-09T13:00:00+00:00"}
    await api.put(PATH, {"hours": "00:00-24:00"})
    assert driver.now == NOON
    assert await driver.hand_over() == message


async def test_the_zone_of_an_account_turns_its_clocks(driver: Driver, api: Api) -> None:
    """The night Israel's clocks go forward: nine o'clock comes an hour sooner."""
    await driver.link("a", PHONE, None)
    await api.put(PATH, {"timezone": "Asia/Jerusalem"})
    driver.now = 1_774_557_000_000  # 2026-03-26T20:30:00Z, 22:30 there
    assert (await api.send())["estimatedDelivery"] == "2026-03-27T09:00:00+03:00"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"daily": 0}, "daily"),
        ({"daily": "many"}, "daily"),
        ({"perMinute": 0}, "perMinute"),
        ({"baseDelayMs": -1}, "baseDelayMs"),
        ({"jitterMs": -1}, "jitterMs"),
        ({"hours": "9-21"}, "hours"),
        ({"hours": "09:00-09:00"}, "hours"),
        ({"hours": "24:00-25:00"}, "hours"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"timezone": "Asia"}, "timezone"),
        ({"centred": True}, "centred"),
        ([], "body"),
    ],
)
async def test_a_figure_that_is_wrong_is_named_and_nothing_changes(
    driver: Driver, api: Api, body: object, field: str
) -> None:
    await driver.link("a", PHONE, None)
    refused(await api.ask("PUT", PATH, json=body), 400, "INVALID_REQUEST", field=field)
    assert await api.get(PATH) == COLD


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_session_without_an_account_has_no_limits(driver: Driver, api: Api, method: str) -> None:
    await driver.store.sessions.register("a", driver.now)
    refused(await api.ask(method, PATH, json={}), 409, "SESSION_NOT_LINKED", sessionId="a")
    refused(await api.ask(method, PATH.replace("a/limits", "b/limits"), json={}), 404, "SESSION_NOT_FOUND")
