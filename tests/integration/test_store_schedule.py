"""Letting go of what is due (release.lua) and choosing senders (jobs.lua, route.lua)."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from switchboard.domain.messages import Place, Status, Waiting
from switchboard.domain.retry import FailureClass
from switchboard.domain.trust import Overrides
from switchboard.store.intake import Entry, Refused
from switchboard.store.pace import TAKE_LEASE_MS
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"


async def release(driver: Driver) -> int:
    """Everything that is due now; how many there were."""
    released = 0
    while step := (await driver.store.pace.take(driver.now)).released:
        released += step
    return released


async def fill(driver: Driver, session: str = "a", count: int = 1000) -> list[str]:
    return [await driver.send(session) for _ in range(count)]


async def test_a_scheduled_message_is_released_when_it_is_due_and_not_before(driver: Driver) -> None:
    await driver.link("a", PHONE)
    due = driver.now + HOUR
    message_id = await driver.send(due=due)
    driver.now = due - 1
    taken = await driver.store.pace.take(driver.now)
    assert taken.released == 0
    assert (await driver.message(message_id)).wait_reason is Waiting.SCHEDULED
    driver.now = due
    assert await release(driver) == 1
    message = await driver.message(message_id)
    assert (message.place, message.status) == (Place.QUEUE, Status.QUEUED)
    assert (message.wait_reason, message.due, message.scheduled_for) == (None, None, due)


async def test_a_dispatcher_that_is_idle_is_told_the_next_due_moment(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.settle_down()
    for hours in (3, 1, 2):
        await driver.send(due=driver.now + hours * HOUR)
    assert (await driver.round()).next_at == driver.now + HOUR


async def test_the_earlier_due_goes_first(driver: Driver) -> None:
    await driver.link("a", PHONE)
    ids = {minutes: await driver.send(due=driver.now + minutes * MINUTE) for minutes in (3, 1, 2)}
    driver.now += HOUR
    await release(driver)
    assert await driver.queue(PHONE) == [ids[1], ids[2], ids[3]]


async def test_those_due_at_the_same_moment_go_in_the_order_they_came(driver: Driver) -> None:
    await driver.link("a", PHONE)
    due = driver.now + HOUR
    ids = [await driver.send(due=due) for _ in range(50)]
    driver.now = due + 1
    await release(driver)
    assert await driver.queue(PHONE) == ids


async def test_ten_thousand_due_at_the_same_moment_still_go_in_the_order_they_came(driver: Driver) -> None:
    await driver.link("a", PHONE)
    due = driver.now + HOUR
    entry = Entry([], session="a", revision=(await driver.view(PHONE)).account.profile.revision, daily=10_000)
    rows = [driver.row(due=due) for _ in range(10_000)]
    await driver.store.intake.enqueue([replace(entry, rows=[row]) for row in rows], driver.now)
    scheduled: Any = await driver.client.zrange(driver.prefix + "queue:scheduled", 0, -1, withscores=True)
    assert [message_id for message_id, _ in scheduled] == [row.id for row in rows]
    assert scheduled[-1][1] - due < 10


@pytest.mark.parametrize("step", [0, 1 / 1024, 0.6, 6])
async def test_a_batch_keeps_the_order_of_its_rows_however_close_they_are(driver: Driver, step: float) -> None:
    await driver.link("a", PHONE)
    for _ in range(7):
        await driver.send(due=driver.now + 0.5)
    rows = [driver.row(due=driver.now + i * step) for i in range(3000)]
    await driver.send_batch("batch_1", rows)
    scheduled = await driver.client.zrange(driver.prefix + "queue:scheduled", 0, -1)
    ids = [row.id for row in rows]
    assert [message_id for message_id in scheduled if message_id in set(ids)] == ids


async def test_a_batch_computed_a_moment_before_it_arrives_keeps_its_order(driver: Driver) -> None:
    await driver.link("a", PHONE)
    rows = [driver.row(due=driver.now - 5 + i * 0.7) for i in range(30)]
    await driver.send_batch("batch_1", rows)
    driver.now += MINUTE
    await release(driver)
    assert await driver.queue(PHONE) == [row.id for row in rows]


async def test_a_priority_counts_once_released(driver: Driver) -> None:
    await driver.link("a", PHONE)
    normal = await driver.send(due=driver.now + 1)
    urgent = await driver.send(due=driver.now + 2, priority=3)
    driver.now += MINUTE
    await release(driver)
    assert await driver.queue(PHONE) == [urgent, normal]


async def test_what_falls_due_without_room_waits_and_moves_up_as_room_appears(driver: Driver) -> None:
    await driver.link("a", PHONE)
    late = [await driver.send(due=driver.now + MINUTE + i) for i in range(3)]
    full = await fill(driver)
    driver.now += HOUR
    await release(driver)
    assert {(await driver.message(i)).place for i in late} == {Place.OVERFLOW}
    assert len(await driver.queue(PHONE)) == 1000
    await driver.store.messages.cancel(full[:1], driver.now, "test")
    assert (await driver.queue(PHONE))[-1] == late[0]
    driver.now += TAKE_LEASE_MS
    assert await driver.hand_over() == full[1]
    assert (await driver.queue(PHONE))[-2:] == late[:2]
    await driver.confirm((await driver.claimed()).message_id)
    await driver.attempt()
    assert (await driver.queue(PHONE))[-3:] == late
    assert (await driver.message(late[2])).status is Status.QUEUED


async def test_overflow_is_drained_when_the_last_of_the_queue_is_settled_elsewhere(driver: Driver) -> None:
    """A late acknowledgement empties the queue; what had found no room must not be forgotten."""
    await driver.link("a", PHONE)
    await driver.send()
    claim = await driver.attempt()
    driver.now += 2 * MINUTE
    await driver.settle_down()
    full = await fill(driver)
    late = await driver.send(due=driver.now + 1)
    await driver.store.sessions.disconnect("a", driver.now)
    driver.now += HOUR
    await driver.settle_down()
    assert (await driver.message(late)).place is Place.OVERFLOW
    await driver.store.messages.cancel(full[:-1], driver.now, "test")
    assert (await driver.confirm(claim.message_id)).changed
    await driver.store.messages.cancel(full[-1:], driver.now, "test")
    await driver.store.sessions.connect("a", PHONE, driver.now)
    assert await driver.hand_over() == late


async def test_what_waits_in_the_overflow_can_be_cancelled(driver: Driver) -> None:
    await driver.link("a", PHONE)
    late = await driver.send(due=driver.now + 1)
    await fill(driver)
    driver.now += MINUTE
    await release(driver)
    assert await driver.store.messages.cancel([late], driver.now, "test") == ["OK"]
    assert (await driver.message(late)).status is Status.CANCELLED


async def test_a_retry_comes_back_to_its_old_place_even_where_there_is_no_room(driver: Driver) -> None:
    await driver.link("a", PHONE)
    first = await driver.send()
    claim = await driver.attempt()
    await driver.nack(claim, FailureClass.RETRYABLE)
    await driver.store.sessions.disconnect("a", driver.now)
    rest = await fill(driver)
    driver.now += HOUR
    await driver.settle_down()
    assert await driver.queue(PHONE) == [first, *rest]


async def test_rows_of_a_cancelled_batch_are_not_released(driver: Driver) -> None:
    await driver.link("a", PHONE)
    rows = [driver.row(due=driver.now + 1), driver.row(due=driver.now + 2)]
    ids = await driver.send_batch("batch_1", rows)
    single = await driver.send(due=driver.now + 3)
    await driver.store.batches.mark_cancelled("batch_1", driver.now)
    driver.now += MINUTE
    await release(driver)
    messages = [await driver.message(i) for i in ids]
    assert {(m.status, m.error) for m in messages} == {(Status.CANCELLED, "batch cancelled")}
    assert await driver.queue(PHONE) == [single]
    batch = await driver.store.batches.get("batch_1")
    assert batch is not None
    assert (batch.cancelled, batch.waiting, batch.cancelled_at) == (2, 0, driver.now - MINUTE)


async def test_a_row_in_a_workers_hands_while_its_batch_is_cancelled_does_not_come_back(driver: Driver) -> None:
    await driver.link("a", PHONE)
    [row] = await driver.send_batch("batch_1", [driver.row(due=driver.now + 1)])
    driver.now += 1
    claim = await driver.attempt()
    await driver.store.batches.mark_cancelled("batch_1", driver.now)
    assert (await driver.nack(claim, FailureClass.RATE_LIMITED)).status == "cancelled"
    assert (await driver.message(row)).status is Status.CANCELLED
    assert await driver.queue(PHONE) == []


async def test_an_unrouted_scheduled_message_looks_for_a_sender_once_due(driver: Driver) -> None:
    message_id = await driver.send(session=None, due=driver.now + HOUR)
    driver.now += HOUR + 1
    await release(driver)
    assert (await driver.message(message_id)).place is Place.JOBS


async def test_a_flood_of_released_messages_is_a_burst_too(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, per_minute=2))
    await driver.send()
    await driver.confirm((await driver.attempt()).message_id)
    await driver.send_batch("batch_1", [driver.row(due=driver.now + 1) for _ in range(7)])
    driver.now += HOUR
    await release(driver)
    assert (await driver.view(PHONE)).account.burst_until == driver.now + 10 * MINUTE


async def test_a_message_goes_to_the_account_that_wrote_to_this_person_before(driver: Driver) -> None:
    await driver.link("a", PHONE, Overrides(daily=10))
    await driver.link("b", OTHER, Overrides(daily=500))
    known = driver.someone()
    await driver.send("a", to=known)
    await driver.settle_down()
    again = await driver.send(session=None, to=known)
    assert await driver.route() == 1
    assert (await driver.message(again)).account == PHONE


async def test_the_known_account_is_kept_while_it_is_offline(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    known = driver.someone()
    await driver.send("a", to=known)
    await driver.confirm((await driver.attempt()).message_id)
    await driver.store.sessions.disconnect("a", driver.now)
    again = await driver.send(session=None, to=known)
    await driver.route()
    assert (await driver.message(again)).account == PHONE


async def test_a_stranger_is_written_to_by_the_account_with_the_most_allowance_left(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=10))
    await driver.link("b", OTHER, replace(UNHURRIED, daily=12))
    await driver.settle_down()
    ids = [await driver.send(session=None) for _ in range(6)]
    assert await driver.route() == 6
    accounts = [(await driver.message(i)).account for i in ids]
    assert accounts[:2] == [OTHER, OTHER]
    assert Counter(accounts[2:]) == {PHONE: 2, OTHER: 2}
    await driver.settle_down()
    assert len((await driver.audit()).messages) == 6


async def test_a_choice_is_sticky_from_the_moment_it_is_made(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=10))
    await driver.link("b", OTHER, replace(UNHURRIED, daily=12))
    person = driver.someone()
    first = await driver.send(session=None, to=person)
    await driver.route()
    for _ in range(5):
        await driver.send("b")
    second = await driver.send(session=None, to=person)
    await driver.route()
    assert [(await driver.message(i)).account for i in (first, second)] == [OTHER, OTHER]


async def test_two_messages_to_one_stranger_get_the_same_sender_even_at_once(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    person = driver.someone()
    ids = [await driver.send(session=None, to=person) for _ in range(4)]
    assert await driver.route() == 4
    assert len({(await driver.message(i)).account for i in ids}) == 1


async def test_a_choice_made_before_the_stranger_got_a_sender_yields_to_that_one(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    person = driver.someone()
    first, second = [await driver.send(session=None, to=person) for _ in range(2)]
    await driver.store.pace.route([(first, PHONE)], driver.now)
    await driver.store.pace.route([(second, OTHER)], driver.now)
    assert (await driver.message(second)).account == PHONE


async def test_a_message_waits_while_no_account_can_take_it(driver: Driver) -> None:
    message_id = await driver.send(session=None)
    assert await driver.route() == 0
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await driver.store.accounts.pause(PHONE, None, driver.now)
    await driver.settle_down()
    assert await driver.route() == 0
    await driver.store.accounts.resume(PHONE, driver.now)
    assert await driver.route() == 1
    assert (await driver.message(message_id)).account == PHONE
    waiting = await driver.send(session=None)
    assert await driver.route() == 0
    driver.now += DAY
    assert await driver.hand_over() == message_id
    assert (await driver.message(waiting)).place is Place.JOBS


async def test_routed_messages_keep_priority_and_order(driver: Driver) -> None:
    ids = [await driver.send(session=None, priority=priority) for priority in (1, 1, 3, 2)]
    assert await driver.position(ids[2]) == 1
    await driver.link("a", PHONE)
    await driver.route()
    assert await driver.queue(PHONE) == [ids[2], ids[3], ids[0], ids[1]]


async def test_a_routed_message_that_finds_no_room_waits_for_it(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    await driver.send("a", to=person)
    await driver.settle_down()
    await fill(driver)
    message_id = await driver.send(session=None, to=person)
    await driver.route()
    message = await driver.message(message_id)
    assert (message.place, message.account) == (Place.OVERFLOW, PHONE)
    await driver.confirm((await driver.claimed()).message_id)
    await driver.settle_down()
    assert (await driver.queue(PHONE))[-1] == message_id


async def test_two_routers_give_a_message_one_sender(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    message_id = await driver.send(session=None)
    assert await driver.store.pace.route([(message_id, PHONE)], driver.now) == 1
    assert await driver.store.pace.route([(message_id, OTHER)], driver.now) == 0
    assert (await driver.message(message_id)).account == PHONE


async def test_a_message_that_was_cancelled_or_never_was_is_not_routed(driver: Driver) -> None:
    await driver.link("a", PHONE)
    message_id = await driver.send(session=None)
    await driver.store.messages.cancel([message_id], driver.now, "test")
    choices = [(message_id, PHONE), ("f" * 18, PHONE)]
    assert await driver.store.pace.route(choices, driver.now) == 0


async def test_someone_who_opted_out_while_it_waited_is_not_written_to(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    message_id = await driver.send(session=None, to=person)
    await driver.store.suppressions.add(person)
    assert isinstance(await driver.enqueue(Entry([driver.row(person)])), Refused)
    await driver.route()
    assert await driver.settle_down() == []
    message = await driver.message(message_id)
    assert (message.status, message.error) == (Status.CANCELLED, "recipient opted out")
