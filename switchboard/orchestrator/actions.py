"""What the fleet does to one session or worker, one method for each kind of action. Each is safe to repeat.

Whether and when is not decided here: see `domain/fleet.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from switchboard.domain import fleet
from switchboard.domain.clock import Clock
from switchboard.domain.fleet import EndScan, Lose, Note, Pace, Place, PutAside, Remove, Seen, Start, Stop, Vacate
from switchboard.domain.proxies import Proxy, choose
from switchboard.domain.restarts import GiveUp, RestartRules, after_end
from switchboard.domain.sessions import DIRECT, Session, State, Wanted
from switchboard.orchestrator.folders import SessionFolders
from switchboard.runners.base import AlreadyRunning, Handle, Runner, RunnerError, RunnerUnavailable
from switchboard.runners.spec import WorkerSpec
from switchboard.store import Store
from switchboard.store.sessions import With

_log = structlog.get_logger(__name__)
UP = (State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED)
_NO_WORKER: Mapping[str, str | int] = {"launched": 0, "qr": "", "code": ""}
"""Nobody is there to be heard: late words do not count, and silence is no fault."""

_UNAVAILABLE_MS, _UNAVAILABLE_MOST_MS = 5_000, 300_000
_TRIES = 5

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


class Actions:
    """`handles` are those of the last look, by session and generation."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        folders: SessionFolders,
        describe: Describe,
        works: Works,
        rules: FleetRules,
        clock: Clock,
    ) -> None:
        self._store = store
        self._runner = runner
        self._folders = folders
        self._describe = describe
        self._works = works
        self._rules = rules
        self._clock = clock
        self.handles: Mapping[tuple[str, int], Handle] = {}

    def carry_out(self, action: fleet.Action) -> Coroutine[Any, Any, bool | None]:
        """False if it found nothing to change."""
        match action:
            case Stop():
                return self._stop(action.worker, action.why)
            case Note():
                return self._ended(action.session, action.worker)
            case Lose():
                return self.lose(action.session, "worker_gone")
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

    async def _stop(self, worker: Seen, why: str) -> None:
        handle = self.handles[worker.session, worker.generation]
        _log.info("worker.stopping", session=worker.session, generation=worker.generation, why=why)
        await self._runner.stop(handle)

    async def _ended(self, session: Session, worker: Seen) -> None:
        reason = "worker_exited" if worker.exit_code is None else f"worker_exited:{worker.exit_code}"
        await self._failed_once(session, reason)
        await self._runner.stop(self.handles[worker.session, worker.generation])

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
        await self._store.sessions.turn(session.id, State.DISCONNECTED, reason, now, {With.DETACH}, fields, among=UP)

    async def _not_yet(self, session: Session, why: str) -> None:
        """Not the worker's fault: what it runs on is away. Tried again soon, and never given up."""
        _log.warning("worker.not_started", session=session.id, error=why)
        now = self._clock()
        gap = min(_UNAVAILABLE_MS << min(session.misses, 10), _UNAVAILABLE_MOST_MS)
        fields = {**_NO_WORKER, "notBefore": now + gap, "misses": session.misses + 1}
        await self._store.sessions.turn(
            session.id, State.DISCONNECTED, f"not_started:{why[:200]}", now, {With.DETACH}, fields, among=UP
        )

    async def lose(self, session: Session, reason: str) -> None:
        await self._store.sessions.turn(
            session.id, State.DISCONNECTED, reason, self._clock(), {With.DETACH}, _NO_WORKER, among=UP
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
        await self.lose(session, "waiting_for_proxy")
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
        if session.order and session.order.kind == "logout":  # it never said that it did
            _log.warning("session.logout_unconfirmed", session=session.id)
            await self._store.sessions.turn(
                session.id, State.LOGGED_OUT, "logout_unconfirmed", self._clock(), fields={"order": ""},
                among=[State.LOGGED_OUT],
            )  # fmt: skip
        await self._store.sessions.clear_aside(session.id)  # last: until then it is planned again

    async def _end_scan(self, session: Session) -> None:
        _log.info("session.not_scanned_in_time", session=session.id)
        await self._store.sessions.turn(
            session.id,
            State.STOPPED,
            "scan_timeout",
            self._clock(),
            {With.DETACH, With.RELEASE, With.SCANNING},
            {"wanted": Wanted.STOP.value, "qr": "", "code": "", "scanBy": "", "order": ""},
            among=[state for state in UP if state is not State.CONNECTED],
        )

    async def _vacate(self, session: Session) -> None:
        await self._store.sessions.vacate(session.id)

    async def _start(self, session: Session) -> None:
        told = self._rules.told
        if not await self._store.sessions.launch(session.id, session.generation, self._clock(), told):
            return  # something changed since it was planned
        spec = await self._describe(session)
        if spec is None:
            await self.lose(session, "waiting_for_proxy")
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
