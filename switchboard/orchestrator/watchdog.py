"""Restarts workers that stopped proving that they live. The gaps grow, but it never gives up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from switchboard.domain.clock import Clock
from switchboard.domain.errors import SessionNotFound, StoreUnavailable
from switchboard.domain.restarts import RestartRules, after_silence, is_silent
from switchboard.domain.sessions import State
from switchboard.store import Store
from switchboard.store.sessions import With

_log = structlog.get_logger(__name__)
_LATE = 3
"""A pause that took this many times as long as it should says that time stood still for us."""


class Watchdog:
    def __init__(
        self,
        store: Store,
        rules: RestartRules,
        timeout_ms: int,
        interval_ms: int,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._rules = rules
        self._timeout_ms = timeout_ms
        self._interval_ms = interval_ms
        self._clock = clock
        self._leads = leads
        self._since = clock()

    async def run(self) -> None:
        while True:
            before = self._clock()
            await asyncio.sleep(self._interval_ms / 1000)
            if not 0 <= self._clock() - before <= _LATE * self._interval_ms:
                self._since = self._clock()  # the machine slept, or the clock was set: that is nobody's silence
            try:
                if self._leads():
                    await self.round()
            except StoreUnavailable:
                self._since = self._clock()  # no PING could be written down meanwhile

    async def round(self) -> None:
        now = self._clock()
        for session in await self._store.sessions.all():
            if not is_silent(session, self._since, self._timeout_ms, now):
                continue
            at = after_silence(self._rules, session.silences, now)
            _log.warning("worker.silent", session=session.id, last_ping=session.last_ping, restart_at=at)
            with suppress(SessionNotFound):  # deleted since we looked
                await self._store.sessions.turn(
                    session.id,
                    State.DISCONNECTED,
                    "no_ping",
                    now,
                    {With.DETACH, With.BUMP},
                    {"notBefore": at, "silences": session.silences + 1, "qr": "", "code": ""},
                )
