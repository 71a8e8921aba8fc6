"""Batches: all rows or none, each at its moment, with progress and a way back."""

import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.domain.trust import Overrides
from tests.support.driver import MINUTE, NOON, UNHURRIED, Driver
from tests.support.gateway import SECRET_TEXT, Api, good, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
ISRAELI = "972509876543"


async def rows_of(driver: Driver, batch: str) -> list[str]:
    return await driver.store.batches.rows(batch, 0, 20_000)


async def due(api: Api, messages: list[str]) -> list[float]:
    """The moments they are scheduled for, in seconds from noon."""
    moments = [(await api.status(message))["scheduledFor"] for message in messages]
    return [datetime.fromisoformat(moment).timestamp() - NOON / 1000 for moment in moments]


def row(**fields: object) -> dict[str, object]:
    return {"to": ISRAELI, "text": SECRET_TEXT, **fields}


@pytest.mark.parametrize(
    ("count", "minutes", "expected"),
    [
        (4, 30, [0, 450, 900, 1350]),
        (1, 30, [0]),
        (3, 0.5, [0, 10, 20]),
        (7, 1, [0, 8.571, 17.143, 25.714, 34.286, 42.857, 51.429]),
        (3, 0, [0, 0, 0]),
    ],
)
async def test_row_i_of_n_is_due_at_i_nths_of_the_spread(
    driver: Driver, api: Api, count: int, minutes: float, expected: list[float]
) -> None:
    await driver.link("a", PHONE)
    answer = await api.batch(count, spreadMinutes=minutes)
    assert answer["queued"] == count
    assert await due(api, await rows_of(driver, answer["batchId"])) == pytest.approx(expected, abs=0.0005)


