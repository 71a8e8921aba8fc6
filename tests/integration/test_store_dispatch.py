"""Taking accounts and handing messages over (take.lua, dispatch.lua): one winner, and no plan can lie past a cap."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from switchboard.domain.hours import ALWAYS, Hours
from switchboard.domain.messages import Place, Status, Waiting
from switchboard.domain.pacing import Defer, HandOver, Policy, Recall, Wait
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, TrustTable
from switchboard.store.pace import TAKE_LEASE_MS, Planned
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
BERLINER = "491701234567"


def hand(planned: Planned) -> HandOver:
    assert isinstance(planned.plan, HandOver)
    return planned.plan


async def deliver(driver: Driver, count: int = 1) -> None:
    for _ in range(count):
        await driver.send()
        await driver.confirm((await driver.attempt()).message_id)


async def lying(driver: Driver, **figures: Any) -> Planned:
    """A plan to hand over that claims more than the account has: a dispatcher with a bug, or an old view."""
    view = await driver.view(PHONE)
    at = driver.now
    unhindered = replace(view.account, not_before=0, day_count=0, recent=(), paused_until=0)
    assert view.head is not None
    planned = driver.planned(replace(view, account=unhindered, head=replace(view.head, recipient_count=0)))
    assert driver.now == at
    return replace(planned, plan=replace(hand(planned), **figures))


async def test_a_hand_over_moves_the_message_and_counts_it(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, base_delay_ms=4_000))
    message_id = await driver.send()
    assert await driver.hand_over() == message_id
    message = await driver.message(message_id)
    assert (message.place, message.session, message.handed_at) == (Place.OUTBOX, "a", driver.now)
    view = await driver.view(PHONE)
    assert view.in_flight is not None
    assert (view.in_flight.message_id, view.in_flight.claimed) == (message_id, False)
    assert view.in_flight.lease_until == driver.now + MINUTE
    account = view.account
    assert (account.day_count, account.recent, account.waiting) == (1, (driver.now,), 0)
    assert account.day_ends_at == driver.now + 12 * HOUR
    assert account.not_before == driver.now + 4_000


async def test_an_account_has_one_message_in_flight(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("a2", PHONE)
    for _ in range(3):
        await driver.send()
    assert len(await driver.settle_down()) == 1
    driver.now += MINUTE - 1
    assert await driver.settle_down() == []


async def test_what_one_dispatcher_took_another_leaves_alone_until_its_lease_ends(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.send()
    assert len((await driver.store.pace.take(driver.now)).accounts) == 1
    driver.now += TAKE_LEASE_MS - 1
    assert (await driver.store.pace.take(driver.now)).accounts == []
    driver.now += 1
    assert len((await driver.store.pace.take(driver.now)).accounts) == 1


async def test_of_two_dispatchers_that_planned_the_same_account_one_wins(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.send()
    await driver.send()
    plans = [await driver.plan_one(PHONE) for _ in range(2)]
    outcomes = await asyncio.gather(*(driver.commit(planned) for planned in plans))
    assert sorted(outcomes) == ["OK", "STALE"]
    assert (await driver.view(PHONE)).account.day_count == 1


async def test_a_plan_for_an_account_that_changed_is_stale(driver: Driver) -> None:
    accounts = driver.store.accounts
    await driver.link("a", PHONE)
    await driver.send()
    for change in (
        accounts.pause(PHONE, driver.now + HOUR, driver.now),
        accounts.resume(PHONE, driver.now),
        accounts.override(PHONE, replace(UNHURRIED, daily=5), None, driver.now),
        driver.store.sessions.disconnect("a", driver.now),
        driver.store.sessions.connect("a", PHONE, driver.now),
    ):
        view = await driver.view(PHONE)
        await change
        willing = replace(view.account, paused_until=0, connected=("a",))
        assert await driver.commit(driver.planned(replace(view, account=willing))) == "STALE"
    assert await driver.commit(await driver.plan_one(PHONE)) == "OK"


async def test_a_plan_for_a_message_that_left_the_queue_is_stale(driver: Driver) -> None:
    await driver.link("a", PHONE)
    message_id = await driver.send()
    planned = await driver.plan_one(PHONE)
    await driver.store.messages.cancel([message_id], driver.now, "test")
    assert await driver.commit(planned) == "STALE"
    assert (await driver.view(PHONE)).account.day_count == 0


async def test_a_plan_with_an_unknown_message_session_or_account_moves_nothing(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    mine, other = await driver.send("a"), await driver.send("b")
    planned = await driver.plan_one(PHONE)
    for wrong in (
        replace(hand(planned), message_id="f" * 18),
        replace(hand(planned), message_id=other),
        replace(hand(planned), session="b"),
        replace(hand(planned), session="nobody"),
        Defer("f" * 18, driver.now + HOUR, Waiting.RECIPIENT_CAP),
        Defer(other, driver.now + HOUR, Waiting.RECIPIENT_CAP),
        Recall("f" * 18),
        Recall(mine),
    ):
        assert await driver.commit(replace(planned, plan=wrong)) == "STALE"
        await driver.audit()
    assert await driver.commit(planned) == "OK"


async def test_the_day_s_cap_holds_even_if_the_plan_says_otherwise(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await deliver(driver, 3)
    await driver.send()
    assert await driver.commit(await lying(driver, daily=3)) == "CAPPED"
    assert await driver.commit(await lying(driver, daily=4)) == "OK"


async def test_the_day_s_count_starts_anew_at_midnight(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=2))
    await deliver(driver, 2)
    await driver.store.accounts.override(PHONE, UNHURRIED, None, driver.now)
    await driver.send()
    driver.now += 12 * HOUR - 1
    assert await driver.commit(await lying(driver, daily=2)) == "CAPPED"
    driver.now += 1
    assert await driver.commit(await lying(driver, daily=2)) == "OK"
    assert (await driver.view(PHONE)).account.day_count == 1


async def test_the_minute_s_cap_holds_even_if_the_plan_says_otherwise(driver: Driver) -> None:
    await driver.link("a", PHONE)
    start = driver.now
    for seconds in (0, 20, 40):
        driver.now = start + seconds * 1000
        await deliver(driver)
    await driver.send()
    driver.now = start + MINUTE - 1
    assert await driver.commit(await lying(driver, per_minute=3)) == "CAPPED"
    driver.now = start + MINUTE
    assert await driver.commit(await lying(driver, per_minute=3)) == "OK"


async def test_the_delay_holds_even_if_the_plan_says_otherwise(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, base_delay_ms=5_000))
    await deliver(driver)
    await driver.send()
    driver.now += 4_999
    assert await driver.commit(await lying(driver)) == "CAPPED"
    driver.now += 1
    assert await driver.commit(await lying(driver)) == "OK"


async def test_the_recipient_s_cap_of_the_whole_fleet_holds_even_if_the_plan_says_otherwise(
    driver: Driver,
) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    person = driver.someone()
    for session in ("a", "b", "b"):
        await driver.send(session, to=person)
        await driver.confirm((await driver.attempt(session)).message_id, session=session)
    await driver.send("a", to=person)
    assert await driver.commit(await lying(driver, recipient_cap=3)) == "CAPPED"
    assert isinstance((await driver.plan_one(PHONE)).plan, Defer)
    assert await driver.commit(await lying(driver, recipient_cap=4)) == "OK"


async def test_two_accounts_that_write_to_one_person_in_one_round_share_the_cap(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    person = driver.someone()
    for _ in range(2):
        await driver.send("a", to=person)
        await driver.confirm((await driver.attempt()).message_id)
    ids = [await driver.send("a", to=person), await driver.send("b", to=person)]
    assert len(await driver.settle_down()) == 1
    places = [(await driver.message(i)).place for i in ids]
    assert sorted(places) == [Place.OUTBOX, Place.SCHEDULED]


async def test_a_refused_plan_is_looked_at_again_at_once(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await deliver(driver)
    await driver.send()
    await driver.store.pace.take(driver.now)
    assert await driver.commit(await lying(driver, daily=1)) == "CAPPED"
    assert len(await driver.settle_down()) == 1


async def test_someone_who_opts_out_before_the_hand_over_is_not_written_to(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    message_id = await driver.send(to=person)
    planned = await driver.plan_one(PHONE)
    await driver.store.suppressions.add(person)
    assert await driver.commit(planned) == "OPTED_OUT"
    message = await driver.message(message_id)
    assert (message.status, message.place) == (Status.CANCELLED, Place.DONE)
    assert message.error == "recipient opted out"
    assert (await driver.view(PHONE)).account.day_count == 0
    [event] = await driver.events("message.cancelled")
    assert event["messageId"] == message_id


async def test_an_account_that_must_wait_is_due_when_the_wait_ends(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, hours=Hours.parse("13:00-14:00")))
    await driver.send()
    assert await driver.settle_down() == []
    assert (await driver.round()).next_at == driver.now + HOUR
    driver.now += HOUR
    assert len(await driver.settle_down()) == 1


async def test_an_account_that_nothing_but_a_change_can_help_is_not_looked_at(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.send()
    await driver.store.sessions.disconnect("a", driver.now)
    await driver.settle_down()
    assert await driver.client.zscore(driver.prefix + "dispatch:due", PHONE) is None
    await driver.store.sessions.connect("a", PHONE, driver.now)
    assert len(await driver.settle_down()) == 1


async def test_a_message_that_arrives_while_the_wait_is_committed_is_not_forgotten(driver: Driver) -> None:
    await driver.link("a", PHONE)
    [view] = (await driver.store.pace.take(driver.now)).accounts
    idle = driver.planned(view)
    assert isinstance(idle.plan, Wait)
    await driver.send()
    assert await driver.commit(idle) == "STALE"
    assert len(await driver.settle_down()) == 1


async def test_a_queue_that_empties_while_the_wait_is_committed_is_looked_at_again(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, hours=Hours.parse("13:00-14:00")))
    message_id = await driver.send()
    [view] = (await driver.store.pace.take(driver.now)).accounts
    waits = driver.planned(view)
    await driver.store.messages.cancel([message_id], driver.now, "test")
    assert await driver.commit(waits) == "STALE"
    assert (await driver.round()).visited == 1


async def test_a_message_for_someone_who_has_enough_lets_the_others_pass(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    for _ in range(3):
        await driver.send(to=person)
        await driver.confirm((await driver.attempt()).message_id)
    fourth, stranger = await driver.send(to=person), await driver.send()
    assert await driver.hand_over() == stranger
    message = await driver.message(fourth)
    assert (message.place, message.status) == (Place.SCHEDULED, Status.QUEUED)
    assert (message.wait_reason, message.due) == (Waiting.RECIPIENT_CAP, driver.now + 12 * HOUR)
    await driver.confirm((await driver.claimed()).message_id)
    driver.now += 12 * HOUR + 1
    after = await driver.send()
    assert await driver.hand_over() == fourth
    assert (await driver.message(fourth)).wait_reason is None
    assert await driver.queue(PHONE) == [after]


async def test_nobody_is_written_to_at_night_where_they_live(driver: Driver) -> None:
    patient = Policy(TrustTable(STANDARD), recipients=RecipientRules(3, Hours.parse("08:00-22:00")))
    driver = Driver(driver.store, driver.client, driver.prefix, patient)
    driver.now += 9 * HOUR  # 21:00 in UTC, 23:00 in Berlin
    await driver.link("a", PHONE)
    message_id = await driver.send(to=BERLINER)
    assert await driver.settle_down() == []
    message = await driver.message(message_id)
    assert (message.wait_reason, message.due) == (Waiting.RECIPIENT_HOURS, driver.now + 9 * HOUR)
    driver.now += 9 * HOUR + 1
    assert await driver.hand_over() == message_id


async def test_what_is_handed_over_and_never_claimed_goes_back_uncounted(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    first, second = await driver.send(to=person), await driver.send()
    await driver.settle_down()
    driver.now += MINUTE
    planned = await driver.plan_one(PHONE)
    assert isinstance(planned.plan, Recall)
    assert await driver.commit(planned) == "OK"
    message = await driver.message(first)
    assert (message.place, message.status, message.attempts) == (Place.QUEUE, Status.QUEUED, 0)
    assert await driver.queue(PHONE) == [first, second]
    account = (await driver.view(PHONE)).account
    assert (account.day_count, account.recent) == (0, ())
    assert int(await driver.client.hget(driver.prefix + f"recipient:{person}", "count") or -1) == 0
    assert await driver.hand_over() == first


async def test_a_refund_after_the_person_s_midnight_takes_nothing_from_their_new_day(driver: Driver) -> None:
    """Another account wrote on the new day in the meantime; that one stays counted."""
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    person = driver.someone()
    driver.now += 12 * HOUR - 1000
    await driver.send("a", to=person)
    await driver.settle_down()
    driver.now += 2000
    await driver.send("b", to=person)
    await driver.attempt("b")
    driver.now += MINUTE
    assert await driver.commit(await driver.plan_one(PHONE)) == "OK"
    assert await driver.client.hget(driver.prefix + f"recipient:{person}", "count") == "1"


async def test_a_claim_beats_the_recall_that_was_planned_before_it(driver: Driver) -> None:
    await driver.link("a", PHONE)
    message_id = await driver.send()
    await driver.settle_down()
    driver.now += MINUTE
    planned = await driver.plan_one(PHONE)
    await driver.claimed()
    assert await driver.commit(planned) == "STALE"
    assert (await driver.message(message_id)).place is Place.CLAIMED


async def test_a_message_is_sent_by_the_session_it_names_and_by_another_when_that_is_away(
    driver: Driver,
) -> None:
    await driver.link("a", PHONE)
    await driver.link("a2", PHONE)
    await driver.send("a2")
    assert (await driver.message(await driver.hand_over("a2"))).session == "a2"
    await driver.confirm((await driver.claimed("a2")).message_id)
    await driver.send("a2")
    await driver.store.sessions.disconnect("a2", driver.now)
    assert (await driver.message(await driver.hand_over("a"))).session == "a"


async def test_two_sessions_of_one_phone_share_its_limits(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("a2", PHONE, replace(UNHURRIED, daily=2))
    for session in ("a", "a2", "a"):
        await driver.send(session)
    for session in ("a", "a2"):
        await driver.confirm((await driver.attempt(session)).message_id, session=session)
    assert await driver.settle_down() == []
    assert (await driver.round()).next_at == driver.now + 12 * HOUR


async def test_a_burst_is_spread_by_doubling_the_delay(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, per_minute=1, base_delay_ms=5_000))
    for _ in range(4):
        await driver.send()
    await driver.settle_down()
    assert (await driver.view(PHONE)).account.not_before == driver.now + 10_000


async def test_a_retry_does_not_count_against_the_recipient_again(driver: Driver) -> None:
    await driver.link("a", PHONE)
    person = driver.someone()
    message_id = await driver.send(to=person)
    for _ in range(3):
        claim = await driver.attempt()
        assert claim.message_id == message_id
        driver.now += MINUTE
        await driver.settle_down()
        driver.now += HOUR
    assert await driver.client.hget(driver.prefix + f"recipient:{person}", "count") == "1"
    assert (await driver.view(PHONE)).account.day_count == 3


async def test_an_idle_account_is_looked_at_when_its_allowance_changes_by_itself(driver: Driver) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, hours=ALWAYS))
    await driver.settle_down()
    assert (await driver.round()).next_at == driver.now + 3 * DAY
    await deliver(driver)
    assert (await driver.round()).visited == 1
    assert (await driver.round()).next_at == driver.now + 12 * HOUR


async def test_a_round_carries_hundreds_of_accounts(driver: Driver) -> None:
    for n in range(450):
        await driver.link(f"s{n}", f"9725{n:08}")
        await driver.send(f"s{n}")
    handed = await driver.settle_down()
    assert len({h.session for h in handed}) == len(handed) == 450
