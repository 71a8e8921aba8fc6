"""What people and sessions change: cancel, redrive, discard, connect, disconnect, pause, resume, override."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.accounts import FOREVER
from switchboard.domain.errors import SessionNotFound, SessionNotLinked
from switchboard.domain.hours import Hours, local
from switchboard.domain.messages import Place, Status
from switchboard.domain.retry import FailureClass
from switchboard.domain.sessions import State
from switchboard.domain.trust import Overrides
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
OTHER = "972500000002"


@pytest.fixture(autouse=True)
async def linked(driver: Driver) -> None:
    await driver.link("a", PHONE)


async def bury(driver: Driver, to: str | None = None, kind: FailureClass = FailureClass.REFUSED) -> str:
    await driver.send(to=to)
    claim = await driver.attempt()
    await driver.nack(claim, kind)
    return claim.message_id


class TestCancel:
    async def cancel(self, driver: Driver, message_id: str, phone: str = "") -> str:
        [outcome] = await driver.store.messages.cancel([message_id], driver.now, "cancelled by hand", phone)
        return outcome

    async def gone(self, driver: Driver, message_id: str) -> None:
        message = await driver.message(message_id)
        assert (message.status, message.place) == (Status.CANCELLED, Place.DONE)
        assert message.error == "cancelled by hand"
        assert await self.cancel(driver, message_id) == "LEFT:cancelled"
        [event] = await driver.events("message.cancelled")
        assert event["messageId"] == message_id

    async def test_what_waits_in_the_queue(self, driver: Driver) -> None:
        message_id, other = await driver.send(), await driver.send()
        assert await self.cancel(driver, message_id) == "OK"
        await self.gone(driver, message_id)
        assert await driver.queue(PHONE) == [other]

    async def test_what_is_scheduled(self, driver: Driver) -> None:
        message_id = await driver.send(due=driver.now + HOUR)
        assert await self.cancel(driver, message_id) == "OK"
        await self.gone(driver, message_id)
        driver.now += DAY
        assert await driver.settle_down() == []

    async def test_what_waits_for_a_sender(self, driver: Driver) -> None:
        message_id = await driver.send(session=None)
        assert await self.cancel(driver, message_id) == "OK"
        await self.gone(driver, message_id)
        assert await driver.route() == 0

    async def test_what_was_handed_over_and_not_claimed_and_it_is_not_counted(self, driver: Driver) -> None:
        person = driver.someone()
        message_id = await driver.send(to=person)
        await driver.settle_down()
        assert await self.cancel(driver, message_id) == "OK"
        await self.gone(driver, message_id)
        assert await driver.claim() is None
        view = await driver.view(PHONE)
        assert (view.in_flight, view.account.day_count, view.account.recent) == (None, 0, ())
        assert await driver.client.hget(driver.prefix + f"recipient:{person}", "count") == "0"

    async def test_what_waits_for_its_next_attempt(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.nack(claim, FailureClass.RETRYABLE)
        assert await self.cancel(driver, claim.message_id) == "OK"
        await self.gone(driver, claim.message_id)

    async def test_not_what_a_worker_has_in_hand(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        assert await self.cancel(driver, claim.message_id) == "LEFT:sending"
        assert (await driver.confirm(claim.message_id)).changed
        assert await self.cancel(driver, claim.message_id) == "LEFT:sent"

    async def test_not_a_dead_letter(self, driver: Driver) -> None:
        assert await self.cancel(driver, await bury(driver)) == "LEFT:dead"

    async def test_not_what_is_unknown_or_of_another_account(self, driver: Driver) -> None:
        await driver.link("b", OTHER)
        message_id = await driver.send("b")
        assert await self.cancel(driver, "f" * 18) == "UNKNOWN"
        assert await self.cancel(driver, message_id, phone=PHONE) == "UNKNOWN"
        assert await self.cancel(driver, message_id, phone=OTHER) == "OK"

    async def test_many_at_once_each_with_its_own_outcome(self, driver: Driver) -> None:
        ids = [await driver.send() for _ in range(3)]
        claim = await driver.attempt()
        outcomes = await driver.store.messages.cancel([*ids, "f" * 18], driver.now, "test")
        assert claim.message_id == ids[0]
        assert outcomes == ["LEFT:sending", "OK", "OK", "UNKNOWN"]


class TestDeadLetters:
    async def test_a_redriven_message_is_tried_anew_at_the_end_of_the_queue(self, driver: Driver) -> None:
        message_id = await bury(driver)
        waiting = await driver.send()
        assert await driver.store.messages.redrive(message_id, driver.now) == ("OK", "queued")
        assert await driver.queue(PHONE) == [waiting, message_id]
        message = await driver.message(message_id)
        assert (message.status, message.failures, message.error) == (Status.QUEUED, 0, None)
        await driver.confirm((await driver.attempt()).message_id)
        again = await driver.attempt()
        assert (again.message_id, again.attempt) == (message_id, 2)
        assert (await driver.nack(again, FailureClass.RETRYABLE)).status == "failed"

    async def test_a_discarded_message_stays_dead_and_is_listed_no_more(self, driver: Driver) -> None:
        message_id = await bury(driver)
        assert await driver.store.messages.discard(message_id, driver.now) == ("OK", "dead")
        message = await driver.message(message_id)
        assert (message.status, message.place) == (Status.DEAD, Place.DONE)
        assert (await driver.store.messages.dead_page(10, None)).items == []
        assert await driver.store.messages.redrive(message_id, driver.now) == ("NOT_DEAD", "dead")

    async def test_only_dead_letters_can_be_decided_on(self, driver: Driver) -> None:
        message_id = await driver.send()
        for decide in (driver.store.messages.redrive, driver.store.messages.discard):
            assert await decide(message_id, driver.now) == ("NOT_DEAD", "queued")
            assert (await decide("f" * 18, driver.now))[0] == "UNKNOWN"

    async def test_someone_who_opted_out_is_not_written_to_again(self, driver: Driver) -> None:
        person = driver.someone()
        message_id = await bury(driver, to=person)
        await driver.store.suppressions.add(person)
        assert (await driver.store.messages.redrive(message_id, driver.now))[0] == "OPTED_OUT"
        assert (await driver.message(message_id)).place is Place.DEAD

    async def test_a_redrive_needs_room_like_any_other_message(self, driver: Driver) -> None:
        message_id = await bury(driver)
        ids = [await driver.send() for _ in range(1000)]
        assert (await driver.store.messages.redrive(message_id, driver.now))[0] == "QUEUE_FULL"
        await driver.store.messages.cancel(ids[:1], driver.now, "test")
        assert (await driver.store.messages.redrive(message_id, driver.now))[0] == "OK"

    async def test_pages_show_each_dead_letter_once_also_many_of_one_moment(self, driver: Driver) -> None:
        ids = {await bury(driver) for _ in range(150)}
        for limit in (3, 50):
            shown: list[str] = []
            cursor = None
            while True:
                page = await driver.store.messages.dead_page(limit, cursor)
                shown += [message.id for message in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(shown) == 150
            assert set(shown) == ids


class TestQueuePages:
    async def test_a_cursor_holds_while_messages_come_and_go(self, driver: Driver) -> None:
        ids = [await driver.send() for _ in range(7)]
        first = await driver.store.messages.queue_page(PHONE, 3, None)
        await driver.store.messages.cancel([ids[1], ids[4]], driver.now, "test")
        await driver.send(priority=3)
        second = await driver.store.messages.queue_page(PHONE, 3, first.next_cursor)
        assert [m.id for m in first.items] == ids[:3]
        assert [m.id for m in second.items] == [ids[3], ids[5], ids[6]]
        assert second.next_cursor is None

    async def test_an_exact_page_has_no_next_one(self, driver: Driver) -> None:
        for _ in range(3):
            await driver.send()
        assert (await driver.store.messages.queue_page(PHONE, 3, None)).next_cursor is None


class TestSessions:
    async def test_the_first_connection_is_the_birth_of_the_account_and_stays_it(self, driver: Driver) -> None:
        born = driver.now
        driver.now += DAY
        await driver.store.sessions.disconnect("a", driver.now)
        await driver.store.sessions.connect("a", PHONE, driver.now)
        await driver.link("a2", PHONE, limits=None)
        profile = (await driver.view(PHONE)).account.profile
        assert profile.first_connected_at == born

    async def test_an_unknown_session_can_not_connect_or_disconnect(self, driver: Driver) -> None:
        with pytest.raises(SessionNotFound):
            await driver.store.sessions.connect("nobody", OTHER, driver.now)
        with pytest.raises(SessionNotFound):
            await driver.store.sessions.disconnect("nobody", driver.now)
        with pytest.raises(SessionNotFound):
            await driver.store.accounts.look(now=driver.now, phone=OTHER)

    async def test_a_session_that_was_never_scanned_has_no_account(self, driver: Driver) -> None:
        await driver.store.sessions.register("new", driver.now)
        with pytest.raises(SessionNotLinked):
            await driver.store.accounts.look(now=driver.now, session="new")
        await driver.store.sessions.disconnect("new", driver.now, State.STOPPED)
        session = await driver.store.sessions.get("new")
        assert session is not None
        assert (session.state, session.phone) == ("stopped", None)

    async def test_registering_again_changes_nothing(self, driver: Driver) -> None:
        await driver.store.sessions.register("a", driver.now)
        session = await driver.store.sessions.get("a")
        assert session is not None
        assert (session.state, session.phone) == ("connected", PHONE)

    async def test_what_a_lost_session_had_not_claimed_goes_back_uncounted_and_in_order(self, driver: Driver) -> None:
        person = driver.someone()
        first, second = await driver.send(to=person), await driver.send()
        assert await driver.hand_over() == first
        await driver.store.sessions.disconnect("a", driver.now, reason="network")
        assert await driver.queue(PHONE) == [first, second]
        account = (await driver.view(PHONE)).account
        assert (account.day_count, account.recent, account.connected) == (0, (), ())
        assert await driver.client.hget(driver.prefix + f"recipient:{person}", "count") == "0"
        assert await driver.settle_down() == []
        await driver.store.sessions.connect("a", PHONE, driver.now)
        assert await driver.hand_over() == first
        assert [e["reason"] for e in await driver.events("session.disconnected")] == ["network"]

    async def test_what_a_lost_session_had_claimed_may_still_be_acknowledged(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.store.sessions.disconnect("a", driver.now)
        assert (await driver.message(claim.message_id)).place is Place.CLAIMED
        assert (await driver.confirm(claim.message_id)).changed

    async def test_what_a_lost_session_never_acknowledges_is_tried_again_by_another(self, driver: Driver) -> None:
        await driver.link("a2", PHONE)
        await driver.send("a")
        claim = await driver.attempt("a")
        await driver.store.sessions.disconnect("a", driver.now)
        driver.now = claim.lease_until
        await driver.settle_down()
        driver.now += MINUTE
        again = await driver.attempt("a2")
        assert (again.message_id, again.attempt) == (claim.message_id, 2)

    async def test_nothing_is_handed_to_a_disconnected_account(self, driver: Driver) -> None:
        await driver.store.sessions.disconnect("a", driver.now)
        ids = [await driver.send() for _ in range(3)]
        driver.now += 30 * DAY
        assert await driver.settle_down() == []
        assert await driver.queue(PHONE) == ids

    async def test_a_second_connected_message_disturbs_nothing_in_flight(self, driver: Driver) -> None:
        await driver.send()
        await driver.settle_down()
        await driver.store.sessions.connect("a", PHONE, driver.now)
        await driver.settle_down()
        claim = await driver.claimed()
        await driver.store.sessions.connect("a", PHONE, driver.now)
        await driver.settle_down()
        assert (await driver.confirm(claim.message_id)).changed

    async def test_a_session_linked_to_another_phone_leaves_what_it_was_handed_behind(self, driver: Driver) -> None:
        """The old account's message goes back to the old account's queue, uncounted."""
        message_id = await driver.send()
        await driver.settle_down()
        await driver.relink("a", OTHER)
        assert await driver.queue(PHONE) == [message_id]
        assert await driver.claim("a") is None
        view = await driver.view(PHONE)
        assert (view.in_flight, view.account.day_count, view.account.connected) == (None, 0, ())
        driver.now += DAY
        assert await driver.settle_down() == []
        await driver.link("b", PHONE)
        assert await driver.hand_over("b") == message_id

    async def test_a_linked_session_does_not_turn_up_under_another_phone(self, driver: Driver) -> None:
        """A worker that says so lies, or mixes something up: a new link begins with a log-out."""
        turned = await driver.store.sessions.connect("a", OTHER, driver.now)
        assert turned.outcome == "OTHER_PHONE"
        assert (await driver.view(PHONE)).account.connected == ()
        with pytest.raises(SessionNotFound):
            await driver.view(OTHER)

    async def test_a_session_linked_to_another_phone_can_not_settle_for_the_old_one(self, driver: Driver) -> None:
        await driver.send()
        claim = await driver.attempt()
        await driver.relink("a", OTHER)
        assert not (await driver.confirm(claim.message_id)).known
        assert await driver.claim("a") is None
        driver.now = claim.lease_until
        await driver.settle_down()
        assert (await driver.message(claim.message_id)).status is Status.FAILED


class TestZones:
    async def test_a_new_zone_brings_no_second_allowance(self, driver: Driver) -> None:
        """Tokyo's day is nearly over when the account moves to Los Angeles, where it has just begun."""
        limits = replace(UNHURRIED, daily=1)
        await driver.store.accounts.override(PHONE, limits, "Asia/Tokyo", driver.now)
        await driver.send()
        await driver.send()
        claim = await driver.attempt()
        await driver.confirm(claim.message_id)
        await driver.store.accounts.override(PHONE, limits, "America/Los_Angeles", driver.now)
        driver.now = (await driver.view(PHONE)).account.day_ends_at - 1
        assert local(driver.now, ZoneInfo("America/Los_Angeles")).strftime("%H:%M") == "23:59"
        assert await driver.settle_down() == []
        driver.now += 1
        assert len(await driver.settle_down()) == 1