async def test_rows_leave_at_their_moments_in_their_order(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answer = await api.batch(3, spreadMinutes=1)
    rows = await rows_of(driver, answer["batchId"])
    for n, message in enumerate(rows):
        driver.now = NOON + n * 20_000
        if n:
            driver.now -= 1
            assert not await driver.settle_down()
            driver.now += 1
        assert await driver.hand_over() == message
        await driver.claimed()
        await driver.confirm(message)


async def test_the_completion_is_when_the_last_row_leaves(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, Overrides(jitter_ms=0))
    slow = await api.batch(10, spreadMinutes=30)
    assert slow["estimatedCompletion"] == "2026-06-09T12:27:00+00:00"  # nine tenths of half an hour
    await api.delete(f"/api/v1/batches/{slow['batchId']}")
    quick = await api.batch(10)
    assert quick["estimatedCompletion"] == "2026-06-09T12:01:20+00:00"  # five a minute, five s apart
    await api.delete(f"/api/v1/batches/{quick['batchId']}")
    long = await api.batch(25, spreadMinutes=10)
    assert long["estimatedCompletion"] == "2026-06-10T09:00:20+00:00"  # twenty a day


async def test_ten_thousand_rows_are_taken_in_one_go(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    began = time.monotonic()
    answer = await api.batch(10_000, spreadMinutes=600)
    assert time.monotonic() - began < 10
    assert answer["queued"] == 10_000
    rows = await rows_of(driver, answer["batchId"])
    assert len(set(rows)) == 10_000
    assert await due(api, [rows[0], rows[1], rows[-1]]) == pytest.approx([0, 3.6, 35996.4], abs=0.0005)
    progress = await api.get(f"/api/v1/batches/{answer['batchId']}")
    assert (progress["total"], progress["waiting"]) == (10_000, 10_000)
    gone = await api.delete(f"/api/v1/batches/{answer['batchId']}")
    assert (gone["waiting"], gone["cancelled"]) == (0, 10_000)


async def test_ten_thousand_and_one_are_not(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    response = await api.try_batch([row()] * 10_001)
    assert "10000" in refused(response, 400, "INVALID_REQUEST", field="messages")["message"]
    assert (await driver.audit()).messages == {}


async def test_every_bad_row_is_named_with_its_reason_and_nothing_is_queued(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    response = await api.try_batch(
        [
            row(),
            row(to="12"),
            row(text="x" * 4096),
            row(text="  "),
            row(text=17),
            "not a row",
            None,
            row(surprise=SECRET_TEXT),
            {"text": SECRET_TEXT},
            {"to": ISRAELI},
            row(reference="r" * 201),
            row(message="both"),
            row(),
        ]
    )
    bad = refused(response, 400, "INVALID_REQUEST", field="messages")["rows"]
    assert [(fault["index"], fault["field"]) for fault in bad] == [
        (1, "to"), (2, "text"), (3, "text"), (4, "text"), (5, "row"), (6, "row"), (7, "surprise"), (8, "to"),
        (9, "text"), (10, "reference"), (11, "message"),
    ]  # fmt: skip
    assert all(fault["message"] for fault in bad)
    assert "11" in response.json()["message"]
    assert (await driver.audit()).messages == {}


async def test_every_row_whose_recipient_opted_out_is_named(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    for phone in (ISRAELI, "972509876544"):
        await driver.store.suppressions.add(phone)
    to = [ISRAELI, "972509876545", "+972 50 987 6544", "972509876546", ISRAELI]
    response = await api.try_batch([row(to=one) for one in to])
    bad = refused(response, 400, "INVALID_REQUEST", field="messages")["rows"]
    assert [(fault["index"], fault["field"], fault["error"]) for fault in bad] == [
        (index, "to", "RECIPIENT_OPTED_OUT") for index in (0, 2, 4)
    ]
    assert (await driver.audit()).messages == {}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": {"to": ISRAELI}}, "messages"),
        ({"messages": ...}, "messages"),
        ({"spreadMinutes": -1}, "spreadMinutes"),
        ({"spreadMinutes": 7 * 24 * 60 + 1}, "spreadMinutes"),
        ({"spreadMinutes": "soon"}, "spreadMinutes"),
        ({"priority": 4}, "priority"),
        ({"phone": "12"}, "phone"),
        ({"scheduledFor": "2026-06-09T15:00:00Z"}, "scheduledFor"),
    ],
)
async def test_a_field_that_is_wrong_is_named(driver: Driver, api: Api, fields: dict[str, Any], field: str) -> None:
    await driver.link("a", PHONE)
    refused(await api.try_batch([row()], **fields), 400, "INVALID_REQUEST", field=field)


async def test_not_a_number_of_minutes_is_refused(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    content = b'{"messages": [{"to": "972509876543", "text": "x"}], "sessionId": "a", "spreadMinutes": NaN}'
    response = await api.ask(
        "POST", "/api/v1/send/batch", content=content, headers={"Content-Type": "application/json"}
    )
    refused(response, 400, "INVALID_REQUEST", field="spreadMinutes")


@pytest.mark.parametrize("sender", ["nobody", "new"])
async def test_a_sender_that_can_not_send_is_refused(driver: Driver, api: Api, sender: str) -> None:
    await driver.store.sessions.register("new", driver.now)
    response = await api.try_batch([row()], sessionId=sender)
    refused(response, *((404, "SESSION_NOT_FOUND") if sender == "nobody" else (409, "SESSION_NOT_LINKED")))


async def test_on_a_day_that_is_spent_a_batch_is_refused_or_put_off(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await driver.send()
    await driver.settle_down()
    refused(await api.try_batch([row()]), 429, "DAILY_LIMIT_REACHED", limit=1, sent=1)
    answer = good(await api.try_batch([row(to=driver.someone()) for _ in range(3)], deferrable=True, spreadMinutes=1))
    rows = [await api.status(message) for message in await rows_of(driver, answer["batchId"])]
    tomorrow = {"reason": "daily_limit", "until": "2026-06-10T00:00:00+00:00"}
    assert [shown["waiting"] for shown in rows] == [tomorrow] * 3
    assert await due(api, [shown["messageId"] for shown in rows]) == [0, 20, 40], "as they were asked for"


async def test_a_batch_longer_than_the_room_is_taken_and_what_finds_none_stays_scheduled(
    driver: Driver, api: Api
) -> None:
    await driver.link("a", PHONE)
    await driver.store.sessions.disconnect("a", driver.now)
    answer = await api.batch(1010)
    driver.now += 1000
    await driver.settle_down()
    assert len(await api.queue()) == 1000
    rows = await rows_of(driver, answer["batchId"])
    assert {(await api.status(message))["status"] for message in rows[1000:]} == {"scheduled"}
    await api.delete(f"/api/v1/queue/a/{rows[0]}")
    assert (await api.status(rows[1000]))["status"] == "queued"


async def test_without_a_sender_each_row_is_routed_when_it_is_due(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    answer = await api.batch(2, sessionId=..., spreadMinutes=10)
    assert answer["estimatedCompletion"] is None
    await driver.settle_down()
    assert await driver.route() == 1
    driver.now += 5 * MINUTE
    await driver.settle_down()
    assert await driver.route() == 1
    progress = await api.get(f"/api/v1/batches/{answer['batchId']}")
    assert (progress["sessionId"], progress["phone"]) == (None, None)


async def test_progress_counts_what_became_of_each_row(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    batch = (await api.batch(6, spreadMinutes=6))["batchId"]

    async def next_row() -> Any:
        claim = await driver.attempt()
        driver.now += MINUTE
        return claim

    await driver.confirm((await next_row()).message_id)
    await driver.confirm((await next_row()).message_id, Status.DELIVERED)
    await driver.confirm((await next_row()).message_id, Status.READ)
    await driver.nack(await next_row(), FailureClass.REFUSED)
    [*_, fifth, _] = await rows_of(driver, batch)
    await driver.settle_down()
    await api.delete(f"/api/v1/queue/a/{fifth}")
    assert await api.get(f"/api/v1/batches/{batch}") == {
        "batchId": batch,
        "sessionId": "a",
        "phone": PHONE,
        "total": 6,
        "waiting": 1,
        "sent": 3,
        "delivered": 2,
        "read": 1,
        "failed": 1,
        "cancelled": 1,
        "createdAt": "2026-06-09T12:00:00+00:00",
        "cancelledAt": None,
        "spreadMinutes": 6.0,
    }


async def test_cancelling_takes_back_what_is_left_and_may_be_repeated(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    batch = (await api.batch(4, spreadMinutes=2))["batchId"]
    left = await driver.attempt()
    driver.now += MINUTE // 2
    await driver.settle_down()  # the second waits in the queue, the others for their moments
    gone = await api.delete(f"/api/v1/batches/{batch}")
    assert (gone["waiting"], gone["cancelled"]) == (1, 3)  # the first is with its worker
    assert gone["cancelledAt"] == "2026-06-09T12:00:30+00:00"
    await driver.confirm(left.message_id)
    driver.now += MINUTE // 2
    again = await api.delete(f"/api/v1/batches/{batch}")
    assert (again["waiting"], again["sent"], again["cancelled"]) == (0, 1, 3)
    assert again["cancelledAt"] == gone["cancelledAt"]
    for message in (await rows_of(driver, batch))[1:]:
        shown = await api.status(message)
        assert (shown["status"], shown["error"], shown["waiting"]) == ("cancelled", "batch cancelled", None)
    driver.now += 10 * MINUTE
    assert not await driver.settle_down()


async def test_a_batch_nobody_knows(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    batch = (await api.batch(1))["batchId"]
    for name in ("batch_" + "0" * 18, f"rows:{batch}", "é"):
        for method in ("GET", "DELETE"):
            refused(await api.ask(method, f"/api/v1/batches/{name}"), 404, "BATCH_NOT_FOUND", batchId=name)
