"""A fleet on a virtual clock, over the real store and the real dispatcher: accounts, customers and workers.

Beside it a ledger says what should have become of every message, and a referee judges every hand-over.
"""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from zoneinfo import ZoneInfo

from switchboard.dispatcher.dispatcher import Dispatcher
from switchboard.dispatcher.router import route_jobs
from switchboard.domain.accounts import Profile
from switchboard.domain.pacing import Policy
from switchboard.domain.retry import RetryRules
from switchboard.domain.trust import Overrides
from switchboard.store import Store
from switchboard.store.intake import Accepted, Entry, Refusal, Refused, Stale
from tests.support.ledger import ENDED, Event, Ledger, Parcel
from tests.support.referee import MINUTE, Books, Letter, Referee, local
from tests.support.virtual_workers import Workers

NEVER = 10**15
TAKEN_AT_MOST = 200


class Fleet:
    def __init__(self, store: Store, policy: Policy, seed: int, start: int, latest: int) -> None:
        """A round may come as late as `latest`."""
        self.store = store
        self.policy = policy
        self.latest = latest
        self.random = Random(seed)
        self.referee = Referee(latest)
        self.ledger = Ledger(seed, start, self.referee)
        self.workers = Workers(store, self.ledger, self.random)
        self.dispatcher = Dispatcher(store, policy, RetryRules(), lambda: self.now, self.random)
        self._profiles: dict[str, Profile] = {}
        self._orders: dict[str, list[Entry]] = defaultdict(list)
        self._looked_at = start
        self._jobs = 0
        self._route_at = 0

    @property
    def now(self) -> int:
        return self.ledger.now

    # The clock.

    async def run(self, until: int) -> None:
        while True:
            await self._happen()
            await self._route()
            upcoming = await self._dispatch()
            await self._happen()  # most workers claim at once
            if self.ledger.events:
                upcoming = min(upcoming, self.ledger.events[0][0])
            if self._jobs:
                upcoming = min(upcoming, max(self._route_at, self.now + 1))
            if upcoming > until:
                return
            late = self.random.choices((0, self.latest // 8, self.latest), (1, 1, 6))[0]
            self.ledger.now = max(upcoming, self.now + 1) + late

    async def _happen(self) -> None:
        by_account: dict[str, list[Event]] = defaultdict(list)
        while self.ledger.events and self.ledger.events[0][0] <= self.now:
            _, _, account, event = heapq.heappop(self.ledger.events)
            by_account[account].append(event)
        await asyncio.gather(*(_one_by_one(events) for events in by_account.values()))
        await self._order()

    async def _dispatch(self) -> int:
        self.workers.leases_run_out()
        while True:
            done = await self.dispatcher.round(self.now)
            for hand_over in done.handed:
                self.workers.handed(hand_over)
            # When all that was due has left, no second look is needed to know that.
            if len(done.handed) == done.visited < TAKEN_AT_MOST and not done.released:
                self._looked_at = self.now
                return done.next_at or NEVER

    async def _route(self) -> None:
        if self._jobs and self.now >= self._route_at:
            while moved := await route_jobs(self.store, self.policy, self.now):
                self._jobs -= moved
            self._route_at = self.now + 10 * MINUTE

    # Accounts.

    async def link(self, phone: str, sessions: Sequence[str], zone: str, born: int, own: Overrides) -> None:
        """Sessions are named after their phone: `<phone>-<n>`."""
        for session in sessions:
            await self.store.sessions.register(session, born)
            await self.store.sessions.connect(session, phone, born)
        books = Books(phone, ZoneInfo(zone), born, connected=set(sessions), free_since=self.now)
        self.referee.accounts[phone] = books
        await self.override(phone, own)

    async def override(self, phone: str, own: Overrides) -> None:
        books = self.referee.accounts[phone]
        await self.store.accounts.override(phone, own, books.zone.key, self.now)
        books.own = {
            name: value
            for name, value in (
                ("daily", own.daily),
                ("per_minute", own.per_minute),
                ("opens", own.hours.opens if own.hours else None),
                ("closes", own.hours.closes if own.hours else None),
            )
            if value is not None
        }
        books.free_since = self.now

    async def disconnect(self, phone: str, session: str) -> None:
        await self.store.sessions.disconnect(session, self.now)
        books = self.referee.accounts[phone]
        books.connected.discard(session)
        letter = books.in_flight
        if letter and not self.ledger.parcels[letter.id].claimed and self.ledger.parcels[letter.id].session == session:
            self.workers.given_back(letter.id)
        self.ledger.told["disconnections"] += 1

    async def connect(self, phone: str, session: str) -> None:
        await self.store.sessions.connect(session, phone, self.now)
        books = self.referee.accounts[phone]
        books.connected.add(session)
        books.free_since = self.now

    async def pause(self, phone: str, length: int) -> None:
        until = self.now + length
        await self.store.accounts.pause(phone, until, self.now)
        self.referee.accounts[phone].paused_until = until

    async def suppress(self, to: str) -> None:
        await self.store.suppressions.add(to)
        self.ledger.suppressed.add(to)

    # Customers.

    def order(self, phone: str | None, entry: Entry) -> None:
        """Goes out with all others of this moment, in one call."""
        self._orders[phone or ""].append(entry)

    async def _order(self) -> None:
        entries = [(phone, entry) for phone, many in self._orders.items() for entry in many]
        self._orders.clear()
        while entries:
            asked = [self._guarded(phone, entry) for phone, entry in entries]
            results = await self.store.intake.enqueue(asked, self.now)
            again: list[tuple[str, Entry]] = []
            for (phone, entry), result in zip(entries, results, strict=True):
                if isinstance(result, Stale):
                    self._profiles[phone] = result.profile
                    again.append((phone, entry))
                elif isinstance(result, Refused):
                    self._refused(phone, entry, result)
                else:
                    self._accepted(phone, entry, result)
            # A customer's requests keep their order: whoever has to ask again is not overtaken by itself.
            entries = again

    def _guarded(self, phone: str, entry: Entry) -> Entry:
        profile = self._profiles.get(phone)
        if not phone or profile is None:
            return entry
        return replace(
            entry,
            revision=profile.revision,
            daily=self.policy.limits(profile, self.now).daily,
            burst=self.policy.burst_threshold(profile, self.now),
        )

    def _refused(self, phone: str, entry: Entry, result: Refused) -> None:
        self.ledger.told[f"refused: {result.reason.value.lower()}"] += 1
        if result.reason is Refusal.OPTED_OUT:
            assert all(entry.rows[index].to in self.ledger.suppressed for index in result.rows)
            return
        assert result.reason is Refusal.DAILY_LIMIT, result
        books = self.referee.accounts[phone]
        today = local(self.now, books.zone).date()
        assert result.sent == books.days[today] >= books.figures(self.now).daily
        assert local(result.resets_at, books.zone).date() > today
        assert local(result.resets_at - 1, books.zone).date() == today

    def _accepted(self, phone: str, entry: Entry, result: Accepted) -> None:
        self.ledger.told["accepted"] += len(entry.rows)
        put_off = entry.deferrable and result.position is None and self._spent(phone)
        for row in entry.rows:
            self.ledger.serial += 1
            self.ledger.parcels[row.id] = Parcel()
            plain = bool(phone) and row.to not in self.referee.recipient_zones and not put_off
            self.referee.accepted(
                Letter(
                    row.id,
                    row.to,
                    row.priority,
                    self.now,
                    self._looked_at,
                    self.ledger.serial,
                    phone or None,
                    row.due or None,
                    entry.batch[0] if entry.batch else None,
                    in_order=plain,
                )
            )
        if not phone:
            self._jobs += len(entry.rows)

    def _spent(self, phone: str) -> bool:
        """The day's allowance is used up, so what may be deferred starts with the next day."""
        if not phone:
            return False
        books = self.referee.accounts[phone]
        return books.days[local(self.now, books.zone).date()] >= books.figures(self.now).daily

    async def cancel(self, ids: Sequence[str]) -> None:
        outcomes = await self.store.messages.cancel(ids, self.now, "cancelled by the customer")
        for message_id, outcome in zip(ids, outcomes, strict=True):
            parcel = self.ledger.parcels[message_id]
            left = parcel.status in ENDED or parcel.claimed
            if self.referee.letters[message_id].to in self.ledger.suppressed and outcome == "LEFT:cancelled":
                parcel.status = "cancelled"
                continue
            assert outcome.startswith("LEFT:") == left, f"{message_id} is {parcel}, cancel says {outcome}"
            if not left:
                self.workers.forget_lease(message_id)
                self.referee.cancelled(message_id, self.now)
                parcel.status = "cancelled"
                self.ledger.told["cancelled"] += 1

    async def cancel_batch(self, batch: str) -> None:
        await self.store.batches.mark_cancelled(batch, self.now)
        self.ledger.called_off.add(batch)
        await self.cancel(await self.store.batches.rows(batch, 0, 10_000))


async def _one_by_one(events: Sequence[Event]) -> None:
    for event in events:
        await event()
