"""Writes down the fleet's figures once a minute, for the charts over time."""

import asyncio
from collections.abc import Callable

import structlog

from switchboard.domain.clock import Clock
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.hours import MINUTE_MS
from switchboard.orchestrator.overview import Overview
from switchboard.store import Store

_log = structlog.get_logger(__name__)


class Sampler:
    def __init__(
        self, store: Store, overview: Overview, clock: Clock, leads: Callable[[], bool] = lambda: True
    ) -> None:
        self._store = store
        self._overview = overview
        self._clock = clock
        self._leads = leads

    async def run(self) -> None:
        while True:
            await asyncio.sleep(until_next(self._clock()) / 1000)
            try:
                await self.take()
            except StoreUnavailable:
                _log.warning("sampler.missed_a_minute")

    async def take(self) -> None:
        """For the minute that begins about now. Only one of several installations does."""
        if not self._leads():
            return
        at = minute(self._clock())
        found = await self._overview.figures()
        figures = {
            "waiting": found.waiting,
            "scheduled": found.scheduled,
            "jobs": found.jobs,
            "dead": found.dead,
            "connected": found.connected,
            "sessions": found.total,
            "sent": found.sent_today,
        }
        await self._store.samples.add(at, figures)


def minute(now: int) -> int:
    """The nearest one: a pause may end a little early."""
    return (now + MINUTE_MS // 2) // MINUTE_MS * MINUTE_MS


def until_next(now: int) -> int:
    return MINUTE_MS - now % MINUTE_MS
