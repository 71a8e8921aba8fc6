"""The worker's side (claim.lua, confirm.lua, fail.lua): what was taken, what arrived, what went wrong."""

from dataclasses import replace

import pytest

from switchboard.domain.accounts import FOREVER
from switchboard.domain.messages import Place, Status, Waiting
from switchboard.domain.retry import FailureClass, decide
from switchboard.domain.sessions import hold_reason
from switchboard.store.outbox import Settled
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
SECOND = 1000


@pytest.fixture(autouse=True)
async def linked(driver: Driver) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)


async def fail_for_good(driver: Driver) -> str:
    await driver.send()
    claim = await driver.attempt()
    await driver.nack(claim, FailureClass.NOT_ON_WHATSAPP)
    return claim.message_id


class TestClaim:
    async def test_a_worker_gets_the_message_with_its_attempt_and_its_lease(self, driver: Driver) -> None:
        person = driver.someone()
        message_id = await driver.send(to=person)
        await driver.settle_down()
        claim = await driver.claimed()
        assert (claim.message_id, claim.to, claim.text) == (message_id, person, "hello")
        assert (claim.attempt, claim.lease_until) == (1, driver.now + MINUTE)
        message = await driver.message(message_id)
        assert (message.status, message.place, message.attempts) == (Status.SENDING, Place.CLAIMED, 1)

    async def test_there_is_nothing_to_claim_before_a_hand_over(self, driver: Driver) -> None:
        await driver.send()
        assert await driver.claim() is None
        assert await driver.claim("nobody") is None

    async def test_a_worker_that_missed_the_answer_gets_the_same_message_again(self, driver: Driver) -> None:
        await driver.send()
        first = await driver.attempt()
        driver.now += 30 * SECOND
        assert await driver.claim() == first
        assert (await driver.message(first.message_id)).attempts == 1

    async def test_a_new_instance_gets_nothing_until_the_lease_of_the_old_one_ends(self, driver: Driver) -> None:
        await driver.send()
        first = await driver.attempt()
        assert await driver.claim(instance="two") is None
        driver.now = first.lease_until - 1
        await driver.settle_down()
        assert await driver.claim(instance="two") is None
        driver.now = first.lease_until
        await driver.settle_down()
        driver.now += 30 * SECOND + 1
        await driver.settle_down()
        again = await driver.claimed(instance="two")
        assert (again.message_id, again.attempt) == (first.message_id, 2)

    async def test_a_worker_whose_lease_ended_gets_nothing_for_it(self, driver: Driver) -> None:
        await driver.send()
        first = await driver.attempt()
        driver.now = first.lease_until
        assert await driver.claim() is None

    async def test_a_message_is_for_the_session_it_was_handed_to(self, driver: Driver) -> None:
        await driver.link("a2", PHONE)
        await driver.send("a2")
        await driver.settle_down()
        assert await driver.claim("a") is None
        assert await driver.claim("b") is None
        assert (await driver.claimed("a2")).attempt == 1

    async def test_a_claim_after_the_hand_over_s_own_lease_still_wins_if_it_is_first(self, driver: Driver) -> None:
        await driver.send()
        await driver.settle_down()
        driver.now += 10 * MINUTE
        claim = await driver.claimed()
        assert claim.lease_until == driver.now + MINUTE
        assert await driver.settle_down() == []

    async def test_a_late_claim_keeps_the_delay_to_the_next_message(self, driver: Driver) -> None:
        await driver.store.accounts.override(PHONE, replace(UNHURRIED, base_delay_ms=5_000), None, driver.now)
        await driver.send()
        second = await driver.send()
        await driver.settle_down()
        driver.now += 20 * SECOND
        claim = await driver.claimed()
        await driver.confirm(claim.message_id)
        driver.now += 5_000 - 1
        assert await driver.settle_down() == []
        driver.now += 1
        assert await driver.hand_over() == second

    async def test_a_late_claim_keeps_the_minute_s_cap(self, driver: Driver) -> None:
        await driver.store.accounts.override(PHONE, replace(UNHURRIED, per_minute=1), None, driver.now)
        await driver.send()
        second = await driver.send()
        await driver.settle_down()
        driver.now += 20 * SECOND
        await driver.confirm((await driver.claimed()).message_id)
        driver.now += MINUTE - 1
        assert await driver.settle_down() == []
        driver.now += 1
        assert await driver.hand_over() == second


