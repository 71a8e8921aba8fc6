"""What to do so that the workers that run are those that should. Pure: sessions and what was seen in, actions out.

Each action is safe to repeat, and one that was cut short by a crash is simply planned again: nothing is remembered
between two plans but what the store and the runner know.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from switchboard.domain.proxies import Proxy
from switchboard.domain.sessions import DIRECT, Session, State, Wanted


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker as its runner sees it."""

    session: str
    generation: int
    running: bool
    started_at: int
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """This worker should not run: it is a stray, out of date, or not wanted."""

    worker: Seen
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """The worker ended without having been asked to."""

    session: Session
    worker: Seen


@dataclass(frozen=True, slots=True)
class Lose:
    """The record says it is up, and there is no worker at all: the machine was restarted, perhaps."""

    session: Session


@dataclass(frozen=True, slots=True)
class Place:
    """It has no proxy, or one that is out of order: find it another before it may run."""

    session: Session
    worker: Seen | None


@dataclass(frozen=True, slots=True)
class PutAside:
    session: Session


@dataclass(frozen=True, slots=True)
class EndScan:
    session: Session


@dataclass(frozen=True, slots=True)
class Vacate:
    """Neither wanted nor linked, and its worker is gone: its places are free."""

    session: Session


@dataclass(frozen=True, slots=True)
class Start:
    session: Session


@dataclass(frozen=True, slots=True)
class Remove:
    session: Session


Action = Stop | Note | Lose | Place | PutAside | EndScan | Vacate | Start | Remove


@dataclass(frozen=True, slots=True)
class Pace:
    """How starts are spread: one every `interval_ms`, and `at_once` under way at most."""

    interval_ms: int = 2_000
    at_once: int = 4
    longest_gap_ms: int = 15 * 60_000


@dataclass(frozen=True, slots=True)
class Plan:
    """`look_again` is when something falls due by itself; None if nothing does."""

    actions: list[Action] = field(default_factory=list)
    look_again: int | None = None


@dataclass(frozen=True, slots=True)
class _World:
    proxies: Mapping[str, Proxy]
    now: int
    longest_gap_ms: int
    allow_direct: bool
    told: str


def plan(
    sessions: Iterable[Session],
    workers: Iterable[Seen],
    proxies: Mapping[str, Proxy],
    now: int,
    pace: Pace,
    *,
    last_start: int = 0,
    starting: int = 0,
    busy: Collection[str] = (),
    allow_direct: bool = True,
    told: str = "",
) -> Plan:
    """All that can be done now. Sessions in `busy` have an action under way and are left alone.

    `allow_direct`: a session may do without a proxy while the pool is empty. `told` stands for what workers are told
    of us: one that was told something else can't reach us.
    """
    world = _World(proxies, now, pace.longest_gap_ms, allow_direct, told)
    seen: dict[str, list[Seen]] = {}
    for worker in workers:
        seen.setdefault(worker.session, []).append(worker)
    actions: list[Action] = []
    moments: list[int] = []
    starts: list[Start] = []
    for session in sessions:
        of_it = seen.pop(session.id, [])
        if session.id in busy or session.wanted is None:
            continue
        step = _step(session, of_it, world)
        if isinstance(step, Start):
            starts.append(step)
        elif isinstance(step, int):
            moments.append(step)
        elif step is not None:
            actions.append(step)
    actions += [Stop(worker, "stray") for of_it in seen.values() for worker in of_it if worker.session not in busy]
    spaced, moment = _space(starts, now, pace, last_start, starting)
    return Plan([*actions, *spaced], min([*moments, *([moment] if moment else [])], default=None))


def _space(starts: list[Start], now: int, pace: Pace, last_start: int, starting: int) -> tuple[list[Start], int | None]:
    """One at a time. Somebody with a phone in hand goes first, then those that were connected longest ago."""
    if not starts or starting >= pace.at_once:
        return [], None  # a start that ends looks again by itself
    due = last_start + pace.interval_ms
    if last_start <= now < due:  # a clock that was set back must not hold everyone up
        return [], due
    starts.sort(key=lambda start: (not start.session.scanning, start.session.started_at, start.session.id))
    return starts[:1], (now + pace.interval_ms if len(starts) > 1 else None)


def _step(session: Session, workers: list[Seen], world: _World) -> Action | int | None:
    """The one next thing to do for a session; or the moment to look again; or nothing."""
    for worker in workers:
        if worker.generation != session.generation:
            return Stop(worker, "out of date")
    for surplus in workers[1:]:
        return Stop(surplus, "there is another one")
    only = workers[0] if workers else None
    if session.wanted is Wanted.RUN:
        return _up(session, only, world)
    return _down(session, only, world.now)


def _down(session: Session, worker: Seen | None, now: int) -> Action | int | None:
    if worker is not None:
        order = session.order
        if worker.running and order is not None and order.kind == "logout" and now < order.until:
            return order.until  # let it log out first
        return Stop(worker, "not wanted")
    if session.wanted is Wanted.DELETE:
        return Remove(session)
    if session.aside:
        return PutAside(session)
    return Vacate(session) if not session.linked and (session.proxy or session.launched) else None


def _up(session: Session, worker: Seen | None, world: _World) -> Action | int | None:
    if worker is not None and not worker.running:
        return Note(session, worker)
    if worker is not None and session.launched != session.generation:
        return Stop(worker, "nobody listens to it")
    if worker is not None and session.told not in (None, world.told):
        return Stop(worker, "it was told another address, or secret")
    if worker is None and (session.launched == session.generation or session.state is State.CONNECTED):
        return Lose(session)
    if session.scan_by is not None and world.now >= session.scan_by and session.state is not State.CONNECTED:
        return EndScan(session)
    if not _may_stay(session, world):
        return Place(session, worker)
    if worker is not None:
        return session.scan_by
    return PutAside(session) if session.aside else _start(session, world)


def _start(session: Session, world: _World) -> Start | int:
    """A moment further off than any gap was written down by a clock that was wrong."""
    waits = world.now < session.not_before <= world.now + world.longest_gap_ms
    return session.not_before if waits else Start(session)


def _may_stay(session: Session, world: _World) -> bool:
    """Whether it may run where it is. A connected one is not disturbed: failover only follows a fault of its own."""
    if session.proxy == DIRECT:
        # The pool may have proxies by now: no start goes past them.
        return world.allow_direct and (session.state is State.CONNECTED or not world.proxies)
    proxy = world.proxies.get(session.proxy or "")
    return session.state is State.CONNECTED or (proxy is not None and proxy.ok)