class TestHolds:
    async def test_a_paused_account_waits_until_the_pause_ends(self, driver: Driver) -> None:
        await driver.send()
        await driver.store.accounts.pause(PHONE, driver.now + HOUR, driver.now)
        assert await driver.settle_down() == []
        assert (await driver.round()).next_at == driver.now + HOUR
        driver.now += HOUR
        assert len(await driver.settle_down()) == 1

    async def test_a_pause_without_end_waits_for_a_person(self, driver: Driver) -> None:
        await driver.send()
        await driver.store.accounts.pause(PHONE, None, driver.now)
        assert (await driver.view(PHONE)).account.paused_until == FOREVER
        driver.now += 300 * DAY
        assert await driver.settle_down() == []
        await driver.store.accounts.resume(PHONE, driver.now)
        assert len(await driver.settle_down()) == 1

    async def test_a_pause_leaves_what_is_in_flight_alone(self, driver: Driver) -> None:
        await driver.send()
        await driver.send()
        claim = await driver.attempt()
        await driver.store.accounts.pause(PHONE, None, driver.now)
        assert (await driver.confirm(claim.message_id)).changed
        assert await driver.settle_down() == []

    async def test_an_account_that_does_not_exist_can_not_be_changed(self, driver: Driver) -> None:
        accounts = driver.store.accounts
        for change in (
            accounts.pause(OTHER, None, driver.now),
            accounts.resume(OTHER, driver.now),
            accounts.override(OTHER, Overrides(daily=1), None, driver.now),
        ):
            with pytest.raises(SessionNotFound):
                await change
        assert await driver.client.exists(driver.prefix + f"account:{OTHER}") == 0


