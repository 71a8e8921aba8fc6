"""What is counted: a day's figures of session, account and fleet, and the totals of a batch."""

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.store.batches import Batch
from switchboard.store.stats import Day
from tests.support.driver import HOUR, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"
TODAY, TOMORROW = "2026-06-09", "2026-06-10"


@pytest.fixture(autouse=True)
async def linked(driver: Driver) -> None:
    await driver.link("a", PHONE)


async def figures(driver: Driver, scope: str = "fleet", date: str = TODAY) -> tuple[int, int, int, int]:
    [day] = await driver.store.stats.days(scope, [date])
    return day.sent, day.failed, day.delivered, day.read


async def batch_of(driver: Driver, count: int) -> list[str]:
    ids = await driver.send_batch("batch_1", [driver.row(due=driver.now) for _ in range(count)])
    driver.now += 1
    return ids


async def totals(driver: Driver) -> Batch:
    batch = await driver.store.batches.get("batch_1")
    assert batch is not None
    return batch


class TestDays:
    async def test_every_end_is_counted_for_the_session_its_account_and_the_fleet(self, driver: Driver) -> None:
        await driver.link("a2", PHONE)
        await driver.link("b", OTHER)
        for session, status in (
            ("a", Status.SENT),
            ("a2", Status.DELIVERED),
            ("b", Status.READ),
            ("b", Status.SENT),
        ):
            await driver.send(session)
            claim = await driver.attempt(session)
            await driver.confirm(claim.message_id, status, session)
        assert await figures(driver, "session:a") == (1, 0, 0, 0)
        assert await figures(driver, "session:a2") == (1, 0, 1, 0)
        assert await figures(driver, f"account:{PHONE}") == (2, 0, 1, 0)
        assert await figures(driver, f"account:{OTHER}") == (2, 0, 1, 1)
        assert await figures(driver) == (4, 0, 2, 1)

    async def test_a_retry_is_no_failure_and_a_dead_letter_is_one(self, driver: Driver) -> None:
        await driver.send()
        for expected in (0, 0, 1):
            await driver.nack(await driver.attempt(), FailureClass.RETRYABLE)
            assert await figures(driver) == (0, expected, 0, 0)
            driver.now += HOUR

    @pytest.mark.parametrize("discarded", [False, True])
    async def test_a_late_acknowledgement_turns_the_failure_into_a_success(
        self, driver: Driver, discarded: bool
    ) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.NOT_ON_WHATSAPP)
        assert await figures(driver, "session:a") == (0, 1, 0, 0)
        if discarded:
            await driver.store.messages.discard(claim.message_id, driver.now)
        driver.now += HOUR
        for _ in range(2):
            await driver.confirm(claim.message_id)
            for scope in ("session:a", f"account:{PHONE}", "fleet"):
                assert await figures(driver, scope) == (1, 0, 0, 0)
        [day] = await driver.store.stats.days("fleet", [TODAY])
        assert (day.hours[12]["sent"], day.hours[12]["failed"]) == (1, 0)

    async def test_a_day_and_an_hour_are_those_of_the_account_at_the_hand_over(self, driver: Driver) -> None:
        """23:30 in Auckland; the receipt comes after midnight there and belongs to the day it was sent on."""
        await driver.store.accounts.override(PHONE, UNHURRIED, "Pacific/Auckland", driver.now)
        driver.now -= HOUR // 2
        await driver.send()
        claim = await driver.attempt()
        driver.now += HOUR
        await driver.confirm(claim.message_id, Status.DELIVERED)
        [day, after] = await driver.store.stats.days("session:a", [TODAY, TOMORROW])
        assert (day.sent, day.delivered, after.sent) == (1, 1, 0)
        assert [hour for hour in range(24) if day.hours[hour]["sent"]] == [23]

    async def test_the_average_delivery_time_is_from_sent_to_delivered(self, driver: Driver) -> None:
        for seconds in (2, 4):
            await driver.send()
            claim = await driver.attempt()
            await driver.confirm(claim.message_id)
            driver.now += seconds * 1000
            await driver.confirm(claim.message_id, Status.DELIVERED)
        [day] = await driver.store.stats.days("fleet", [TODAY])
        assert day.avg_delivery_ms == 3000

    async def test_a_day_without_messages_is_all_zero(self, driver: Driver) -> None:
        [day] = await driver.store.stats.days("fleet", ["2020-01-01"])
        none = {"sent": 0, "failed": 0, "delivered": 0, "read": 0}
        assert day == Day("2020-01-01", 0, 0, 0, 0, None, (none,) * 24)

    async def test_figures_are_kept_for_90_days(self, driver: Driver) -> None:
        await driver.send()
        await driver.confirm((await driver.attempt()).message_id)
        life = await driver.client.ttl(driver.prefix + f"stats:fleet:{TODAY}")
        assert 90 * 86_400 - 60 < life <= 90 * 86_400

    async def test_what_was_cancelled_or_recalled_counts_nowhere(self, driver: Driver) -> None:
        message_id = await driver.send()
        await driver.settle_down()
        driver.now += HOUR
        await driver.settle_down()
        await driver.store.messages.cancel([message_id], driver.now, "test")
        assert await driver.client.keys(driver.prefix + "stats:*") == []


