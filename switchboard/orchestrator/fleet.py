"""Makes the fleet what it should be: looks at what is wanted and at what runs, and has the plan carried out.

The rules are in `domain/fleet.py`, the actions in `actions.py`. All that is remembered here is which are under way.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import structlog

from switchboard.domain import fleet
from switchboard.domain.clock import Clock
from switchboard.domain.errors import SessionNotFound, StoreUnavailable
from switchboard.domain.fleet import Seen, Start, Stop
from switchboard.orchestrator.actions import UP, Actions, FleetRules
from switchboard.orchestrator.waiting import first_of
from switchboard.runners.base import (
    Handle,
    Observed,
    Runner,
    RunnerError,
    RunnerUnavailable,
    Telling,
    Tended,
)
from switchboard.store import Store

_log = structlog.get_logger(__name__)
_AWAY_S = 1.0
_NOT_LEADING_S = 5.0


class Fleet:
    def __init__(
        self,
        store: Store,
        runner: Runner,
        actions: Actions,
        rules: FleetRules,
        clock: Clock,
        name: str = "orchestrator",
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._runner = runner
        self._actions = actions
        self._rules = rules
        self._clock = clock
        self._name = name
        self._alone = alone
        self.leading = False
        self._said = ""
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._starting: set[str] = set()
        self._last_start = 0
        self._look = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled. What is under way then is found again at the next start."""
        recovered = False
        ended = self._runner.ended if isinstance(self._runner, Telling) else asyncio.Event()
        try:
            async with self._store.wakeups.listen("fleet") as woken:
                while True:
                    for event in (woken, self._look, ended):
                        event.clear()
                    wait_s = _AWAY_S
                    with suppress(StoreUnavailable, RunnerUnavailable):
                        self.leading = await self._may_lead()
                        if self.leading and not recovered:
                            await self.recover()
                            recovered = True
                        wait_s = await self.round() if self.leading else _NOT_LEADING_S
                    await first_of(woken, self._look, ended, within_s=wait_s)
        finally:
            await self.abandon()

    async def _may_lead(self) -> bool:
        """One orchestrator starts workers; others only answer workers and people."""
        if not self._alone():
            self._say_who_leads("another orchestrator on this data folder does; this one only answers")
            return False
        if not await self._store.leader.hold(self._name):
            self._say_who_leads("another installation does; stop it for good, then set TAKE_OVER=true here")
            return False
        self._said = ""
        return True

    def _say_who_leads(self, words: str) -> None:
        if words != self._said:
            _log.error("fleet.led_by_another", hint=f"Who starts workers? {words}.")
        self._said = words

    async def recover(self) -> None:
        """Find again what an earlier orchestrator started. Disturbs no worker."""
        kept = [session.handle for session in await self._store.sessions.all() if session.handle]
        found = await self._runner.recover([handle for handle in map(_handle, kept) if handle])
        _log.info("fleet.recovered", workers=sum(one.running for one in found))

    async def round(self) -> float:
        """Look once, begin what is to be done, and say how many seconds to wait before looking again."""
        busy = set(self._busy)
        sessions = await self._store.sessions.all()
        proxies = {proxy.id: proxy for proxy in await self._store.proxies.all()}
        observed = await self._runner.list()
        self._actions.handles = {(one.session_id, one.generation): one.handle for one in observed}
        now = self._clock()
        plan = fleet.plan(
            sessions,
            [_seen(one) for one in observed],
            proxies,
            now,
            self._rules.pace,
            last_start=self._last_start,
            starting=len(self._starting),
            busy=busy | set(self._busy),
            allow_direct=self._rules.allow_direct,
            told=self._rules.told,
        )
        for action in plan.actions:
            self._begin(action)
        until = now + self._rules.monitor_ms if plan.look_again is None else plan.look_again
        return max(0.0, min(until - self._clock(), self._rules.monitor_ms) / 1000)

    async def settled(self) -> None:
        """All that was begun has been done, one way or the other."""
        while self._busy:
            await asyncio.wait(self._busy.values())

    async def abandon(self) -> None:
        for task in list(self._busy.values()):
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def stop_workers(self) -> None:
        """End every worker, for a person who ends everything. They are wanted all the same, and come back later."""
        try:
            running = [one for one in await self._runner.list() if one.running]
            await asyncio.gather(*(self._runner.stop(one.handle) for one in running))
            for one in running:
                if (session := await self._store.sessions.get(one.session_id)) and session.state in UP:
                    await self._actions.lose(session, "switchboard_stopped")
        except (
            RunnerError,
            SessionNotFound,
            StoreUnavailable,
        ) as reason:  # found at the next start
            _log.warning("fleet.not_all_stopped", error=str(reason))

    async def tend(self) -> None:
        if isinstance(self._runner, Tended):
            try:
                await self._runner.tend()
            except RunnerUnavailable as away:
                _log.warning("runner.not_tended", error=str(away))

    # --- carrying out --------------------------------------------------------------------------------------------

    def _begin(self, action: fleet.Action) -> None:
        session = action.worker.session if isinstance(action, Stop) else action.session.id
        if isinstance(action, Start):
            self._last_start = self._clock()
            self._starting.add(session)
        task = asyncio.create_task(self._carry_out(session, self._actions.carry_out(action)), name=f"fleet:{session}")
        self._busy[session] = task

    async def _carry_out(self, session: str, work: Coroutine[Any, Any, bool | None]) -> None:
        """One action. Whatever goes wrong is planned again; it must neither end the loop nor spin it."""
        again = True
        try:
            again = await work is not False
        except (StoreUnavailable, RunnerUnavailable) as away:
            _log.warning("fleet.away", session=session, error=str(away))
            again = self._look_later()
        except Exception:  # noqa: BLE001 - logged with its trace, and planned again
            _log.exception("fleet.action_failed", session=session)
            again = self._look_later()
        finally:
            self._busy.pop(session, None)
            self._starting.discard(session)
            if again:
                self._look.set()

    def _look_later(self) -> bool:
        asyncio.get_running_loop().call_later(_AWAY_S, self._look.set)
        return False


def _handle(text: str) -> Handle | None:
    try:
        return Handle.load(text)
    except (ValueError, TypeError):
        _log.warning("fleet.unreadable_handle")
        return None


def _seen(one: Observed) -> Seen:
    return Seen(one.session_id, one.generation, one.running, one.started_at, one.exit_code)
