"""Accepting messages (enqueue.lua): what is taken, what is refused and in which order, and nothing is half done."""

from dataclasses import replace

import pytest

from switchboard.domain.messages import Place, Status, Waiting
from switchboard.domain.trust import Overrides
from switchboard.store.intake import Accepted, Entry, Refusal, Refused, Row, Stale
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
NEVER = 10**9


async def guarded(driver: Driver, *rows: Row, daily: int = 10_000) -> Entry:
    """An entry whose guard is right, so that the script is asked exactly once."""
    profile = (await driver.view(PHONE)).account.profile
    return Entry(rows, session="a", revision=profile.revision, daily=daily, burst=NEVER)


async def fill(driver: Driver, count: int) -> list[str]:
    rows = [driver.row() for _ in range(count)]
    entry = await guarded(driver)
    results = await driver.store.intake.enqueue([replace(entry, rows=[row]) for row in rows], driver.now)
    assert all(isinstance(result, Accepted) for result in results)
    return [row.id for row in rows]


async def send_one_today(driver: Driver) -> None:
    await driver.send()
    claim = await driver.attempt()
    await driver.confirm(claim.message_id)


def refused(result: object) -> Refusal:
    assert isinstance(result, Refused), result
    return result.reason


async def test_a_message_is_queued_with_all_it_was_given(driver: Driver) -> None:
    await driver.link("a", PHONE)
    row = Row("0" * 18, "870700000001", "שלום", 2, 0, "order-17")
    result = await driver.enqueue(Entry([row], session="a"))
    assert isinstance(result, Accepted)
    assert (result.message_id, result.position, result.at) == (row.id, 1, driver.now)
    assert result.account is not None
    assert result.account.profile.phone == PHONE
    message = await driver.message(row.id)
    assert (message.to, message.text, message.priority, message.reference) == (row.to, row.text, 2, "order-17")
    assert (message.status, message.place, message.account) == (Status.QUEUED, Place.QUEUE, PHONE)
    assert message.created_at == driver.now


async def test_the_sender_may_be_named_by_its_phone(driver: Driver) -> None:
    await driver.link("a", PHONE)
    result = await driver.enqueue(Entry([driver.row()], phone=PHONE))
    assert isinstance(result, Accepted)
    assert await driver.queue(PHONE) == [result.message_id]


@pytest.mark.parametrize(
    ("session", "phone", "reason"),
    [
        ("nobody", None, Refusal.NOT_FOUND),
        (None, "972599999999", Refusal.NOT_FOUND),
        ("unlinked", None, Refusal.NOT_LINKED),
        ("a", OTHER, Refusal.MISMATCH),
    ],
)
async def test_a_sender_that_can_not_send_is_refused(
    driver: Driver, session: str | None, phone: str | None, reason: Refusal
) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    await driver.store.sessions.register("unlinked", driver.now)
    assert refused(await driver.enqueue(Entry([driver.row()], session=session, phone=phone))) is reason


async def test_a_guard_from_an_older_profile_is_answered_with_the_current_one(driver: Driver) -> None:
    await driver.link("a", PHONE)
    entry = await guarded(driver, driver.row())
    await driver.store.accounts.override(PHONE, Overrides(daily=7), "Asia/Jerusalem", driver.now)
    result = await driver.ask(entry)
    assert isinstance(result, Stale)
    assert result.profile.revision == entry.revision + 1
    assert result.profile.overrides == Overrides(daily=7)
    assert result.profile.zone.key == "Asia/Jerusalem"
    assert await driver.queue(PHONE) == []
    accepted = await driver.ask(replace(entry, revision=result.profile.revision))
    assert isinstance(accepted, Accepted)


