"""Sending one message: what is taken, in which order it leaves, and the place and the moment that are promised."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from switchboard.domain.ids import whatsapp_id
from switchboard.domain.messages import Status
from switchboard.domain.trust import Overrides
from switchboard.gateway.sending import SendRules
from tests.support.driver import DAY, MINUTE, UNHURRIED, Driver
from tests.support.driver import NOON as START
from tests.support.gateway import SECRET_TEXT, Api, good, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
NOON = datetime.fromisoformat("2026-06-09T12:00:00+00:00")
EXACT = Overrides(jitter_ms=0)
"""The limits of a cold account, without chance: 20 a day, 5 a minute, 5 s between two, 09:00-21:00."""


def after(seconds: float) -> str:
    moment = NOON + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds" if seconds % 1 else "seconds")


async def test_a_message_is_kept_with_all_that_was_said_about_it(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answer = await api.send({"to": "+972 50-987-6543", "priority": 2, "reference": "order-17"})
    assert answer["position"] == 1
    assert answer["estimatedDelivery"] == after(0)
    shown = await api.status(answer["messageId"])
    assert shown == {
        "messageId": answer["messageId"],
        "status": "queued",
        "to": "972509876543",
        "sessionId": "a",
        "phone": PHONE,
        "priority": 2,
        "reference": "order-17",
        "batchId": None,
        "attempts": 0,
        "whatsappId": whatsapp_id(answer["messageId"]),
        "createdAt": after(0),
        "scheduledFor": None,
        "sentAt": None,
        "deliveredAt": None,
        "readAt": None,
        "error": None,
        "waiting": {"reason": "delay", "until": after(0)},
    }
    assert (await driver.message(answer["messageId"])).text == SECRET_TEXT


async def test_text_is_accepted_for_message_and_the_older_path_for_the_newer(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    body = {"to": driver.someone(), "text": SECRET_TEXT, "sessionId": "a"}
    for path in ("/api/v1/send", "/api/send"):
        answer = await api.post(path, body)
        assert (await driver.message(answer["messageId"])).text == SECRET_TEXT
    assert len(await api.queue()) == 2


async def test_the_sender_may_be_named_by_its_phone(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answer = await api.send({"sessionId": ..., "phone": "+972 50-000-0001"})
    shown = await api.status(answer["messageId"])
    assert (shown["phone"], shown["sessionId"]) == (PHONE, None)
    await driver.settle_down()
    assert (await api.status(answer["messageId"]))["sessionId"] == "a"


async def test_without_a_sender_one_is_chosen_and_kept(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=10))
    await driver.link("b", OTHER, replace(UNHURRIED, daily=20))
    await driver.settle_down()
    to = driver.someone()
    answer = await api.send({"sessionId": ..., "to": to})
    assert answer["position"] == 1
    assert answer["estimatedDelivery"] is None
    assert (await api.status(answer["messageId"]))["phone"] is None
    assert await driver.route() == 1
    assert (await api.status(answer["messageId"]))["phone"] == OTHER
    await driver.store.accounts.override(OTHER, replace(UNHURRIED, daily=5), None, driver.now)
    await driver.settle_down()
    again = await api.send({"sessionId": ..., "to": to})
    await driver.route()
    assert (await api.status(again["messageId"]))["phone"] == OTHER


async def test_with_a_default_country_numbers_may_be_national(driver: Driver) -> None:
    await driver.link("a", PHONE)
    api = Api(driver, SendRules(default_country="IL"))
    answer = await api.send({"to": "050-987-6543"})
    assert (await api.status(answer["messageId"]))["to"] == "972509876543"
    await api.close()


async def test_higher_priorities_leave_first_and_each_in_the_order_it_came(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    sent: dict[str, str] = {}
    positions: list[Any] = []
    for name in ("1a", "2a", "3a", "1b", "2b", "3b"):
        answer = await api.send({"priority": int(name[0])})
        sent[answer["messageId"]] = name
        positions.append(answer["position"])
    assert positions == [1, 1, 1, 4, 3, 2]
    assert [sent[message] for message in await api.queue()] == ["3a", "3b", "2a", "2b", "1a", "1b"]
    for expected in ("3a", "3b", "2a", "2b", "1a", "1b"):
        claim = await driver.attempt()
        assert sent[claim.message_id] == expected
        await driver.confirm(claim.message_id)


async def test_positions_and_estimates_walk_the_pace_the_minute_and_the_day(driver: Driver, api: Api) -> None:
    """A cold account: 5 s and half of 0-3 s between two, 5 a minute, 20 a day, then 09:00 of the next day."""
    await driver.link("a", PHONE, None)
    answers = []
    for _ in range(3):  # at most 15 in one minute of the clock, or it is a burst
        driver.now += MINUTE
        answers += [await api.send() for _ in range(10)]
    assert [answer["position"] for answer in answers] == list(range(1, 31))
    first = [answer["estimatedDelivery"] for answer in answers[:10]]
    assert first == [after(60 + s) for s in (0, 6.5, 13, 19.5, 26, 60, 66.5, 73, 79.5, 86)]
    last = [answer["estimatedDelivery"] for answer in answers[20:]]
    tomorrow = NOON + timedelta(hours=21)
    assert last == [
        (tomorrow + timedelta(seconds=s)).isoformat(timespec="milliseconds" if s % 1 else "seconds")
        for s in (0, 6.5, 13, 19.5, 26, 60, 66.5, 73, 79.5, 86)
    ]


async def test_the_estimate_comes_true(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, EXACT)
    answers = [await api.send() for _ in range(12)]
    for answer in answers:
        driver.now = round(datetime.fromisoformat(answer["estimatedDelivery"]).timestamp() * 1000) - 1
        assert not await driver.settle_down()
        driver.now += 1
        assert await driver.hand_over() == answer["messageId"]
        await driver.claimed()
        await driver.confirm(answer["messageId"])


async def test_a_burst_is_spread_and_the_estimate_knows(driver: Driver, api: Api) -> None:
    """More than three minutes' worth within one minute: twice the delay from there on."""
    await driver.link("a", PHONE, EXACT)
    estimates = [(await api.send())["estimatedDelivery"] for _ in range(16)]
    assert estimates[14] == after(2 * 60 + 4 * 5)
    assert estimates[15] == after(3 * 60)  # 10 s apart and still five a minute
    [burst] = await driver.events("account.burst")
    assert (burst["queued"], burst["threshold"]) == ("16", "15")


