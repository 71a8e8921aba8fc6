"""`waiting`: for every reason the answer is right. A moment before `until` the message stays, at `until` it leaves.

By the real rules: nothing is unhurried here, and recipients have hours and a cap.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from switchboard.domain.hours import ALWAYS, Hours
from switchboard.domain.pacing import Policy
from switchboard.domain.retry import FailureClass
from switchboard.domain.trust import STANDARD, Overrides, TrustTable
from switchboard.store import Store
from switchboard.store.client import connect
from tests.support.driver import DAY, HOUR, MINUTE, NOON, UNHURRIED, Driver
from tests.support.gateway import Api

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
ISRAELI = "972509876543"
NOWHERE = "870712345678"  # a satellite telephone: no zone, so no hours of its own
OPEN = Overrides(hours=ALWAYS)


@pytest.fixture
async def driver(store: Store, valkey_url: str, prefix: str) -> AsyncIterator[Driver]:
    client = connect(valkey_url)
    driver = Driver(store, client, prefix, Policy(TrustTable(STANDARD)))
    yield driver
    await driver.audit()
    await client.aclose()


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


async def send(api: Api, **fields: object) -> str:
    return str((await api.send({"to": api.driver.someone(), **fields}))["messageId"])


async def sent(driver: Driver, api: Api, count: int = 1, **fields: object) -> None:
    """So many messages sent and acknowledged, each as soon as it may."""
    for _ in range(count):
        message = await send(api, **fields)
        session = str(fields.get("sessionId", "a"))
        waiting = (await api.status(message))["waiting"]
        driver.now = max(driver.now, at(waiting["until"]))
        claim = await driver.attempt(session)
        assert claim.message_id == message
        await driver.confirm(message, session=session)


async def waiting(api: Api, message: str) -> tuple[str, str | None]:
    shown = (await api.status(message))["waiting"]
    assert set(shown) == {"reason", "until"}
    return shown["reason"], shown["until"]


async def leaves_exactly_at(driver: Driver, api: Api, message: str, until: str) -> None:
    """A dispatcher that looks all the time hands it over at that moment and at none before."""
    for moment in (driver.now, at(until) - 1000, at(until) - 1):
        if driver.now <= moment < at(until):
            driver.now = moment
            assert not await driver.settle_down()
            assert (await waiting(api, message))[1] == until
    driver.now = at(until)
    assert message in [handed.message_id for handed in await driver.settle_down()]
    assert (await api.status(message))["waiting"] is None


async def test_nothing_holds_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    message = await send(api)
    assert await waiting(api, message) == ("delay", "2026-06-09T12:00:00+00:00")
    assert await driver.hand_over() == message


async def test_scheduled(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    message = await send(api, scheduledFor="2026-06-09T14:00:00.250Z")
    until = "2026-06-09T14:00:00.250+00:00"
    assert await waiting(api, message) == ("scheduled", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_delay(driver: Driver, api: Api) -> None:
    """Known to the millisecond, jitter and all: the pause was drawn when the message before left."""
    await driver.link("a", PHONE, None)
    await sent(driver, api)
    message = await send(api)
    reason, until = await waiting(api, message)
    assert reason == "delay"
    assert until is not None
    assert 5_000 <= at(until) - driver.now <= 8_000
    await leaves_exactly_at(driver, api, message, until)


async def test_delay_after_a_failed_attempt(driver: Driver, api: Api) -> None:
    """30 s after the first failure, two minutes after the second."""
    await driver.link("a", PHONE, None)
    message = await send(api)
    for until in ("2026-06-09T12:00:30+00:00", "2026-06-09T12:02:30+00:00"):
        await driver.nack(await driver.attempt(), FailureClass.RETRYABLE)
        assert (await api.status(message))["status"] == "failed"
        assert await waiting(api, message) == ("delay", until)
        await leaves_exactly_at(driver, api, message, until)


async def test_minute_limit(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, Overrides(base_delay_ms=2000, jitter_ms=0))
    await sent(driver, api, 5)
    assert driver.now == NOON + 8_000
    message = await send(api)
    until = "2026-06-09T12:01:00+00:00"
    assert await waiting(api, message) == ("minute_limit", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_daily_limit(driver: Driver, api: Api) -> None:
    """Until the next day's opening: that the night lies between is no reason of its own."""
    await driver.link("a", PHONE, Overrides(daily=2))
    messages = [await send(api) for _ in range(3)]
    for message in messages[:2]:
        driver.now = max(driver.now, at((await waiting(api, message))[1] or ""))
        await driver.attempt()
        await driver.confirm(message)
    until = "2026-06-10T09:00:00+00:00"
    assert await waiting(api, messages[2]) == ("daily_limit", until)
    await leaves_exactly_at(driver, api, messages[2], until)


