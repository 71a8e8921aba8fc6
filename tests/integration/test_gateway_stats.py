"""A day's figures: of a session, of its account, of the whole fleet, by hour, over a range."""

from typing import Any

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from tests.support.driver import DAY, HOUR, NOON, UNHURRIED, Driver
from tests.support.gateway import Api, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"


async def message(driver: Driver, *ends: tuple[Status, int], session: str = "a") -> None:
    """One message that reaches these ends, each so many ms after the one before."""
    await driver.send(session)
    claim = await driver.attempt(session)
    for status, later in ends:
        driver.now += later
        await driver.confirm(claim.message_id, status, session)


async def failure(driver: Driver, session: str = "a") -> None:
    await driver.send(session)
    await driver.nack(await driver.attempt(session), FailureClass.REFUSED)


SENT, DELIVERED, READ = (Status.SENT, 0), (Status.DELIVERED, 1000), (Status.READ, 0)


def figures(day: dict[str, Any]) -> tuple[int, int, int, int]:
    return day["sent"], day["failed"], day["delivered"], day["read"]


async def test_a_day_of_a_session(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await message(driver, SENT)
    await message(driver, SENT, DELIVERED)
    await message(driver, SENT, (Status.DELIVERED, 4000), READ)
    await failure(driver)
    await api.send()
    await api.send()
    assert await api.get("/api/v1/stats/a") == {
        "sessionId": "a",
        "date": "2026-06-09",
        "sent": 3,
        "failed": 1,
        "delivered": 2,
        "read": 1,
        "avgDeliveryTime": 2500,
        "queueSize": 2,
    }


async def test_a_session_that_sent_nothing_has_a_day_of_noughts(driver: Driver, api: Api) -> None:
    await driver.store.sessions.register("new", driver.now)
    await driver.link("a", PHONE)
    for session, waiting in (("a", 0), ("new", None)):
        day = await api.get(f"/api/v1/stats/{session}")
        assert figures(day) == (0, 0, 0, 0)
        assert (day["avgDeliveryTime"], day["queueSize"]) == (None, waiting)


async def test_a_redriven_failure_that_arrives_is_both(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await failure(driver)
    [dead] = (await api.get("/api/v1/dead-letters"))["items"]
    await api.post(f"/api/v1/dead-letters/{dead['messageId']}/retry")
    await driver.confirm((await driver.attempt()).message_id)
    assert (await api.get("/api/v1/stats/a"))["sent"] == 1


async def test_sessions_add_up_to_accounts_and_accounts_to_the_fleet(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    await message(driver, SENT, DELIVERED)
    await driver.store.sessions.disconnect("a", driver.now)
    await driver.link("a2", PHONE)
    await message(driver, SENT, DELIVERED, READ, session="a2")
    await message(driver, SENT, (Status.DELIVERED, 4000), session="b")
    await failure(driver, "b")
    assert figures(await api.get("/api/v1/stats/a")) == (1, 0, 1, 0)
    assert figures(await api.get("/api/v1/stats/a2")) == (1, 0, 1, 1)
    account = await api.get(f"/api/v1/stats/accounts/{PHONE}")
    assert figures(account) == (2, 0, 2, 1)
    assert (account["sessionId"], account["avgDeliveryTime"], account["queueSize"]) == (None, 1000, 0)
    fleet = await api.get("/api/v1/stats")
    assert figures(fleet) == (3, 1, 3, 1)
    assert fleet["avgDeliveryTime"] == 2000
    assert fleet["queueSize"] == 0
    for session in ("a2", "b", "b"):
        await driver.send(session)
    waiting = [(await api.get(f"/api/v1/stats{of}"))["queueSize"] for of in ("/a2", "/b", "")]
    assert waiting == [1, 2, 3]
    assert (await api.get("/api/v1/stats", params={"date": "2026-06-08"}))["queueSize"] is None


async def test_a_day_is_the_accounts_own_and_so_is_an_hour(driver: Driver, api: Api) -> None:
    """Half past eleven in the evening there, and an hour later: two days."""
    await driver.link("a", PHONE)
    await driver.store.accounts.override(PHONE, UNHURRIED, "Asia/Jerusalem", driver.now)
    driver.now = NOON + 8 * HOUR + 30 * 60_000
    await message(driver, SENT)
    driver.now += HOUR
    await message(driver, SENT)
    await message(driver, SENT)
    assert (await api.get("/api/v1/stats/a"))["date"] == "2026-06-10"
    yesterday = await api.get("/api/v1/stats/a", params={"date": "2026-06-09", "by": "hour"})
    assert (yesterday["sent"], yesterday["queueSize"]) == (1, None)
    assert yesterday["hours"][23] == {"sent": 1, "failed": 0, "delivered": 0, "read": 0}
    today = await api.get("/api/v1/stats/a", params={"date": "2026-06-10", "by": "hour"})
    assert len(today["hours"]) == 24
    assert [hour["sent"] for hour in today["hours"]] == [2] + 23 * [0]
    for path in (f"/api/v1/stats/accounts/{PHONE}", "/api/v1/stats"):
        day = await api.get(path, params={"date": "2026-06-10", "by": "hour"})
        assert (day["sent"], day["hours"][0]["sent"]) == (2, 2)


async def test_a_receipt_counts_for_the_day_its_message_was_sent(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await message(driver, SENT, (Status.READ, DAY))
    day = await api.get("/api/v1/stats/a", params={"date": "2026-06-09"})
    assert figures(day) == (1, 0, 1, 1)
    assert day["avgDeliveryTime"] == DAY


async def test_a_range_is_a_list_of_its_days(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    for _ in range(3):
        await message(driver, SENT)
        driver.now += DAY
    driver.now -= DAY
    answer = await api.get("/api/v1/stats/a", params={"from": "2026-06-08", "to": "2026-06-11"})
    assert answer["nextCursor"] is None
    assert [(day["date"], day["sent"], day["queueSize"]) for day in answer["items"]] == [
        ("2026-06-08", 0, None),
        ("2026-06-09", 1, None),
        ("2026-06-10", 1, None),
        ("2026-06-11", 1, 0),
    ]
    fleet = await api.get("/api/v1/stats", params={"from": "2026-06-10", "to": "2026-06-10", "by": "hour"})
    assert [day["hours"][12]["sent"] for day in fleet["items"]] == [1]


async def test_figures_are_kept_90_days(driver: Driver, api: Api, prefix: str) -> None:
    await driver.link("a", PHONE)
    await message(driver, SENT)
    for scope in ("session:a", f"account:{PHONE}", "fleet"):
        left = await driver.client.ttl(f"{prefix}stats:{scope}:2026-06-09")
        assert 90 * 86_400 - 60 <= left <= 90 * 86_400


async def test_a_range_has_1_to_92_days(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    whole = await api.get("/api/v1/stats/a", params={"from": "2026-03-10", "to": "2026-06-09"})
    assert len(whole["items"]) == 92
    for params in ({"from": "2026-03-09", "to": "2026-06-09"}, {"from": "2026-06-09", "to": "2026-06-08"}):
        refused(await api.ask("GET", "/api/v1/stats/a", params=params), 400, "INVALID_REQUEST", field="to")


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"date": "today"}, "date"),
        ({"date": "2026-02-30"}, "date"),
        ({"from": "2026-06-09"}, "to"),
        ({"to": "2026-06-09"}, "from"),
        ({"by": "minute"}, "by"),
    ],
)
async def test_a_parameter_that_is_wrong_is_named(driver: Driver, api: Api, params: dict[str, str], field: str) -> None:
    await driver.link("a", PHONE)
    for path in ("/api/v1/stats/a", f"/api/v1/stats/accounts/{PHONE}", "/api/v1/stats"):
        refused(await api.ask("GET", path, params=params), 400, "INVALID_REQUEST", field=field)


async def test_a_session_or_account_nobody_knows(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.send()
    await driver.settle_down()
    for path in ("nobody", f"accounts/{OTHER}", f"accounts/recent:{PHONE}", "accounts/+1", "outbox:a"):
        refused(await api.ask("GET", f"/api/v1/stats/{path}"), 404, "SESSION_NOT_FOUND")