async def test_outside_the_hours_the_estimate_is_the_next_opening(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, EXACT)
    driver.now += DAY // 2  # midnight
    assert (await api.send())["estimatedDelivery"] == "2026-06-10T09:00:00+00:00"
    assert (await api.send())["estimatedDelivery"] == "2026-06-10T09:00:05+00:00"


async def test_the_estimate_is_told_in_the_accounts_zone(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.accounts.override(PHONE, EXACT, "Asia/Jerusalem", driver.now)
    assert (await api.send())["estimatedDelivery"] == "2026-06-09T15:00:00+03:00"


async def test_what_was_sent_already_is_part_of_the_estimate(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, EXACT)
    await driver.send()
    claim = await driver.attempt()
    await driver.confirm(claim.message_id)
    driver.now += 2_000
    assert (await api.send())["estimatedDelivery"] == after(5)


async def test_a_scheduled_message_waits_for_its_moment(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answer = await api.send({"scheduledFor": "2026-06-09T15:30:00+03:00"})
    assert answer["position"] is None
    assert answer["estimatedDelivery"] == after(30 * 60)
    shown = await api.status(answer["messageId"])
    assert (shown["status"], shown["scheduledFor"]) == ("scheduled", after(30 * 60))
    assert await api.queue() == []
    driver.now += 30 * MINUTE - 1
    assert not await driver.settle_down()
    driver.now += 1
    assert await driver.hand_over() == answer["messageId"]


async def test_a_moment_that_has_passed_means_now(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    for past in ("2026-06-09T12:00:00Z", "2026-06-09T11:59:59.999Z", "1970-01-01T00:00:00Z"):
        assert (await api.status((await api.send({"scheduledFor": past}))["messageId"]))["status"] == "queued"
    assert len(await api.queue()) == 3


async def test_a_scheduled_message_is_estimated_by_the_hours_at_its_moment(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, EXACT)
    answer = await api.send({"scheduledFor": "2026-06-09T22:00:00Z"})
    assert answer["estimatedDelivery"] == "2026-06-10T09:00:00+00:00"


async def test_many_at_once_keep_their_places(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answers = await asyncio.gather(*(api.send() for _ in range(200)))
    assert sorted(answer["position"] for answer in answers) == list(range(1, 201))
    by_position = sorted(answers, key=lambda answer: int(answer["position"]))
    assert await api.queue() == [answer["messageId"] for answer in by_position]


async def test_one_bad_request_among_many_spoils_no_other(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.suppressions.add("972509876543")
    responses = await asyncio.gather(
        *(
            api.try_send({"to": "972509876543"} if n % 5 == 0 else {"sessionId": "b" if n % 5 == 1 else "a"})
            for n in range(50)
        )
    )
    for n, response in enumerate(responses):
        if n % 5 == 0:
            refused(response, 403, "RECIPIENT_OPTED_OUT")
        elif n % 5 == 1:
            refused(response, 404, "SESSION_NOT_FOUND")
        else:
            good(response)
    assert len(await api.queue()) == 30


async def test_the_status_follows_the_message_to_its_end(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = (await api.send({"scheduledFor": "2026-06-09T12:00:01Z"}))["messageId"]
    seen = [await api.status(message)]
    driver.now += 1000
    claim = await driver.attempt()
    seen.append(await api.status(message))
    for status, field in ((Status.SENT, "sentAt"), (Status.DELIVERED, "deliveredAt"), (Status.READ, "readAt")):
        driver.now += 1000
        await driver.confirm(claim.message_id, status)
        seen.append(await api.status(message))
        assert seen[-1][field] == after((driver.now - START) / 1000)
    assert [shown["status"] for shown in seen] == ["scheduled", "sending", "sent", "delivered", "read"]
    assert [shown["attempts"] for shown in seen] == [0, 1, 1, 1, 1]
    assert [shown["waiting"] is None for shown in seen] == [False, True, True, True, True]


async def test_a_message_nobody_knows(api: Api) -> None:
    for message in ("0" * 18, "rows:batch", "%00", "é"):
        refused(await api.ask("GET", f"/api/v1/messages/{message}/status"), 404, "MESSAGE_NOT_FOUND")
