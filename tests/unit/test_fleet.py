"""The plan: what to do so that the workers that run are those that should, by example and against a small world."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.fleet import (
    Action,
    EndScan,
    Lose,
    Note,
    Pace,
    Place,
    Plan,
    PutAside,
    Remove,
    Seen,
    Start,
    Stop,
    Vacate,
    plan,
)
from switchboard.domain.proxies import Proxy
from switchboard.domain.sessions import DIRECT, Order, Session, State, Wanted

NOON = 1_781_006_400_000
PACE = Pace(interval_ms=2_000, at_once=4)
GOOD = Proxy("proxy_1", "192.0.2.1:1080", True, None, frozenset(), 4)
BAD = Proxy("proxy_2", "192.0.2.2:1080", False, NOON, frozenset(), 4)
POOL = {"proxy_1": GOOD, "proxy_2": BAD}

IDLE = Session("a", State.STARTING, NOON, wanted=Wanted.RUN, generation=2, proxy="proxy_1")
CONNECTED = replace(IDLE, state=State.CONNECTED, phone="972500000001", launched=2)
SCANNING = replace(IDLE, state=State.QR_READY, launched=2, scan_by=NOON + 60_000)
WORKER = Seen("a", 2, True, NOON)


def planned(
    sessions: Session | Sequence[Session],
    *workers: Seen,
    now: int = NOON,
    proxies: dict[str, Proxy] | None = None,
    last_start: int = 0,
    starting: int = 0,
    busy: Sequence[str] = (),
) -> Plan:
    some = [sessions] if isinstance(sessions, Session) else sessions
    pool = POOL if proxies is None else proxies
    return plan(some, workers, pool, now, PACE, last_start=last_start, starting=starting, busy=busy)


def only(found: Plan) -> Action | None:
    return found.actions[0] if len(found.actions) == 1 else None


# One session at a time.


def test_a_session_that_should_run_and_does_not_is_started() -> None:
    assert only(planned(IDLE)) == Start(IDLE)


def test_one_that_runs_as_it_should_is_left_alone() -> None:
    assert planned(CONNECTED, WORKER) == Plan([], None)
    assert planned(replace(IDLE, launched=2), WORKER) == Plan([], None)


def test_a_worker_of_an_older_generation_is_stopped_before_another_is_started() -> None:
    old = replace(WORKER, generation=1)
    assert only(planned(CONNECTED, old)) == Stop(old, "out of date")
    assert only(planned(CONNECTED, WORKER, old)) == Stop(old, "out of date")


def test_of_two_workers_only_one_stays() -> None:
    assert only(planned(CONNECTED, WORKER, WORKER)) == Stop(WORKER, "there is another one")


def test_a_worker_of_no_session_is_a_stray() -> None:
    assert only(planned([], WORKER)) == Stop(WORKER, "stray")


def test_a_worker_that_ended_by_itself_is_noted() -> None:
    ended = replace(WORKER, running=False, exit_code=1)
    assert only(planned(CONNECTED, ended)) == Note(CONNECTED, ended)


@pytest.mark.parametrize("session", [CONNECTED, SCANNING])
def test_a_record_that_says_it_is_up_without_any_worker_is_corrected_first(session: Session) -> None:
    assert only(planned(session)) == Lose(session)


def test_a_session_whose_worker_is_somebody_elses_business_is_never_touched() -> None:
    foreign = replace(IDLE, wanted=None, proxy=None)
    for workers in ([], [WORKER], [replace(WORKER, generation=1)], [replace(WORKER, running=False)]):
        assert planned(foreign, *workers) == Plan([], None)


def test_nothing_is_done_about_a_session_that_has_something_under_way() -> None:
    for workers in ([], [WORKER], [replace(WORKER, generation=1)], [replace(WORKER, running=False)]):
        assert planned(IDLE, *workers, busy=["a"]) == Plan([], None)
        assert planned([], *workers, busy=["a"]) == Plan([], None)


# Proxies.

WITHOUT_A_PLACE = [
    replace(IDLE, proxy=None),
    replace(IDLE, proxy="proxy_2"),  # BAD
    replace(IDLE, proxy="proxy_9"),  # unknown
    replace(IDLE, proxy=DIRECT),  # the pool has proxies by now
]


@pytest.mark.parametrize("session", WITHOUT_A_PLACE)
def test_a_session_without_a_good_proxy_gets_a_place_and_no_start(session: Session) -> None:
    assert only(planned(session)) == Place(session, None)
    running = replace(session, launched=2)
    assert only(planned(running, WORKER)) == Place(running, WORKER)


def test_without_any_proxies_a_direct_session_is_started() -> None:
    direct = replace(IDLE, proxy=DIRECT)
    assert only(planned(direct, proxies={})) == Start(direct)
    assert only(planned(IDLE, proxies={})) == Place(IDLE, None)


@pytest.mark.parametrize("proxy", ["proxy_2", "proxy_9", DIRECT])
def test_a_connected_session_is_left_alone_whatever_its_proxy_looks_like(proxy: str) -> None:
    assert planned(replace(CONNECTED, proxy=proxy), WORKER) == Plan([], None)


# Ends that are wanted.


@pytest.mark.parametrize("wanted", [Wanted.STOP, Wanted.DELETE])
def test_a_worker_that_is_not_wanted_is_stopped(wanted: Wanted) -> None:
    assert only(planned(replace(CONNECTED, wanted=wanted), WORKER)) == Stop(WORKER, "not wanted")


@pytest.mark.parametrize("wanted", [Wanted.STOP, Wanted.DELETE])
def test_a_worker_that_is_to_log_out_is_given_until_the_deadline(wanted: Wanted) -> None:
    leaving = replace(CONNECTED, wanted=wanted, order=Order(1, "logout", NOON + 15_000))
    assert planned(leaving, WORKER) == Plan([], NOON + 15_000)
    assert planned(leaving, WORKER, now=NOON + 14_999) == Plan([], NOON + 15_000)
    assert only(planned(leaving, WORKER, now=NOON + 15_000)) == Stop(WORKER, "not wanted")
    ended = replace(WORKER, running=False)
    assert only(planned(leaving, ended)) == Stop(ended, "not wanted")


def test_what_is_deleted_is_removed_once_no_worker_is_left() -> None:
    going = replace(CONNECTED, wanted=Wanted.DELETE, order=Order(1, "logout", NOON + 15_000))
    assert only(planned(going)) == Remove(going)


def test_auth_data_that_is_no_good_is_put_aside_once_no_worker_uses_it() -> None:
    out = replace(CONNECTED, state=State.LOGGED_OUT, wanted=Wanted.STOP, aside=True)
    assert only(planned(out, WORKER)) == Stop(WORKER, "not wanted")
    assert only(planned(out)) == PutAside(out)
    again = replace(IDLE, aside=True)
    assert only(planned(again)) == PutAside(again)


def test_what_is_neither_wanted_nor_linked_gives_up_its_place_once_no_worker_uses_it() -> None:
    over = replace(IDLE, state=State.STOPPED, wanted=Wanted.STOP, launched=2)
    assert only(planned(over, WORKER)) == Stop(WORKER, "not wanted")
    assert only(planned(over)) == Vacate(over)
    assert planned(replace(over, linked=True)) == Plan([], None)
    assert only(planned(replace(over, proxy=None))), "its place among the phone's devices"
    assert planned(replace(over, proxy=None, launched=0)) == Plan([], None)


def test_a_worker_that_was_told_another_address_is_replaced() -> None:
    """It lived on while we moved to another port: it talks to nobody."""
    moved = replace(CONNECTED, told="old")
    assert plan([moved], [WORKER], POOL, NOON, PACE, told="new").actions == [
        Stop(WORKER, "it was told another address, or secret")
    ]
    assert plan([replace(moved, told="new")], [WORKER], POOL, NOON, PACE, told="new").actions == []


def test_a_worker_that_nobody_listens_to_is_stopped() -> None:
    assert only(planned(replace(CONNECTED, launched=0), WORKER)) == Stop(WORKER, "nobody listens to it")


# Time.


def test_a_scan_has_an_end() -> None:
    assert planned(SCANNING, WORKER) == Plan([], NOON + 60_000)
    assert only(planned(SCANNING, WORKER, now=NOON + 60_000)) == EndScan(SCANNING)
    waiting = replace(SCANNING, state=State.STARTING, launched=None)
    assert only(planned(waiting, now=NOON + 60_000)) == EndScan(waiting)
    no_proxy = replace(waiting, proxy=None)
    assert only(planned(no_proxy, now=NOON + 60_000)) == EndScan(no_proxy)


def test_a_start_that_has_to_wait_is_waited_for() -> None:
    later = replace(IDLE, not_before=NOON + 8_000)
    assert planned(later) == Plan([], NOON + 8_000)
    assert only(planned(later, now=NOON + 8_000)) == Start(later)


def test_starts_are_spaced_and_not_too_many_are_under_way() -> None:
    two = [IDLE, replace(IDLE, id="b")]
    assert planned(two) == Plan([Start(two[0])], NOON + 2_000)
    assert planned(two, last_start=NOON - 1_999) == Plan([], NOON + 1)
    assert planned(two, last_start=NOON - 2_000).actions == [Start(two[0])]
    assert planned(two, starting=4) == Plan([], None)
    assert planned(two, starting=3).actions == [Start(two[0])]


def test_who_holds_a_phone_in_hand_goes_first_then_who_waited_longest() -> None:
    old = replace(IDLE, id="z-old", started_at=NOON - 2)
    new = replace(IDLE, id="b-new", started_at=NOON - 1)
    scan = replace(IDLE, id="y-scan", started_at=NOON, scan_by=NOON + 60_000)
    order = []
    left = [new, old, scan]
    while left:
        [first] = [action for action in planned(left).actions if isinstance(action, Start)]
        order.append(first.session.id)
        left.remove(first.session)
    assert order == ["y-scan", "z-old", "b-new"]


def test_the_plan_says_the_first_moment_at_which_something_falls_due() -> None:
    later = replace(IDLE, id="b", not_before=NOON + 500)
    leaving = replace(CONNECTED, id="c", wanted=Wanted.STOP, order=Order(1, "logout", NOON + 700))
    found = planned([replace(SCANNING), later, leaving], WORKER, replace(WORKER, session="c"))
    assert found == Plan([], NOON + 500)


# Whatever is the case.

sessions = st.builds(
    Session,
    id=st.sampled_from("abcdef"),
    state=st.sampled_from([state for state in State if state not in (State.PAUSED, State.RESTRICTED)]),
    created_at=st.just(0),
    wanted=st.sampled_from([*Wanted, None]),
    generation=st.integers(1, 3),
    proxy=st.sampled_from([None, "proxy_1", "proxy_2", "proxy_9", DIRECT]),
    not_before=st.sampled_from([0, NOON - 1, NOON, NOON + 1]),
    scan_by=st.sampled_from([None, NOON - 1, NOON, NOON + 1]),
    aside=st.booleans(),
    order=st.sampled_from([None, Order(1, "logout", NOON), Order(1, "logout", NOON + 1)]),
)
fleets = st.lists(sessions, unique_by=lambda session: session.id, max_size=6)
workers = st.lists(
    st.builds(
        Seen,
        session=st.sampled_from("abcdefgh"),
        generation=st.integers(1, 3),
        running=st.booleans(),
        started_at=st.just(0),
    ),
    max_size=8,
)


@given(
    fleets,
    workers,
    st.sets(st.sampled_from("abcdefgh")),
    st.sampled_from([0, NOON - 2_001, NOON - 2_000, NOON - 1_999, NOON]),
    st.integers(0, 6),
    st.sampled_from([POOL, {}]),
)
def test_no_plan_ever_does_what_must_not_be_done(
    fleet: list[Session], seen: list[Seen], busy: set[str], last_start: int, starting: int, pool: dict[str, Proxy]
) -> None:
    found = plan(fleet, seen, pool, NOON, PACE, last_start=last_start, starting=starting, busy=busy)
    known = {session.id: session for session in fleet}
    touched = [action.worker.session if isinstance(action, Stop) else action.session.id for action in found.actions]
    assert not busy & set(touched)
    assert all(known[one].wanted is not None for one in touched if one in known)
    starts = [action.session for action in found.actions if isinstance(action, Start)]
    assert len(starts) <= (1 if last_start + PACE.interval_ms <= NOON and starting < PACE.at_once else 0)
    for session in starts:
        assert not [worker for worker in seen if worker.session == session.id]
        assert session.wanted is Wanted.RUN
        assert session.not_before <= NOON
        assert (session.proxy == "proxy_1" and pool) or (session.proxy == DIRECT and not pool)
    for worker in seen:
        if worker.session not in known and worker.session not in busy:
            assert Stop(worker, "stray") in found.actions
    for session in fleet:
        assert touched.count(session.id) <= 1
    assert found.look_again is None or found.look_again > NOON


# A small world in which the plan is carried out, as the fleet does it.


@dataclass
class World:
    sessions: dict[str, Session]
    workers: list[Seen]
    pool: dict[str, Proxy]
    now: int = NOON
    last_start: int = 0
    starts: list[tuple[int, str]] = field(default_factory=list)

    def step(self) -> bool:
        """Carries out all that is to be done now; else goes to the next moment. False once nothing is left."""
        found = plan(self.sessions.values(), self.workers, self.pool, self.now, PACE, last_start=self.last_start)
        for action in found.actions:
            self._do(action)
        if not found.actions and found.look_again is not None:
            assert found.look_again > self.now
            self.now = found.look_again
        return bool(found.actions) or found.look_again is not None

    def settle(self) -> None:
        for _ in range(5_000):
            if not self.step():
                return
        raise AssertionError("it does not come to rest")

    def _do(self, action: Action) -> None:
        match action:
            case Stop(worker=worker):
                self.workers.remove(worker)
            case Note(session=session, worker=worker):
                self.workers.remove(worker)
                self._set(session, state=State.DISCONNECTED, launched=0, not_before=self.now + 2_000)
            case Lose(session=session):
                self._set(session, state=State.DISCONNECTED, launched=0)
            case Vacate(session=session):
                self._set(session, proxy=None, launched=0)
            case Place(session=session):
                free = "proxy_1" if "proxy_1" in self.pool else DIRECT
                self._set(session, proxy=free, generation=session.generation + 1, state=State.STARTING)
            case PutAside(session=session):
                self._set(session, aside=False)
            case EndScan(session=session):
                self._set(session, wanted=Wanted.STOP, scan_by=None, state=State.STOPPED)
            case Start(session=session):
                self._start(session)
            case Remove(session=session):
                del self.sessions[session.id]

    def _start(self, session: Session) -> None:
        assert not [worker for worker in self.workers if worker.session == session.id]
        self.workers.append(Seen(session.id, session.generation, True, self.now))
        self.starts.append((self.now, session.id))
        self.last_start = self.now
        self._set(session, state=State.STARTING, launched=session.generation)

    def _set(self, session: Session, **changes: object) -> None:
        self.sessions[session.id] = replace(session, **changes)  # type: ignore[arg-type]


def world(fleet: Iterable[Session], seen: Iterable[Seen] = (), pool: dict[str, Proxy] | None = None) -> World:
    return World({session.id: session for session in fleet}, list(seen), POOL if pool is None else pool)


@given(fleets, workers, st.sampled_from([POOL, {}]))
def test_carried_out_again_and_again_it_comes_to_rest_with_what_is_wanted(
    fleet: list[Session], seen: list[Seen], pool: dict[str, Proxy]
) -> None:
    end = world(fleet, seen, pool)
    end.settle()
    running = {worker.session: worker for worker in end.workers if worker.running}
    for session in end.sessions.values():
        assert session.wanted is not Wanted.DELETE
        if session.wanted is Wanted.RUN:
            assert running[session.id].generation == session.generation
        elif session.wanted is Wanted.STOP:
            assert session.id not in running
    assert set(running) <= set(end.sessions)


def test_after_a_reboot_200_sessions_come_back_one_at_a_time_those_who_scan_first() -> None:
    fleet = [replace(CONNECTED, id=f"worker_{n}", started_at=NOON - n) for n in range(190)]
    fleet += [replace(SCANNING, id=f"scan_{n}", scan_by=NOON + 10**9) for n in range(10)]
    end = world(fleet)
    while len(end.starts) < 200:
        assert end.step()
    moments = [at for at, _ in end.starts]
    assert moments == [NOON + 2_000 * n for n in range(200)]
    assert {session for _, session in end.starts[:10]} == {f"scan_{n}" for n in range(10)}
    assert len({session for _, session in end.starts}) == 200
    oldest_first = [f"worker_{n}" for n in range(189, -1, -1)]
    assert [session for _, session in end.starts[10:]] == oldest_first