class TestConfirm:
    async def test_what_whatsapp_took_is_sent_and_the_account_is_free(self, driver: Driver) -> None:
        await driver.send()
        second = await driver.send()
        claim = await driver.attempt()
        driver.now += SECOND
        assert await driver.confirm(claim.message_id) == Settled(changed=True, status="sent")
        message = await driver.message(claim.message_id)
        assert (message.status, message.place, message.sent_at) == (Status.SENT, Place.DONE, driver.now)
        assert await driver.hand_over() == second

    async def test_a_status_only_moves_forward(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        times = {}
        for status in (Status.SENT, Status.DELIVERED, Status.READ):
            driver.now += SECOND
            times[status] = driver.now
            assert (await driver.confirm(claim.message_id, status)).changed
            for earlier in times:
                again = await driver.confirm(claim.message_id, earlier)
                assert again == Settled(changed=False, status=status)
        message = await driver.message(claim.message_id)
        assert [message.sent_at, message.delivered_at, message.read_at] == list(times.values())

    async def test_a_receipt_of_the_same_second_is_not_shown_before_what_it_confirms(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        sent = driver.now
        await driver.confirm(claim.message_id)
        for status in (Status.DELIVERED, Status.READ):
            await driver.store.outbox.confirm("a", claim.message_id, status, sent - 999, driver.now)
        message = await driver.message(claim.message_id)
        assert message.status is Status.READ
        assert message.sent_at == message.delivered_at == message.read_at == sent

    async def test_a_receipt_that_overtakes_the_acknowledgement_settles_everything(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        assert (await driver.confirm(claim.message_id, Status.READ)).changed
        message = await driver.message(claim.message_id)
        assert message.status is Status.READ
        assert message.sent_at == message.delivered_at == message.read_at == driver.now
        assert not (await driver.confirm(claim.message_id)).changed

    async def test_a_late_acknowledgement_stops_the_retry(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.UNCONFIRMED)
        assert (await driver.message(claim.message_id)).place is Place.SCHEDULED
        assert (await driver.confirm(claim.message_id)).changed
        driver.now += HOUR
        assert await driver.settle_down() == []
        message = await driver.message(claim.message_id)
        assert (message.status, message.error, message.due) == (Status.SENT, None, None)

    async def test_a_late_acknowledgement_settles_what_waits_in_the_queue_again(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        assert await driver.queue(PHONE) == [claim.message_id]
        assert (await driver.confirm(claim.message_id)).changed
        assert await driver.queue(PHONE) == []

    async def test_a_late_acknowledgement_takes_a_retry_back_from_the_outbox_uncounted(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.UNCONFIRMED)
        driver.now += MINUTE
        assert await driver.hand_over() == claim.message_id
        assert (await driver.view(PHONE)).account.day_count == 2
        assert (await driver.confirm(claim.message_id)).changed
        assert await driver.claim() is None
        view = await driver.view(PHONE)
        assert (view.in_flight, view.account.day_count) == (None, 1)

    async def test_a_late_acknowledgement_of_one_attempt_settles_the_next_one_in_hand(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.UNCONFIRMED)
        driver.now += MINUTE
        again = await driver.attempt()
        assert (await driver.confirm(claim.message_id)).changed
        assert not (await driver.nack(again, FailureClass.RETRYABLE)).changed
        assert (await driver.message(claim.message_id)).status is Status.SENT
        assert (await driver.view(PHONE)).in_flight is None

    @pytest.mark.parametrize("discarded", [False, True])
    async def test_a_late_acknowledgement_brings_a_dead_letter_back(self, driver: Driver, discarded: bool) -> None:
        message_id = await fail_for_good(driver)
        if discarded:
            await driver.store.messages.discard(message_id, driver.now)
        assert (await driver.confirm(message_id, Status.DELIVERED)).changed
        message = await driver.message(message_id)
        assert (message.status, message.place, message.error) == (Status.DELIVERED, Place.DONE, None)
        assert (await driver.store.messages.dead_page(10, None)).items == []

    async def test_a_late_acknowledgement_counts_even_for_what_was_cancelled(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.UNCONFIRMED)
        await driver.store.messages.cancel([claim.message_id], driver.now, "test")
        assert (await driver.confirm(claim.message_id)).changed
        assert (await driver.message(claim.message_id)).status is Status.SENT

    async def test_the_worker_of_another_account_can_not_confirm(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        for session in ("b", "nobody"):
            assert not (await driver.confirm(claim.message_id, session=session)).known
        assert (await driver.message(claim.message_id)).status is Status.SENDING

    async def test_another_session_of_the_same_account_may_bring_the_receipt(self, driver: Driver) -> None:
        await driver.link("a2", PHONE)
        await driver.send()
        claim = await driver.attempt()
        assert (await driver.confirm(claim.message_id, Status.DELIVERED, session="a2")).changed

    async def test_what_never_left_can_not_be_confirmed(self, driver: Driver) -> None:
        queued = await driver.send()
        handed = await driver.hand_over()
        scheduled = await driver.send(due=driver.now + HOUR)
        unrouted = await driver.send(session=None)
        assert queued == handed
        for message_id in (handed, scheduled, unrouted, "f" * 18):
            assert not (await driver.confirm(message_id, Status.READ)).known
        assert (await driver.audit()).statuses == {"queued": 2, "scheduled": 1}


class TestFail:
    async def test_a_failure_is_tried_again_after_a_growing_gap_and_then_given_up(self, driver: Driver) -> None:
        message_id = await driver.send()
        for attempt, gap in ((1, 30 * SECOND), (2, 120 * SECOND)):
            claim = await driver.attempt()
            assert claim.attempt == attempt
            assert (await driver.nack(claim, FailureClass.RETRYABLE)).status == "failed"
            message = await driver.message(message_id)
            assert (message.place, message.status) == (Place.SCHEDULED, Status.FAILED)
            assert (message.due, message.wait_reason) == (driver.now + gap, Waiting.DELAY)
            driver.now += gap - 1
            assert await driver.settle_down() == []
            driver.now += 2
        claim = await driver.attempt()
        assert (await driver.nack(claim, FailureClass.RETRYABLE)).status == "dead"
        message = await driver.message(message_id)
        assert (message.place, message.attempts, message.failures) == (Place.DEAD, 3, 3)
        assert message.error == "retryable"
        assert [m.id for m in (await driver.store.messages.dead_page(10, None)).items] == [message_id]

    @pytest.mark.parametrize("kind", [FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED])
    async def test_some_failures_are_final_at_once(self, driver: Driver, kind: FailureClass) -> None:
        await driver.send()
        claim = await driver.attempt()
        assert (await driver.nack(claim, kind)).status == "dead"
        message = await driver.message(claim.message_id)
        assert (message.place, message.error) == (Place.DEAD, kind.value)

    async def test_silence_three_times_ends_unconfirmed_beside_the_dead_letters(self, driver: Driver) -> None:
        message_id = await driver.send()
        for _ in range(3):
            claim = await driver.attempt()
            assert claim.message_id == message_id
            driver.now = claim.lease_until
            await driver.settle_down()
            driver.now += HOUR
        message = await driver.message(message_id)
        assert (message.status, message.place) == (Status.UNCONFIRMED, Place.DEAD)
        assert (message.error, message.attempts) == ("lease_expired", 3)
        assert await driver.settle_down() == []

    async def test_one_attempt_of_unknown_outcome_makes_the_end_unconfirmed(self, driver: Driver) -> None:
        await driver.send()
        for kind in (FailureClass.UNCONFIRMED, FailureClass.RETRYABLE):
            await driver.nack(await driver.attempt(), kind)
            driver.now += HOUR
        assert (await driver.nack(await driver.attempt(), FailureClass.RETRYABLE)).status == "unconfirmed"

    async def test_only_the_current_attempt_can_fail(self, driver: Driver) -> None:
        await driver.send()
        first = await driver.attempt()
        await driver.nack(first, FailureClass.RETRYABLE)
        assert not (await driver.nack(first, FailureClass.RETRYABLE)).changed
        driver.now += HOUR
        assert not (await driver.nack(first, FailureClass.RETRYABLE)).changed
        second = await driver.attempt()
        assert not (await driver.nack(first, FailureClass.NOT_ON_WHATSAPP)).changed
        message = await driver.message(second.message_id)
        assert (message.place, message.attempts, message.failures) == (Place.CLAIMED, 2, 1)

    async def test_of_two_reports_of_one_failure_one_counts(self, driver: Driver) -> None:
        """The lease runs out while the worker's nack is on its way; both were decided from the same message."""
        await driver.send()
        claim = await driver.attempt()
        outcome = decide(driver.retry, FailureClass.RETRYABLE, 0, False, driver.now)
        settled = [
            await driver.store.outbox.fail(
                PHONE, claim.message_id, 1, 0, FailureClass.RETRYABLE, "x", outcome, driver.now
            )
            for _ in range(2)
        ]
        assert [s.changed for s in settled] == [True, False]
        assert (await driver.message(claim.message_id)).failures == 1

    async def test_the_worker_of_another_account_can_not_fail_it(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        outcome = decide(driver.retry, FailureClass.RATE_LIMITED, 0, False, driver.now)
        for phone, message_id in ((OTHER, claim.message_id), (PHONE, "f" * 18)):
            settled = await driver.store.outbox.fail(
                phone, message_id, 1, 0, FailureClass.RATE_LIMITED, "x", outcome, driver.now
            )
            assert not settled.known
        assert (await driver.message(claim.message_id)).place is Place.CLAIMED
        assert (await driver.view(OTHER)).account.paused_until == 0

    async def test_too_fast_pauses_the_account_for_half_an_hour_and_keeps_the_order(self, driver: Driver) -> None:
        first, second = await driver.send(), await driver.send()
        claim = await driver.attempt()
        assert (await driver.nack(claim, FailureClass.RATE_LIMITED)).status == "queued"
        assert await driver.queue(PHONE) == [first, second]
        assert (await driver.message(first)).failures == 0
        until = driver.now + 30 * MINUTE
        assert (await driver.view(PHONE)).account.paused_until == until
        [event] = await driver.events("account.paused")
        assert (event["account"], event["until"]) == (PHONE, str(until))
        assert event["reason"] == "rate_limited"
        driver.now = until - 1
        assert await driver.settle_down() == []
        driver.now = until
        assert await driver.hand_over() == first

    async def test_every_session_of_the_account_is_told_why_it_pauses(self, driver: Driver) -> None:
        await driver.link("c", PHONE)
        await driver.send()
        await driver.nack(await driver.attempt(), FailureClass.RATE_LIMITED)
        assert hold_reason((await driver.view(PHONE)).account, driver.now) == "rate_limited"
        assert {one["sessionId"] for one in await driver.events("session.paused")} == {"a", "c"}
        for session in ("a", "c"):
            [(_, newest)] = await driver.store.sessions.events(session, 1, None)
            assert (newest["type"], newest["reason"]) == ("session.paused", "rate_limited")
        driver.now += 30 * MINUTE
        assert hold_reason((await driver.view(PHONE)).account, driver.now) is None

    async def test_a_pause_that_a_person_asks_for_later_is_that_persons(self, driver: Driver) -> None:
        await driver.send()
        await driver.nack(await driver.attempt(), FailureClass.RATE_LIMITED)
        await driver.store.accounts.pause(PHONE, None, driver.now)
        assert hold_reason((await driver.view(PHONE)).account, driver.now) == "by_request"

    async def test_a_hold_is_applied_once_for_each_attempt_that_was_told(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        await driver.store.accounts.resume(PHONE, driver.now)
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        assert (await driver.view(PHONE)).account.paused_until == 0
        again = await driver.attempt()
        await driver.nack(again, FailureClass.RATE_LIMITED)
        assert (await driver.view(PHONE)).account.paused_until == driver.now + 30 * MINUTE

    async def test_a_hold_counts_even_if_the_attempt_is_over(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        driver.now = claim.lease_until
        await driver.settle_down()
        assert not (await driver.nack(claim, FailureClass.RESTRICTED)).changed
        assert (await driver.view(PHONE)).account.restricted_until == FOREVER

    async def test_an_attempt_that_never_was_holds_nothing(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        outcome = decide(driver.retry, FailureClass.RATE_LIMITED, 0, False, driver.now)
        await driver.store.outbox.fail(
            PHONE, claim.message_id, 99, 0, FailureClass.RATE_LIMITED, "x", outcome, driver.now
        )
        assert (await driver.view(PHONE)).account.paused_until == 0
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        assert (await driver.view(PHONE)).account.paused_until == driver.now + 30 * MINUTE

    async def test_a_restriction_lasts_as_long_as_whatsapp_says(self, driver: Driver) -> None:
        first = await driver.send()
        claim = await driver.attempt()
        until = driver.now + 2 * DAY
        assert (await driver.nack(claim, FailureClass.RESTRICTED, until)).status == "queued"
        assert (await driver.view(PHONE)).account.restricted_until == until
        [event] = await driver.events("account.restricted")
        assert event["until"] == str(until)
        driver.now = until - 1
        assert await driver.settle_down() == []
        driver.now = until
        assert await driver.hand_over() == first

    async def test_a_restriction_without_an_end_lasts_until_a_person_resumes(self, driver: Driver) -> None:
        first = await driver.send()
        await driver.nack(await driver.attempt(), FailureClass.RESTRICTED)
        driver.now += 300 * DAY
        assert await driver.settle_down() == []
        await driver.store.accounts.resume(PHONE, driver.now)
        assert await driver.hand_over() == first

    async def test_a_longer_hold_is_never_cut_short(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        until = driver.now + DAY
        await driver.store.accounts.pause(PHONE, until, driver.now)
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        account = (await driver.view(PHONE)).account
        assert (account.paused_until, hold_reason(account, driver.now)) == (until, "by_request")

    async def test_a_pause_without_end_is_never_cut_short(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.store.accounts.pause(PHONE, None, driver.now)
        await driver.nack(claim, FailureClass.RATE_LIMITED)
        assert (await driver.view(PHONE)).account.paused_until == FOREVER

    async def test_a_retry_is_sent_before_those_that_came_later(self, driver: Driver) -> None:
        first, second = await driver.send(), await driver.send()
        await driver.nack(await driver.attempt(), FailureClass.RETRYABLE)
        driver.now += HOUR
        assert await driver.hand_over() == first
        assert await driver.queue(PHONE) == [second]
