"""Makes the fleet what it should be: looks at what is wanted and at what runs, and carries out the plan.

The rules are in `domain/fleet.py`. All that is remembered here is which actions are under way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from switchboard.domain import fleet
from switchboard.domain.clock import Clock
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.fleet import EndScan, Lose, Note, Pace, Place, PutAside, Remove, Seen, Start, Stop, Vacate
from switchboard.domain.proxies import Proxy, choose
from switchboard.domain.restarts import GiveUp, RestartRules, after_end
from switchboard.domain.sessions import DIRECT, Session, State, Wanted
from switchboard.orchestrator.folders import SessionFolders
from switchboard.orchestrator.waiting import first_of
from switchboard.runners.base import (
    AlreadyRunning,
    Handle,
    Observed,
    Runner,
    RunnerError,
    RunnerUnavailable,
    Telling,
    Tended,
)
from switchboard.runners.spec import WorkerSpec
from switchboard.store import Store
from switchboard.store.sessions import With

_log = structlog.get_logger(__name__)
_UP = (State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED)
_NO_WORKER: Mapping[str, str | int] = {"launched": 0, "qr": "", "code": ""}
"""Nobody is there to be heard: late words do not count, and silence is no fault."""

_AWAY_S = 1.0
_UNAVAILABLE_MS, _UNAVAILABLE_MOST_MS = 5_000, 300_000
_NOT_LEADING_S = 5.0
_TRIES = 20

Describe = Callable[[Session], Awaitable[WorkerSpec | None]]
"""What to run for a session; None if its proxy is gone."""

Works = Callable[[str], Awaitable[bool]]
"""Whether a proxy works, tried right now."""


@dataclass(frozen=True, slots=True)
class FleetRules:
    monitor_ms: int = 30_000
    allow_direct: bool = False
    start_timeout_s: float = 60.0
    told: str = ""
    """Stands for what every worker is told of us. One that was told otherwise can't reach us: it is replaced."""
    pace: Pace = field(default_factory=Pace)
    restarts: RestartRules = field(default_factory=RestartRules)


