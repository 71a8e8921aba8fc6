"""The loop: take what is due, plan it, commit it, sleep until the next due moment or a wake-up.

Any number of dispatchers may run; what one has taken, the others leave alone until its lease ends.
"""

import asyncio
from dataclasses import dataclass
from random import Random

import structlog

from switchboard.dispatcher.router import route_jobs
from switchboard.domain.accounts import InFlight
from switchboard.domain.clock import Clock
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.pacing import Expire, HandOver, Policy, plan, spare
from switchboard.domain.retry import FailureClass, RetryRules, decide
from switchboard.store import Store
from switchboard.store.pace import Planned
from switchboard.store.views import AccountView

_log = structlog.get_logger(__name__)
_AWAY_S = (0.1, 0.2, 0.5, 1.0, 2.0)
_LONGEST_SLEEP_S = 3600.0
AT_ONCE = 200
BREATH_S = 0.004
"""Between two busy rounds, so that what falls due meanwhile is planned together and not one by one."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did. `next_at` is exact only after a round that did nothing."""

    visited: int
    handed: tuple[HandOver, ...]
    released: int
    next_at: int | None

    @property
    def full(self) -> bool:
        """There is more that is due than one round takes."""
        return max(self.visited, self.released) >= AT_ONCE

    @property
    def busy(self) -> bool:
        return self.visited > 0 or self.released > 0


class Dispatcher:
    def __init__(self, store: Store, policy: Policy, retry: RetryRules, clock: Clock, random: Random) -> None:
        self._store = store
        self._policy = policy
        self._retry = retry
        self._clock = clock
        self._random = random

    async def run(self) -> None:
        """Serve until cancelled. A store that goes away is waited for."""
        failures = 0
        async with (
            self._store.wakeups.listen("dispatch") as due,
            self._store.wakeups.listen("jobs") as jobs,
        ):
            jobs.set()
            while True:
                try:
                    await self._serve(due, jobs)
                    failures = 0
                except StoreUnavailable:
                    if failures == 0:
                        _log.warning("dispatcher.store_away")
                    await asyncio.sleep(_AWAY_S[min(failures, len(_AWAY_S) - 1)])
                    failures += 1
                    jobs.set()

    async def _serve(self, due: asyncio.Event, jobs: asyncio.Event) -> None:
        due.clear()
        if jobs.is_set():
            jobs.clear()
            while await route_jobs(self._store, self._policy, self._clock()):
                pass
        done = await self.round(self._clock())
        if done.busy:
            await asyncio.sleep(0 if done.full else BREATH_S)
        else:
            await self._sleep_until(done.next_at, due, jobs)

    async def _sleep_until(self, moment: int | None, *events: asyncio.Event) -> None:
        seconds = _LONGEST_SLEEP_S if moment is None else (moment - self._clock()) / 1000
        if seconds <= 0:
            return
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, timeout=min(seconds, _LONGEST_SLEEP_S), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def round(self, now: int) -> Round:
        """Take, plan and commit once, as of `now`."""
        due = await self._store.pace.take(now, AT_ONCE)
        plans: list[Planned] = []
        for view in due.accounts:
            planned = self._plan(view, now)
            if isinstance(planned.plan, Expire):
                await self._expire(view, planned.plan.in_flight, now)
            else:
                plans.append(planned)
        handed: list[HandOver] = []
        if plans:
            outcomes = await self._store.pace.commit(plans, now)
            for planned, outcome in zip(plans, outcomes, strict=True):
                if outcome == "OK" and isinstance(planned.plan, HandOver):
                    handed.append(planned.plan)
        return Round(len(due.accounts), tuple(handed), due.released, due.next_at)

    def _plan(self, view: AccountView, now: int) -> Planned:
        account = view.account
        return Planned(
            view=view,
            plan=plan(self._policy, account, view.in_flight, view.head, now, self._random),
            spare=spare(self._policy, account, now),
            burst=self._policy.burst_threshold(account.profile, now),
        )

    async def _expire(self, view: AccountView, flight: InFlight, now: int) -> None:
        """A worker claimed it and was never heard of again: nobody knows whether it was sent."""
        outcome = decide(self._retry, FailureClass.UNCONFIRMED, flight.failures, flight.unknown, now)
        await self._store.outbox.fail(
            view.account.profile.phone,
            flight.message_id,
            flight.attempts,
            flight.failures,
            FailureClass.UNCONFIRMED,
            "lease_expired",
            outcome,
            now,
        )
        _log.info("message.lease_expired", message_id=flight.message_id, status=outcome.status.value)