class TestBatches:
    async def test_each_row_ends_in_one_total(self, driver: Driver) -> None:
        ids = await batch_of(driver, 6)
        for status in (Status.SENT, Status.DELIVERED, Status.READ):
            await driver.confirm((await driver.attempt()).message_id, status)
        await driver.nack(await driver.attempt(), FailureClass.REFUSED)
        await driver.store.messages.cancel(ids[4:5], driver.now, "test")
        batch = await totals(driver)
        assert (batch.sent, batch.delivered, batch.read) == (3, 2, 1)
        assert (batch.dead, batch.cancelled, batch.unconfirmed) == (1, 1, 0)
        assert (batch.total, batch.waiting) == (6, 1)

    async def test_silence_is_its_own_end_and_a_late_acknowledgement_corrects_it(self, driver: Driver) -> None:
        [message_id] = await batch_of(driver, 1)
        for _ in range(3):
            await driver.attempt()
            driver.now += HOUR
            await driver.settle_down()
            driver.now += HOUR
        batch = await totals(driver)
        assert (batch.unconfirmed, batch.sent, batch.waiting) == (1, 0, 0)
        await driver.confirm(message_id)
        batch = await totals(driver)
        assert (batch.unconfirmed, batch.sent, batch.waiting) == (0, 1, 0)

    async def test_a_cancelled_row_that_arrived_after_all_counts_as_sent(self, driver: Driver) -> None:
        [message_id] = await batch_of(driver, 1)
        await driver.nack(await driver.attempt(), FailureClass.UNCONFIRMED)
        await driver.store.messages.cancel([message_id], driver.now, "test")
        assert (await totals(driver)).cancelled == 1
        await driver.confirm(message_id)
        batch = await totals(driver)
        assert (batch.cancelled, batch.sent, batch.waiting) == (0, 1, 0)

    async def test_a_redriven_row_waits_again_and_a_discarded_one_stays_dead(self, driver: Driver) -> None:
        ids = await batch_of(driver, 2)
        for _ in ids:
            await driver.nack(await driver.attempt(), FailureClass.REFUSED)
        await driver.store.messages.redrive(ids[0], driver.now)
        await driver.store.messages.discard(ids[1], driver.now)
        batch = await totals(driver)
        assert (batch.dead, batch.waiting) == (1, 1)

    async def test_a_row_for_someone_who_opted_out_counts_as_cancelled(self, driver: Driver) -> None:
        person = driver.someone()
        await driver.send_batch("batch_1", [driver.row(person, due=driver.now), driver.row(due=driver.now)])
        await driver.store.suppressions.add(person)
        driver.now += 1
        await driver.settle_down()
        assert (await totals(driver)).cancelled == 1

    async def test_there_is_no_batch_nobody_sent(self, driver: Driver) -> None:
        await driver.store.batches.mark_cancelled("batch_2", driver.now)
        assert await driver.store.batches.get("batch_2") is None
        assert await driver.store.batches.rows("batch_2", 0, 10) == []

    async def test_a_batch_is_forgotten_with_its_messages_and_not_before_the_last_has_ended(
        self, driver: Driver
    ) -> None:
        async def lives() -> list[int]:
            keys = ("batch:batch_1", "batch:rows:batch_1")
            return [await driver.client.ttl(driver.prefix + key) for key in keys]

        ids = await batch_of(driver, 2)
        await driver.confirm((await driver.attempt()).message_id)
        assert await lives() == [-1, -1]
        await driver.nack(await driver.attempt(), FailureClass.REFUSED)
        assert await lives() == [-1, -1]
        await driver.store.messages.discard(ids[1], driver.now)
        month = 30 * 86_400
        assert all(month - 60 < life <= month for life in await lives())