class TestOverrides:
    async def test_figures_and_zone_are_kept_and_the_rest_stays_the_table_s(self, driver: Driver) -> None:
        given = Overrides(daily=7, hours=Hours.parse("22:00-06:00"))
        await driver.store.accounts.override(PHONE, given, "Asia/Jerusalem", driver.now)
        profile = (await driver.view(PHONE)).account.profile
        assert (profile.overrides, profile.zone.key) == (given, "Asia/Jerusalem")
        limits = driver.policy.limits(profile, driver.now)
        assert (limits.daily, limits.per_minute, limits.base_delay_ms) == (7, 5, 5_000)

    async def test_no_overrides_are_the_table_again(self, driver: Driver) -> None:
        await driver.store.accounts.override(PHONE, Overrides(), None, driver.now)
        profile = (await driver.view(PHONE)).account.profile
        assert (profile.overrides, profile.zone.key) == (Overrides(), "UTC")
        assert driver.policy.limits(profile, driver.now).daily == 20

    async def test_an_account_is_planned_anew_at_once(self, driver: Driver) -> None:
        await driver.store.accounts.override(
            PHONE, replace(UNHURRIED, hours=Hours.parse("13:00-14:00")), None, driver.now
        )
        await driver.send()
        assert await driver.settle_down() == []
        await driver.store.accounts.override(PHONE, UNHURRIED, None, driver.now)
        assert len(await driver.settle_down()) == 1

    async def test_a_lowered_minute_cap_counts_what_was_sent_before(self, driver: Driver) -> None:
        for _ in range(4):
            await driver.send()
            await driver.confirm((await driver.attempt()).message_id)
        await driver.store.accounts.override(PHONE, replace(UNHURRIED, per_minute=3), None, driver.now)
        await driver.send()
        assert await driver.settle_down() == []
        assert (await driver.round()).next_at == driver.now + MINUTE