async def test_a_recipient_who_opted_out_is_refused_and_every_such_row_is_named(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.store.suppressions.add("870700000001")
    rows = [driver.row(to=to) for to in ("870700000009", "870700000001", "870700000008", "870700000001")]
    result = await driver.enqueue(Entry(rows, session="a", batch=("batch_1", 0)))
    assert result == Refused(Refusal.OPTED_OUT, rows=(1, 3))
    assert (await driver.audit()).messages == {}
    await driver.store.suppressions.remove("870700000001")
    assert isinstance(await driver.enqueue(Entry(rows, session="a", batch=("batch_1", 0))), Accepted)


async def test_the_day_s_limit_says_what_was_sent_and_when_it_ends(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await send_one_today(driver)
    midnight = driver.now + 12 * HOUR
    result = await driver.enqueue(Entry([driver.row()], session="a"))
    assert result == Refused(Refusal.DAILY_LIMIT, sent=1, resets_at=midnight)
    driver.now = midnight
    assert isinstance(await driver.enqueue(Entry([driver.row()], session="a")), Accepted)


async def test_below_the_day_s_limit_any_number_is_queued(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=2))
    await send_one_today(driver)
    for _ in range(5):
        await driver.send()
    assert len(await driver.queue(PHONE)) == 5


async def test_a_deferrable_message_over_the_limit_waits_for_the_next_day(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await send_one_today(driver)
    result = await driver.enqueue(Entry([driver.row()], session="a", deferrable=True))
    assert isinstance(result, Accepted)
    assert result.position is None
    message = await driver.message(result.message_id)
    assert (message.status, message.wait_reason) == (Status.SCHEDULED, Waiting.DAILY_LIMIT)
    assert (message.due, message.scheduled_for) == (driver.now + 12 * HOUR, None)
    driver.now += 12 * HOUR + 1
    assert await driver.hand_over() == result.message_id


async def test_a_deferrable_batch_over_the_limit_keeps_its_order_on_the_next_day(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await send_one_today(driver)
    await driver.send(due=driver.now + 12 * HOUR)
    rows = [driver.row(due=driver.now + i / 1024) for i in range(40)]
    result = await driver.enqueue(Entry(rows, session="a", batch=("batch_1", 0), deferrable=True))
    assert isinstance(result, Accepted)
    await driver.store.pace.take(driver.now + 12 * HOUR + MINUTE)
    assert (await driver.queue(PHONE))[1:] == [row.id for row in rows]


async def test_what_is_scheduled_for_another_day_is_not_held_to_today_s_limit(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await send_one_today(driver)
    tomorrow = await driver.send(due=driver.now + DAY)
    assert (await driver.message(tomorrow)).scheduled_for == driver.now + DAY
    today = Entry([driver.row(due=driver.now + HOUR)], session="a")
    assert refused(await driver.enqueue(today)) is Refusal.DAILY_LIMIT


async def test_a_thousand_may_wait_and_no_more(driver: Driver) -> None:
    await driver.link("a", PHONE)
    ids = await fill(driver, 1000)
    assert refused(await driver.enqueue(Entry([driver.row()], session="a"))) is Refusal.QUEUE_FULL
    await driver.store.messages.cancel(ids[:1], driver.now, "test")
    assert await driver.position(await driver.send()) == 1000


async def test_scheduled_messages_take_no_room(driver: Driver) -> None:
    await driver.link("a", PHONE)
    later = await driver.send(due=driver.now + HOUR)
    await fill(driver, 1000)
    also_later = await driver.send(due=driver.now + HOUR)
    assert (await driver.audit()).places == {"queue": 1000, "scheduled": 2}
    assert {(await driver.message(i)).place for i in (later, also_later)} == {Place.SCHEDULED}


async def test_the_checks_come_in_the_order_of_the_specification(driver: Driver) -> None:
    """Rate, sender, recipient, day's limit, room: an entry that fails them all loses one fault at a time."""
    await driver.link("a", PHONE)
    await send_one_today(driver)
    ids = await fill(driver, 1000)
    await driver.store.suppressions.add("870700000001")
    entry = replace(await guarded(driver, driver.row("870700000001"), daily=1), rate=("key", 1))
    assert refused(await driver.ask(replace(entry, session="nobody"))) is Refusal.NOT_FOUND
    assert refused(await driver.ask(replace(entry, session="nobody"))) is Refusal.RATE_LIMITED
    entry = replace(entry, rate=None)
    assert refused(await driver.ask(replace(entry, session="nobody"))) is Refusal.NOT_FOUND
    assert refused(await driver.ask(entry)) is Refusal.OPTED_OUT
    entry = replace(entry, rows=[driver.row()])
    assert refused(await driver.ask(entry)) is Refusal.DAILY_LIMIT
    entry = replace(entry, daily=2)
    assert refused(await driver.ask(entry)) is Refusal.QUEUE_FULL
    await driver.store.messages.cancel(ids[:1], driver.now, "test")
    assert isinstance(await driver.ask(entry), Accepted)


async def test_higher_priorities_leave_first_and_equal_ones_in_the_order_they_came(driver: Driver) -> None:
    await driver.link("a", PHONE)
    sent = [(priority, await driver.send(priority=priority)) for priority in (1, 3, 2, 1, 3, 2, 1)]
    in_order = [i for wanted in (3, 2, 1) for priority, i in sent if priority == wanted]
    assert await driver.queue(PHONE) == in_order
    left: list[str] = []
    for _ in in_order:
        claim = await driver.attempt()
        await driver.confirm(claim.message_id)
        left.append(claim.message_id)
    assert left == in_order


async def test_the_position_counts_those_that_leave_before_it(driver: Driver) -> None:
    await driver.link("a", PHONE)
    for _ in range(3):
        await driver.send()
    normal = await driver.enqueue(Entry([driver.row()], session="a"))
    urgent = await driver.enqueue(Entry([driver.row(priority=3)], session="a"))
    assert isinstance(normal, Accepted)
    assert isinstance(urgent, Accepted)
    assert (normal.position, urgent.position) == (4, 1)
    assert await driver.position(normal.message_id) == 5


async def test_the_same_key_and_body_give_the_same_answer_and_no_second_message(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.send()
    entry = replace(await guarded(driver, driver.row()), idempotency=("key", "body"))
    first = await driver.ask(entry)
    driver.now += HOUR
    await driver.attempt()
    again = await driver.ask(replace(entry, rows=[driver.row()]))
    assert isinstance(first, Accepted)
    assert again == first
    assert len((await driver.audit()).messages) == 2


async def test_the_same_key_with_another_body_is_a_conflict(driver: Driver) -> None:
    await driver.link("a", PHONE)
    entry = replace(await guarded(driver, driver.row()), idempotency=("key", "body"))
    await driver.ask(entry)
    other = replace(entry, rows=[driver.row()], idempotency=("key", "another body"))
    assert refused(await driver.ask(other)) is Refusal.CONFLICT
    assert len((await driver.audit()).messages) == 1


async def test_an_idempotency_key_is_remembered_for_24_hours(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.ask(replace(await guarded(driver, driver.row()), idempotency=("key", "body")))
    life = await driver.client.ttl(driver.prefix + "idempotency:key")
    assert 24 * 3600 - 60 < life <= 24 * 3600


async def test_a_refused_request_does_not_use_up_its_idempotency_key(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.store.suppressions.add("870700000001")
    entry = replace(await guarded(driver, driver.row("870700000001")), idempotency=("key", "body"))
    assert refused(await driver.ask(entry)) is Refusal.OPTED_OUT
    await driver.store.suppressions.remove("870700000001")
    assert isinstance(await driver.ask(entry), Accepted)


async def test_a_repeated_request_is_answered_even_where_a_new_one_would_be_refused(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    entry = replace(await guarded(driver, driver.row(), daily=1), idempotency=("key", "body"))
    first = await driver.ask(entry)
    await driver.attempt()
    assert refused(await driver.ask(replace(entry, idempotency=None))) is Refusal.DAILY_LIMIT
    assert await driver.ask(entry) == first


async def test_a_repeated_unrouted_or_batch_request_gets_its_first_answer(driver: Driver) -> None:
    await driver.link("a", PHONE)
    unrouted = Entry([driver.row()], idempotency=("one", "body"))
    batch = replace(await guarded(driver, driver.row(), driver.row()), batch=("b", 0), idempotency=("two", "body"))
    for entry in (unrouted, batch):
        assert await driver.ask(entry) == await driver.ask(entry)
    assert len((await driver.audit()).messages) == 3


async def test_calls_of_a_key_are_counted_by_the_minute(driver: Driver) -> None:
    await driver.link("a", PHONE)
    entry = replace(await guarded(driver), rate=("key", 2))
    results = [await driver.ask(replace(entry, rows=[driver.row()])) for _ in range(3)]
    assert [isinstance(result, Accepted) for result in results] == [True, True, False]
    assert refused(results[2]) is Refusal.RATE_LIMITED
    other = replace(entry, rows=[driver.row()], rate=("other key", 2))
    assert isinstance(await driver.ask(other), Accepted)
    driver.now += MINUTE
    assert isinstance(await driver.ask(replace(entry, rows=[driver.row()])), Accepted)


async def test_a_request_that_has_to_be_asked_again_counts_as_one_call(driver: Driver) -> None:
    await driver.link("a", PHONE)
    for _ in range(2):
        await driver.store.accounts.override(PHONE, UNHURRIED, None, driver.now)
        result = await driver.enqueue(Entry([driver.row()], session="a", rate=("key", 2)))
        assert isinstance(result, Accepted)


async def test_a_batch_waits_in_the_schedule_row_by_row(driver: Driver) -> None:
    await driver.link("a", PHONE)
    rows = [driver.row(due=driver.now + i * MINUTE) for i in range(3)]
    result = await driver.enqueue(Entry(rows, session="a", batch=("batch_1", 3 * MINUTE)))
    assert isinstance(result, Accepted)
    assert (result.message_id, result.position) == ("batch_1", None)
    messages = [await driver.message(row.id) for row in rows]
    assert {m.place for m in messages} == {Place.SCHEDULED}
    assert {m.batch for m in messages} == {"batch_1"}
    assert [m.scheduled_for for m in messages] == [row.due for row in rows]
    batch = await driver.store.batches.get("batch_1")
    assert batch is not None
    assert (batch.total, batch.waiting, batch.spread_ms, batch.account) == (3, 3, 3 * MINUTE, PHONE)
    assert await driver.store.batches.rows("batch_1", 0, 10) == [row.id for row in rows]


async def test_a_batch_is_accepted_as_a_whole_or_not_at_all(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    await send_one_today(driver)
    await driver.store.suppressions.add("870700000001")
    today, tomorrow = driver.now, driver.now + DAY
    for rows, reason in (
        ([driver.row(due=tomorrow), driver.row("870700000001", due=tomorrow)], Refusal.OPTED_OUT),
        ([driver.row(due=tomorrow), driver.row(due=today)], Refusal.DAILY_LIMIT),
    ):
        assert refused(await driver.enqueue(Entry(rows, session="a", batch=("batch_1", 0)))) is reason
    assert len((await driver.audit()).messages) == 1
    assert await driver.store.batches.get("batch_1") is None


async def test_ten_thousand_rows_are_one_request(driver: Driver) -> None:
    await driver.link("a", PHONE)
    rows = [driver.row(due=driver.now + i / 1024) for i in range(10_000)]
    await driver.send_batch("batch_1", rows)
    batch = await driver.store.batches.get("batch_1")
    assert batch is not None
    assert batch.total == 10_000
    assert (await driver.audit()).places == {"scheduled": 10_000}


async def test_a_message_without_a_sender_waits_for_one(driver: Driver) -> None:
    result = await driver.ask(Entry([driver.row()]))
    assert isinstance(result, Accepted)
    assert (result.position, result.account) == (1, None)
    message = await driver.message(result.message_id)
    assert (message.place, message.status, message.account) == (Place.JOBS, Status.QUEUED, None)


async def test_one_call_carries_many_requests_and_each_stands_for_itself(driver: Driver) -> None:
    await driver.link("a", PHONE)
    good = await guarded(driver, driver.row())
    bad = replace(good, session="nobody")
    third = replace(good, rows=[driver.row()])
    results = await driver.store.intake.enqueue([good, bad, third], driver.now)
    assert [type(result) for result in results] == [Accepted, Refused, Accepted]
    assert await driver.queue(PHONE) == [good.rows[0].id, third.rows[0].id]


async def test_far_more_than_the_normal_rate_at_once_is_a_burst_and_is_reported_once(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, per_minute=5))
    for _ in range(15):
        await driver.send()
    assert (await driver.view(PHONE)).account.burst_until == 0
    for _ in range(5):
        await driver.send()
    assert (await driver.view(PHONE)).account.burst_until == driver.now + 10 * MINUTE
    [event] = await driver.events("account.burst")
    assert (event["account"], event["queued"], event["threshold"]) == (PHONE, "16", "15")


async def test_the_same_number_over_several_minutes_is_no_burst(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, per_minute=5))
    for _ in range(30):
        await driver.send()
        driver.now += 10_000
    assert (await driver.view(PHONE)).account.burst_until == 0


async def test_texts_of_any_script_come_back_as_they_went_in(driver: Driver) -> None:
    await driver.link("a", PHONE)
    text = 'שלום \U0001f44b\n\t"quoted" \\ {} \' \x00 end'
    row = replace(driver.row(), text=text)
    await driver.enqueue(Entry([row], session="a"))
    assert (await driver.message(row.id)).text == text
    assert (await driver.attempt()).text == text