class Fleet:
    def __init__(
        self,
        store: Store,
        runner: Runner,
        folders: SessionFolders,
        describe: Describe,
        works: Works,
        rules: FleetRules,
        clock: Clock,
        name: str = "orchestrator",
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._runner = runner
        self._folders = folders
        self._describe = describe
        self._works = works
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
        self._handles: dict[tuple[str, int], Handle] = {}

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
        self._handles = {(one.session_id, one.generation): one.handle for one in observed}
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
                if (session := await self._store.sessions.get(one.session_id)) and session.state in _UP:
                    await self._lose(session, "switchboard_stopped")
        except (RunnerError, StoreUnavailable) as reason:  # found again, whatever is left, at the next start
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
        task = asyncio.create_task(self._carry_out(session, self._work(action)), name=f"fleet:{session}")
        self._busy[session] = task

    def _work(self, action: fleet.Action) -> Coroutine[Any, Any, bool | None]:
        match action:
            case Stop():
                return self._stop(action.worker, action.why)
            case Note():
                return self._ended(action.session, action.worker)
            case Lose():
                return self._lose(action.session, "worker_gone")
            case Place():
                return self._place(action.session, action.worker)
            case PutAside():
                return self._put_aside(action.session)
            case EndScan():
                return self._end_scan(action.session)
            case Vacate():
                return self._vacate(action.session)
            case Start():
                return self._start(action.session)
            case Remove():
                return self._remove(action.session)

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

    async def _stop(self, worker: Seen, why: str) -> None:
        handle = self._handles[worker.session, worker.generation]
        _log.info("worker.stopping", session=worker.session, generation=worker.generation, why=why)
        await self._runner.stop(handle)

    async def _ended(self, session: Session, worker: Seen) -> None:
        reason = "worker_exited" if worker.exit_code is None else f"worker_exited:{worker.exit_code}"
        await self._failed_once(session, reason)
        await self._runner.stop(self._handles[worker.session, worker.generation])

    async def _failed_once(self, session: Session, reason: str) -> None:
        """A worker ended, or could not begin: again after a gap, or not at all."""
        now = self._clock()
        verdict = after_end(self._rules.restarts, session.ends, now)
        fields: dict[str, str | int] = {"ends": ",".join(map(str, verdict.ends)), **_NO_WORKER}
        _log.warning("worker.ended", session=session.id, reason=reason, times=len(verdict.ends))
        if isinstance(verdict, GiveUp):
            fields["wanted"] = Wanted.STOP.value
            effects = {With.DETACH, With.RELEASE}
            await self._store.sessions.turn(session.id, State.FAILED, f"crash_loop:{reason}", now, effects, fields)
            return
        fields["notBefore"] = verdict.at
        await self._store.sessions.turn(session.id, State.DISCONNECTED, reason, now, {With.DETACH}, fields, among=_UP)

    async def _not_yet(self, session: Session, why: str) -> None:
        """Not the worker's fault: what it runs on is away. Tried again soon, and never given up."""
        _log.warning("worker.not_started", session=session.id, error=why)
        now = self._clock()
        gap = min(_UNAVAILABLE_MS << min(session.misses, 10), _UNAVAILABLE_MOST_MS)
        fields = {**_NO_WORKER, "notBefore": now + gap, "misses": session.misses + 1}
        await self._store.sessions.turn(
            session.id, State.DISCONNECTED, f"not_started:{why[:200]}", now, {With.DETACH}, fields, among=_UP
        )

    async def _lose(self, session: Session, reason: str) -> None:
        await self._store.sessions.turn(
            session.id, State.DISCONNECTED, reason, self._clock(), {With.DETACH}, _NO_WORKER, among=_UP
        )

    async def _place(self, session: Session, worker: Seen | None) -> bool:
        """Another proxy, or none: then it is off line until there is one. Never direct instead.

        False if nothing changed: the pool says when there is something to look at.
        """
        if await self._assigned(session):
            return True
        if worker is not None:
            await self._stop(worker, "there is no proxy for it")
        if session.reason == "waiting_for_proxy":
            return worker is not None
        _log.warning("session.waits_for_proxy", session=session.id)
        await self._lose(session, "waiting_for_proxy")
        return True

    async def _assigned(self, session: Session) -> bool:
        phone = session.phone or session.declared
        sticky = await self._store.proxies.sticky(phone) if phone else None
        for _ in range(_TRIES):  # the pool may change between the choice and the move
            pool = await self._store.proxies.all()
            choice = choose(pool, sticky=sticky, leaving=session.proxy)
            new = choice.id if isinstance(choice, Proxy) else None
            if new is None and self._rules.allow_direct and not pool:
                new = DIRECT
            if new is None:
                return False
            # When nothing can be reached it is our own network: then nobody is moved about.
            if new != DIRECT and not await self._works(new):
                continue
            outcome = await self._store.sessions.assign(session.id, session.proxy, new, self._clock())
            if outcome != "NO_ROOM":
                _log.info("session.placed", session=session.id, old=session.proxy, new=new, outcome=outcome)
                return True
        return False

    async def _put_aside(self, session: Session) -> None:
        await self._folders.put_aside(session.id, self._clock())
        await self._store.sessions.clear_aside(session.id)
        if session.order and session.order.kind == "logout":  # it never said that it did
            _log.warning("session.logout_unconfirmed", session=session.id)
            await self._store.sessions.turn(
                session.id, State.LOGGED_OUT, "logout_unconfirmed", self._clock(), fields={"order": ""},
                among=[State.LOGGED_OUT],
            )  # fmt: skip

    async def _end_scan(self, session: Session) -> None:
        _log.info("session.not_scanned_in_time", session=session.id)
        await self._store.sessions.turn(
            session.id,
            State.STOPPED,
            "scan_timeout",
            self._clock(),
            {With.DETACH, With.RELEASE, With.SCANNING},
            {"wanted": Wanted.STOP.value, "qr": "", "code": "", "scanBy": "", "order": ""},
            among=[state for state in _UP if state is not State.CONNECTED],
        )

    async def _vacate(self, session: Session) -> None:
        await self._store.sessions.vacate(session.id)

    async def _start(self, session: Session) -> None:
        told = self._rules.told
        if not await self._store.sessions.launch(session.id, session.generation, self._clock(), told):
            return  # something changed since it was planned
        spec = await self._describe(session)
        if spec is None:
            await self._lose(session, "waiting_for_proxy")
            return
        try:
            async with asyncio.timeout(self._rules.start_timeout_s):
                handle = await self._runner.start(spec)
        except TimeoutError:  # what did start after all is seen at the next look
            await self._failed_once(session, "not_started:it took too long")
            return
        except RunnerUnavailable as away:
            await self._not_yet(session, str(away))
            return
        except AlreadyRunning as error:
            # Somebody started one that we did not see. If it can be found, the next look knows what to do with it.
            if session.id in {one.session_id for one in await self._runner.recover([])}:
                return
            await self._failed_once(session, f"not_started:{error}")
            return
        except RunnerError as error:
            _log.warning("worker.not_started", session=session.id, error=str(error))
            await self._failed_once(session, f"not_started:{str(error)[:200]}")
            return
        await self._store.sessions.keep_handle(session.id, handle.dump())
        pid = handle.data.get("pid")
        _log.info("worker.started", session=session.id, generation=session.generation, proxy=session.proxy, pid=pid)

    async def _remove(self, session: Session) -> None:
        await self._folders.remove(session.id)
        await self._store.sessions.forget(session.id, self._clock())
        _log.info("session.deleted", session=session.id)


def _handle(text: str) -> Handle | None:
    try:
        return Handle.load(text)
    except (ValueError, TypeError):
        _log.warning("fleet.unreadable_handle")
        return None


def _seen(one: Observed) -> Seen:
    return Seen(one.session_id, one.generation, one.running, one.started_at, one.exit_code)