async def test_daily_limit_of_an_account_that_never_closes(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=1), "Asia/Jerusalem", driver.now)
    first, second = await send(api), await send(api)
    assert (await driver.attempt()).message_id == first
    await driver.confirm(first)
    until = "2026-06-10T00:00:00+03:00"
    assert await waiting(api, second) == ("daily_limit", until)
    await leaves_exactly_at(driver, api, second, until)


async def test_daily_limit_of_an_account_that_comes_of_age(driver: Driver, api: Api) -> None:
    """It turns warm in the afternoon, and may send a hundred: no need to wait for the night."""
    await driver.link("a", PHONE, replace(OPEN, base_delay_ms=0, jitter_ms=0))
    driver.now += 3 * DAY - HOUR
    messages = [await send(api) for _ in range(21)]
    for message in messages[:20]:
        driver.now = max(driver.now, at((await waiting(api, message))[1] or ""))
        await driver.attempt()
        await driver.confirm(message)
    until = "2026-06-12T12:00:00+00:00"
    assert await waiting(api, messages[20]) == ("daily_limit", until)
    await leaves_exactly_at(driver, api, messages[20], until)


@pytest.mark.parametrize(
    ("zone", "now", "until"),
    [
        (None, "2026-06-09T08:00:00+00:00", "2026-06-09T09:00:00+00:00"),
        (None, "2026-06-09T21:00:00+00:00", "2026-06-10T09:00:00+00:00"),
        ("Asia/Jerusalem", "2026-06-09T18:00:00+00:00", "2026-06-10T09:00:00+03:00"),
        ("Asia/Jerusalem", "2026-03-26T20:00:00+00:00", "2026-03-27T09:00:00+03:00"),  # clocks go forward
        ("Asia/Jerusalem", "2026-10-24T20:00:00+00:00", "2026-10-25T09:00:00+02:00"),  # and back
    ],
)
async def test_hours(driver: Driver, api: Api, zone: str | None, now: str, until: str) -> None:
    driver.now = at(now)
    await driver.link("a", PHONE, None)
    await driver.store.accounts.override(PHONE, Overrides(), zone, driver.now)
    message = await send(api)
    assert await waiting(api, message) == ("hours", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_hours_over_midnight(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, Overrides(hours=Hours.parse("22:00-06:00")))
    message = await send(api)
    until = "2026-06-09T22:00:00+00:00"
    assert await waiting(api, message) == ("hours", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_disconnected(driver: Driver, api: Api) -> None:
    """Nobody knows until when; the moment it is back, it leaves."""
    await driver.link("a", PHONE, None)
    await driver.store.sessions.disconnect("a", driver.now)
    message = await send(api)
    driver.now += HOUR
    assert await waiting(api, message) == ("disconnected", None)
    assert not await driver.settle_down()
    await driver.store.sessions.connect("a", PHONE, driver.now)
    assert await driver.hand_over() == message


async def test_disconnected_while_its_worker_does_not_fetch_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    message = await send(api)
    await driver.hand_over()
    driver.now += 5_000
    assert (await api.status(message))["waiting"] is None  # a worker that is there has had no time to lose yet
    driver.now += 1
    assert await waiting(api, message) == ("disconnected", None)
    await driver.claimed()
    assert (await api.status(message))["waiting"] is None


async def test_disconnected_while_there_is_no_account_to_choose(driver: Driver, api: Api) -> None:
    message = await send(api, sessionId=...)
    assert await waiting(api, message) == ("disconnected", None)
    assert await driver.route() == 0
    await driver.link("a", PHONE, None)
    await driver.settle_down()
    assert await driver.route() == 1
    assert await driver.hand_over() == message


async def test_daily_limit_while_every_account_to_choose_has_spent_its_day(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await sent(driver, api)
    await driver.settle_down()
    message = await send(api, sessionId=...)
    assert await driver.route() == 0
    assert await waiting(api, message) == ("daily_limit", None)
    driver.now += DAY
    await driver.settle_down()
    assert await driver.route() == 1
    assert await driver.hand_over() == message


async def test_paused_for_30_minutes_when_whatsapp_says_too_fast(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    message = await send(api)
    await driver.nack(await driver.attempt(), FailureClass.RATE_LIMITED)
    until = "2026-06-09T12:30:00+00:00"
    assert (await api.status(message))["status"] == "queued"
    assert await waiting(api, message) == ("paused", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_paused_by_a_person(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    await driver.store.accounts.pause(PHONE, None, driver.now)
    message = await send(api)
    assert await waiting(api, message) == ("paused", None)
    driver.now += MINUTE
    assert not await driver.settle_down()
    await driver.store.accounts.resume(PHONE, driver.now)
    assert await driver.hand_over() == message


async def test_restricted_until_the_moment_whatsapp_states(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, OPEN)
    message = await send(api)
    until = "2026-06-11T03:04:05+00:00"
    await driver.nack(await driver.attempt(), FailureClass.RESTRICTED, at(until))
    assert await waiting(api, message) == ("restricted", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_restricted_until_a_person_resumes_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, OPEN)
    message = await send(api)
    await driver.nack(await driver.attempt(), FailureClass.RESTRICTED)
    driver.now += DAY
    assert await waiting(api, message) == ("restricted", None)
    assert not await driver.settle_down()
    await driver.store.accounts.resume(PHONE, driver.now)
    assert await driver.hand_over() == message


async def test_a_restriction_that_ends_at_night_leads_into_the_hours(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, None)
    message = await send(api)
    await driver.nack(await driver.attempt(), FailureClass.RESTRICTED, at("2026-06-09T23:00:00+00:00"))
    until = "2026-06-10T09:00:00+00:00"
    assert (await waiting(api, message))[1] == until
    await leaves_exactly_at(driver, api, message, until)


@pytest.mark.parametrize("noticed", [False, True])
async def test_recipient_hours(driver: Driver, api: Api, noticed: bool) -> None:
    """Ten at night in Israel is no time to write to anyone there, wherever the account is."""
    await driver.link("a", PHONE, OPEN)
    driver.now = at("2026-06-09T19:00:00+00:00")
    message = await send(api, to=ISRAELI)
    if noticed:
        await driver.settle_down()
        assert (await driver.message(message)).place == "scheduled"
    until = "2026-06-10T05:00:00+00:00"
    assert await waiting(api, message) == ("recipient_hours", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_one_recipients_night_holds_nobody_else(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, OPEN)
    driver.now = at("2026-06-09T19:00:00+00:00")
    asleep, awake = await send(api, to=ISRAELI), await send(api, to=NOWHERE)
    assert await driver.hand_over() == awake
    assert (await waiting(api, asleep))[0] == "recipient_hours"


@pytest.mark.parametrize("noticed", [False, True])
async def test_recipient_cap(driver: Driver, api: Api, noticed: bool) -> None:
    """Three a day from the whole fleet; the next day is the recipient's own, and starts at their hours."""
    await driver.link("a", PHONE, UNHURRIED)
    await driver.link("b", OTHER, UNHURRIED)
    for session in ("a", "b", "a"):
        await sent(driver, api, to=ISRAELI, sessionId=session)
    message = await send(api, to=ISRAELI, sessionId="b")
    if noticed:
        await driver.settle_down()
        assert (await driver.message(message)).place == "scheduled"
    until = "2026-06-10T05:00:00+00:00"
    assert await waiting(api, message) == ("recipient_cap", until)
    await leaves_exactly_at(driver, api, message, until)


async def test_the_cap_is_three(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, UNHURRIED)
    await sent(driver, api, 3, to=NOWHERE)
    message = await send(api, to=NOWHERE)
    assert await waiting(api, message) == ("recipient_cap", "2026-06-10T00:00:00+00:00")
    await leaves_exactly_at(driver, api, message, "2026-06-10T00:00:00+00:00")


async def test_the_cap_is_told_of_a_message_further_back_too(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, UNHURRIED)
    await sent(driver, api, 3, to=NOWHERE)
    await send(api)
    message = await send(api, to=NOWHERE)
    expected = {"reason": "recipient_cap", "until": "2026-06-10T00:00:00+00:00"}
    assert await waiting(api, message) == tuple(expected.values())
    items = (await api.get("/api/v1/queue/a"))["items"]
    assert [item["waiting"] for item in items if item["messageId"] == message] == [expected]


async def test_a_queue_is_told_message_by_message(driver: Driver, api: Api) -> None:
    """What holds each one longest, and the moment it leaves if all goes as planned."""
    await driver.link("a", PHONE, Overrides(daily=7, jitter_ms=0))
    messages = [await send(api) for _ in range(8)]
    shown: list[Any] = [await waiting(api, message) for message in messages]
    assert shown == [
        ("delay", "2026-06-09T12:00:00+00:00"),
        ("delay", "2026-06-09T12:00:05+00:00"),
        ("delay", "2026-06-09T12:00:10+00:00"),
        ("delay", "2026-06-09T12:00:15+00:00"),
        ("delay", "2026-06-09T12:00:20+00:00"),
        ("minute_limit", "2026-06-09T12:01:00+00:00"),
        ("minute_limit", "2026-06-09T12:01:05+00:00"),
        ("daily_limit", "2026-06-10T09:00:00+00:00"),
    ]
    for message, (_, until) in zip(messages, shown, strict=True):
        await leaves_exactly_at(driver, api, message, until)
        await driver.claimed()
        await driver.confirm(message)


async def test_nothing_is_awaited_once_it_has_left_or_never_will(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, UNHURRIED)
    cancelled, dead, done = [await send(api) for _ in range(3)]
    await api.delete(f"/api/v1/queue/a/{cancelled}")
    await driver.nack(await driver.attempt(), FailureClass.REFUSED)
    await driver.attempt()
    assert (await api.status(done))["waiting"] is None
    await driver.confirm(done)
    for message in (cancelled, dead, done):
        assert (await api.status(message))["waiting"] is None
