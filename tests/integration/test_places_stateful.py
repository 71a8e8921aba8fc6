"""Sessions and proxies in any order, all at once, with workers that speak late and orchestrators that die half-way.

Whatever happens, every place on a proxy and on a phone is held by one session that may hold it, and no phone leaves
its proxy without a fault.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from redis.asyncio import Redis
from structlog.testing import capture_logs

from switchboard.domain.errors import (
    NoProxyAvailable,
    ProxyInUse,
    SessionExists,
    SwitchboardError,
    TooManySessions,
)
from switchboard.domain.fleet import Pace
from switchboard.domain.proxies import Proxy, ProxyUrl, choose
from switchboard.domain.sessions import Session
from switchboard.orchestrator.actions import Actions, FleetRules
from switchboard.orchestrator.fleet import Fleet
from switchboard.orchestrator.folders import SessionFolders
from switchboard.orchestrator.link_events import LinkEvents, LinkRules
from switchboard.orchestrator.models import (
    AuthFailureData,
    ConnectedData,
    DisconnectedData,
    EventBody,
    ProxyErrorData,
    QrData,
    StatusData,
)
from switchboard.orchestrator.prober import Prober
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.orchestrator.sessions import Request, SessionService, SessionServiceRules
from switchboard.runners.memory import MemoryRunner, MemoryWorld
from switchboard.runners.spec import WorkerSpec
from switchboard.store import Store
from switchboard.store.client import connect
from switchboard.store.sessions import SessionRules
from switchboard.store.store import StoreRules
from tests.support.driver import MINUTE, NOON
from tests.support.places import clear
from tests.support.slots import DIRECT, Slots, audit, look

pytestmark = pytest.mark.slow

T = TypeVar("T")

PER_PROXY = 2  # so small that the last place is fought for often
PHONES = ("972500000001", "972500000002", "972500000003")
HOSTS = 4
MOST = 10
SCAN_MS = 5 * MINUTE
UP = {"starting", "qr_ready", "connected", "disconnected"}

phones = st.sampled_from(PHONES)
maybe_phones = st.sampled_from([*PHONES, ""])
anything = st.integers(0, 10**6)
words = st.sampled_from(
    ["qr", "restart_required", "logged_out", "replaced", "passkey_required", "failed", "disconnected", "auth_failure"]
)
commands = st.sampled_from(["start", "stop", "restart", "logout", "delete"])


def one_of(found: Collection[T], pick: int) -> T:
    return sorted(found, key=str)[pick % len(found)]


def is_stale(record: Any) -> bool:
    """Its worker is about to be replaced, so nothing that it says counts."""
    return "launched" in record and record["launched"] != record["generation"]


def only_if(condition: Callable[[Any], object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Not a precondition: who wins a race differs from run to run, and what is drawn must not depend on it."""

    def decorate(move: Callable[..., None]) -> Callable[..., None]:
        @wraps(move)
        def moves(self: Any, **drawn: Any) -> None:
            if condition(self):
                move(self, **drawn)

        return moves

    return decorate


async def asked(move: Awaitable[T]) -> T | SwitchboardError:
    try:
        return await move
    except SwitchboardError as refusal:
        return refusal


class Places(RuleBasedStateMachine):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, client: Redis, prefix: str, folder: Path, logs: list[Any]
    ) -> None:
        super().__init__()
        self.loop, self.client, self.prefix, self.folder, self.logs = loop, client, prefix, folder, logs
        self.now = NOON
        self.world = MemoryWorld()
        self.slots = self.run(look(client, prefix))
        self.known: set[str] = set()
        self.bound: dict[str, tuple[str, int]] = {}
        self.answered: dict[str, tuple[Request, str]] = {}
        self.choices: list[str] = []
        self.moves: list[tuple[str, str | None, str]] = []
        self.starts: list[tuple[str, int]] = []

    @initialize(
        allow_direct=st.booleans(),
        per_phone=st.integers(2, 3),
        proxies=st.sampled_from([0, 1, 2, 2, 3, 3]),
        linked=st.lists(phones, max_size=3),
        scanning=st.lists(maybe_phones, max_size=3),
    )
    def orchestrator(
        self, allow_direct: bool, per_phone: int, proxies: int, linked: list[str], scanning: list[str]
    ) -> None:
        self.allow_direct, self.per_phone = allow_direct, per_phone
        places = SessionRules(per_proxy=PER_PROXY, per_phone=per_phone)
        self.store = Store(self.client, self.prefix, StoreRules(ZoneInfo("UTC"), sessions=places))
        care = ProxyCare(self.store, Prober(), interval_ms=MINUTE, low_below=1, clock=self.clock)
        rules = SessionServiceRules(SCAN_MS, allow_direct, patience_s=0)
        self.service = SessionService(self.store, care, rules, self.clock)
        self.links = LinkEvents(self.store, care, LinkRules(scan_ms=SCAN_MS), self.clock)
        self.fleet = self.new_fleet()
        for host in range(proxies):
            self.add_proxy(host, works=True)
        for phone in linked:
            self.a_scan_goes_well(phone)
        for phone in scanning:
            self.make(phone)
        self.the_fleet_works(len(scanning))

    def new_fleet(self) -> Fleet:
        rules = FleetRules(allow_direct=self.allow_direct, pace=Pace(interval_ms=0, at_once=MOST))
        runner = MemoryRunner(self.world, clock=self.clock)
        folders = SessionFolders(self.folder)
        actions = Actions(self.store, runner, folders, self.describe, self.works, rules, self.clock)
        return Fleet(self.store, runner, actions, rules, self.clock)

    async def describe(self, session: Session) -> WorkerSpec | None:
        gone = session.proxy != DIRECT and await self.store.proxies.url_of(session.proxy or "") is None
        return None if gone else WorkerSpec(session.id, session.generation, {"PROXY": session.proxy or ""})

    async def works(self, _: str) -> bool:
        return True  # what is marked BAD here is marked by a rule, not by a trial

    def clock(self) -> int:
        return self.now

    def run(self, move: Awaitable[T]) -> T:
        return self.loop.run_until_complete(move)

    def teardown(self) -> None:
        """In the end all comes to rest, and nobody holds what nobody needs."""
        try:
            for _ in range(4 * MOST):
                self.now += MINUTE
                self.run(self.round())
            self.run(audit(self.client, self.prefix, PER_PROXY, self.per_phone, self.known, settled=True))
        finally:
            self.run(clear(self.client, self.prefix))

    # After every single move, all is looked at.

    def do(self, move: Awaitable[T], at_fault: Collection[str | None] = ()) -> T | SwitchboardError:
        """`at_fault` are proxies that a session was found to be unable to use, whatever became of them since."""
        before = self.slots
        result = self.run(asked(move))
        self.now += 1
        self.slots = self.run(audit(self.client, self.prefix, PER_PROXY, self.per_phone, self.known))
        self.known |= self.slots.sessions.keys()
        for phone in PHONES:
            self.check_own_proxy(before, phone, at_fault)
        for session in self.slots.sessions:
            self.check_worker_is_replaced(before, session)
            self.check_direct(before, session)
        broken = [log for log in self.logs if log["event"] == "fleet.action_failed"]
        assert not broken, broken
        self.logs.clear()
        return result

    def check_own_proxy(self, before: Slots, phone: str, at_fault: Collection[str | None]) -> None:
        """A phone leaves its proxy only because that failed."""
        old, new = before.sticky(phone), self.slots.sticky(phone)
        if old != new and old is not None:
            excused = old in at_fault or not (before.is_good(old) and self.slots.is_good(old))
            assert excused, f"{phone} went from {old}, which works, to {new}"
        assert old == new or new in before.proxies, f"{phone} got {new}, which is not in the pool"

    def check_worker_is_replaced(self, before: Slots, session: str) -> None:
        """A worker never changes its proxy: another proxy is another generation."""
        if session not in before.sessions:
            self.bound.pop(session, None)
        else:
            assert self.slots.generation(session) >= before.generation(session), f"{session} got younger"
        proxy = self.slots.proxy_of(session)
        if proxy is None:
            return
        generation = self.slots.generation(session)
        was, then = self.bound.get(session, (proxy, generation))
        assert proxy == was or generation > then, f"{session} went from {was} to {proxy} in generation {generation}"
        self.bound[session] = proxy, generation

    def check_direct(self, before: Slots, session: str) -> None:
        now, then = self.slots.sessions[session], before.sessions.get(session, {})
        if now.get("proxy") == DIRECT and now["boundAt"] != then.get("boundAt"):
            assert self.allow_direct
            assert not (before.proxies and self.slots.proxies), f"{session} goes past the pool"

    # The pool.

    @rule(host=st.integers(0, HOSTS - 1), works=st.booleans())
    def add_proxy(self, host: int, works: bool) -> None:
        url = ProxyUrl(f"p{host}.example", 1080)
        self.do(self.store.proxies.add(url, "api", self.now, None if works else "timeout"))

    @rule(pick=anything, works=st.booleans())
    @only_if(lambda self: self.slots.proxies)
    def mark_proxy(self, pick: int, works: bool) -> None:
        proxy = one_of(self.slots.proxies, pick)
        self.do(self.store.proxies.mark(proxy, ok=works, reason="timeout", now=self.now))
        assert self.slots.is_good(proxy) == works

    def the_pool_grows(self) -> None:
        for host in range(HOSTS):
            self.add_proxy(host, works=True)

    @rule()
    def all_proxies_work_again(self) -> None:
        for proxy in self.slots.proxies:
            self.do(self.store.proxies.mark(proxy, ok=True, reason="", now=self.now))

    @rule(pick=anything, force=st.booleans())
    @only_if(lambda self: self.slots.proxies)
    def remove_proxy(self, pick: int, force: bool) -> None:
        proxy = one_of(self.slots.proxies, pick)
        used = bool(self.slots.on(proxy))
        refusal = self.do(self.store.proxies.remove(proxy, force=force, now=self.now))
        assert isinstance(refusal, ProxyInUse) == (used and not force)
        assert (proxy in self.slots.proxies) == (used and not force)

    # New sessions.

    def free(self, slots: Slots) -> dict[str, int]:
        """Proxies that work and have room, and how many are on each."""
        loads = {proxy: len(slots.on(proxy)) for proxy in slots.proxies if slots.is_good(proxy)}
        return {proxy: load for proxy, load in loads.items() if load < PER_PROXY}

    def places_for(self, slots: Slots, phone: str, override: str = "") -> set[str]:
        """The proxies that a new session may get; of those equally loaded, any will do."""
        free = self.free(slots)
        own = slots.sticky(phone)
        if override:
            return {override} & free.keys()
        if own in free:
            return {own}
        if not slots.proxies and self.allow_direct:
            return {DIRECT}
        return {proxy for proxy, load in free.items() if load == min(free.values())}

    @rule(phone=maybe_phones, own_id=st.sampled_from(["", "mine"]), override=st.sampled_from([None, None, 0, 1, 2]))
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def provision(self, phone: str, own_id: str, override: int | None) -> None:
        proxies = self.slots.proxies
        self.make(phone, own_id, "" if override is None or not proxies else one_of(proxies, override))

    def make(self, phone: str = "", own_id: str = "", demanded: str = "") -> str | None:
        before = self.slots
        made = self.do(self.service.provision(Request(own_id, phone, demanded)))
        places = self.places_for(before, phone, demanded)
        refusals: dict[type[SwitchboardError], bool] = {
            NoProxyAvailable: not places,
            SessionExists: own_id in before.sessions,
            TooManySessions: len(before.of(phone)) >= self.per_phone,
        }
        if any(refusals.values()):
            assert isinstance(made, SwitchboardError), f"{made} was made in spite of {refusals}"
            assert refusals[type(made)], f"{made!r} is not the reason"
            assert before == self.slots
            return None
        assert isinstance(made, str), made
        assert made not in before.sessions
        assert self.slots.proxy_of(made) in places, f"{made} got {self.slots.proxy_of(made)} and not one of {places}"
        return made

    @rule(phone=maybe_phones, once=st.sampled_from(["one", "two"]), own_id=st.sampled_from(["", "yours"]))
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def provision_once(self, phone: str, once: str, own_id: str) -> None:
        made = self.do(self.service.provision(Request(own_id, phone), once))
        if isinstance(made, str):
            self.answered.setdefault(once, (Request(own_id, phone), made))

    @rule(pick=anything)
    @only_if(lambda self: self.answered)
    def provision_again(self, pick: int) -> None:
        """The answer was lost, perhaps: whatever has changed since, it is the same session."""
        before = self.slots
        once = one_of(self.answered, pick)
        request, session = self.answered[once]
        assert self.do(self.service.provision(request, once)) == session
        assert before.sessions == self.slots.sessions

    @rule(phone=maybe_phones, many=st.integers(2, 5))
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def race_for_places(self, phone: str, many: int) -> None:
        before = self.slots
        self.do(self.together(self.service.provision(Request(phone=phone)) for _ in range(many)))
        room = sum(PER_PROXY - load for load in self.free(before).values())
        if not before.proxies:
            room = many if self.allow_direct else 0
        if phone:
            room = min(room, max(0, self.per_phone - len(before.of(phone))))
        assert len(self.slots.sessions) - len(before.sessions) == min(many, room)

    @staticmethod
    async def together(moves: Iterable[Awaitable[T]]) -> list[T | SwitchboardError]:
        return list(await asyncio.gather(*(asked(move) for move in moves)))

    @rule()
    def choose_and_come_late(self) -> None:
        choice = choose(self.run(self.store.proxies.all()))
        self.choices.append(choice.id if isinstance(choice, Proxy) else DIRECT)

    @rule(pick=anything, phone=maybe_phones)
    @only_if(lambda self: self.choices and self.allow_direct and len(self.slots.sessions) < MOST)
    def provision_with_an_old_choice(self, pick: int, phone: str) -> None:
        before = self.slots
        proxy = self.choices.pop(pick % len(self.choices))
        made = self.do(
            self.store.sessions.provision(
                session="", name="", phone=phone, proxy=proxy, now=self.now, scan_by=self.now + SCAN_MS, device="Test"
            )
        )
        assert not isinstance(made, SwitchboardError)
        room = proxy in self.free(before) or (proxy == DIRECT and not before.proxies)
        full = len(before.of(phone)) >= self.per_phone
        assert made[0] == ("TOO_MANY" if full else "OK" if room else "NO_ROOM")

    # The fleet does its work, or dies over it.

    async def round(self) -> None:
        await self.fleet.round()
        await self.fleet.settled()

    @rule(rounds=st.integers(1, 4))
    def the_fleet_works(self, rounds: int) -> None:
        for _ in range(rounds):
            before = self.slots
            self.do(self.round())
            for session in before.sessions.keys() & self.slots.sessions.keys():
                self.check_placed_where_it_was(before, session)

    def check_placed_where_it_was(self, before: Slots, session: str) -> None:
        old, new = before.proxy_of(session), self.slots.proxy_of(session)
        own = self.slots.sticky(self.slots.sessions[session].get("phone", "?"))
        if new not in (None, old) and own != old and self.slots.is_good(own):
            # Others of the same round may have taken its last place, or have left only after the choice.
            full = max(len(slots.on(own or "")) for slots in (before, self.slots)) >= PER_PROXY
            assert new == own or full, f"{session} got {new} instead of {own}"
        if new not in (None, old, DIRECT) and "linked" in self.slots.sessions[session]:
            assert self.slots.is_good(own), f"{session} went to {new}, and its phone stays with {own}"

    @rule(steps=st.sampled_from([0, 1, 3, 10, 30]))
    def the_orchestrator_dies(self, steps: int) -> None:
        self.do(self.die(steps))
        self.fleet = self.new_fleet()

    async def die(self, steps: int) -> None:
        work = asyncio.create_task(self.fleet.round())
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await self.fleet.abandon()

    @rule(pick=anything)
    @only_if(lambda self: self.world.workers)
    def a_worker_crashes(self, pick: int) -> None:
        self.world.crash(one_of(self.world.workers, pick))

    @rule()
    def the_machine_restarts(self) -> None:
        self.world.workers.clear()
        self.fleet = self.new_fleet()

    @rule(pick=anything)
    def plan_a_start(self, pick: int) -> None:
        """Of a session that has a place and no worker; by the time it is carried out, much may have changed."""
        idle = [
            session
            for session, record in self.slots.sessions.items()
            if record["status"] in {"starting", "disconnected"}
            and "proxy" in record
            and session not in self.world.workers
        ]
        if idle:
            session = one_of(idle, pick)
            self.starts.append((session, self.slots.generation(session)))

    @rule(pick=anything, overtaken_by=st.sampled_from(["", "", "stop", "restart", "delete"]))
    @only_if(lambda self: self.starts)
    def launch_late_and_never_start(self, pick: int, overtaken_by: str) -> None:
        session, generation = self.starts.pop(pick % len(self.starts))
        if overtaken_by and session in self.slots.sessions:
            self.ask_of(session, overtaken_by)
        record = self.slots.sessions.get(session, {})
        launched = self.do(self.store.sessions.launch(session, generation, self.now))
        wanted = record.get("wanted") == "run" and record.get("status") != "connected"
        assert launched == (wanted and record.get("generation") == str(generation))

    @rule(ms=st.sampled_from([1000, MINUTE, SCAN_MS]))
    def time_goes_by(self, ms: int) -> None:
        self.now += ms

    # Workers speak; those of an older generation in vain.

    def speakers(self) -> list[str]:
        return [session for session, record in self.slots.sessions.items() if "launched" in record]

    def event(self, session: str, at: int | None = None) -> EventBody:
        return EventBody(sessionId=session, type="ANY", timestamp=self.now if at is None else at, data={})

    def link(self, session: str, phone: str) -> Coroutine[Any, Any, None]:
        data = ConnectedData(phoneNumber=phone, jid=f"{phone}@s.whatsapp.net", fingerprint="Test")
        return self.links.connected(self.event(session), data)

    @rule(pick=anything, phone=phones, as_declared=st.booleans())
    @only_if(lambda self: self.speakers())
    def connected(self, pick: int, phone: str, as_declared: bool) -> None:
        session = one_of(self.speakers(), pick)
        record = self.slots.sessions[session]
        if as_declared:
            phone = record.get("declared") or record.get("phone") or phone
        self.connect_and_check(session, phone)

    def connect_and_check(self, session: str, phone: str) -> None:
        before, record = self.slots, self.slots.sessions[session]
        self.do(self.link(session, phone))
        after = self.slots.sessions[session]
        if is_stale(record) or record["status"] not in UP:
            assert before == self.slots
            return
        if "linked" in record and record["phone"] != phone:
            assert (after["status"], after["wanted"], after["phone"]) == ("failed", "stop", record["phone"])
            assert before.sticky(phone) == self.slots.sticky(phone)
            return
        if session not in before.of(phone) and len(before.of(phone)) >= self.per_phone:
            assert (after["status"], after["wanted"]) == ("failed", "stop")
            assert before.sticky(phone) == self.slots.sticky(phone)
            return
        proxy, own = record["proxy"], before.sticky(phone)
        keeps = proxy == DIRECT or own in (None, proxy) or not before.is_good(own)
        moves = not keeps and len(before.on(own or "")) < PER_PROXY
        assert (after["status"], after["phone"]) == ("starting" if moves else "connected", phone)
        assert after["proxy"] == (own if moves else proxy)
        assert self.slots.sticky(phone) == (proxy if keeps and proxy != DIRECT else own)
        assert self.slots.generation(session) == before.generation(session) + moves

    @rule(phone=phones)
    def a_scan_goes_well(self, phone: str) -> None:
        """What mostly happens."""
        if len(self.slots.sessions) < MOST and (session := self.make(phone)):
            self.scan(session, phone)

    def scan(self, session: str, phone: str) -> None:
        self.run_workers([session])
        self.say(session, "qr")
        self.connect_and_check(session, phone)

    def run_workers(self, sessions: Iterable[str]) -> None:
        for _ in range(MOST):
            if set(sessions) <= set(self.speakers()):
                return
            self.do(self.round())

    @rule(phone=phones, many=st.integers(2, 4))
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def race_of_scans(self, phone: str, many: int) -> None:
        """One phone scans several codes at once, more than it may have perhaps."""
        made = [session for session in (self.make() for _ in range(many)) if session]
        self.run_workers(made)
        before = self.slots
        self.do(self.together(self.link(session, phone) for session in made))
        linked = [session for session in made if "linked" in self.slots.sessions[session]]
        assert len(linked) == min(len(made), max(0, self.per_phone - len(before.of(phone))))

    @rule(phone=phones, fault=st.booleans())
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def a_phone_is_on_two_proxies(self, phone: str, fault: bool) -> None:
        """Its own had no room for another session of it, which goes home later or has to move on."""
        self.the_pool_grows()
        self.a_scan_goes_well(phone)
        own = self.slots.sticky(phone) or ""
        others = [s for _ in range(PER_PROXY) if own in self.free(self.slots) and (s := self.make(demanded=own))]
        session = self.make()
        if not others or not session:
            return
        self.scan(session, phone)
        if fault:
            self.report_proxy(session, fresh=True)
            self.the_fleet_works(3)
        else:
            self.ask_of(others[0], "stop")
            self.connect_and_check(session, phone)

    @rule()
    def all_connect_again(self) -> None:
        """Those on a strange proxy go home if there is room by now."""
        for session in self.speakers():
            if "linked" in self.slots.sessions[session]:
                self.connect_and_check(session, self.slots.sessions[session]["phone"])

    @rule(phone=phones, picks=st.lists(anything, min_size=2, max_size=4))
    @only_if(lambda self: len(self.speakers()) > 1)
    def race_to_link(self, phone: str, picks: list[int]) -> None:
        before = self.slots
        sessions = {one_of(self.speakers(), pick) for pick in picks}
        self.do(self.together(self.link(session, phone) for session in sorted(sessions)))
        for session in sessions:
            if is_stale(before.sessions[session]):
                assert before.sessions[session] == self.slots.sessions[session]

    @rule(pick=anything, fresh=st.booleans())
    @only_if(lambda self: self.speakers())
    def proxy_error(self, pick: int, fresh: bool) -> None:
        placed = [session for session in self.speakers() if self.slots.proxy_of(session)]
        self.report_proxy(one_of(placed or self.speakers(), pick), fresh)

    def report_proxy(self, session: str, fresh: bool) -> None:
        before = self.slots
        record = before.sessions[session]
        at = self.now if fresh else int(record.get("boundAt", self.now)) - 1
        self.do(self.links.proxy_error(self.event(session, at), ProxyErrorData(code="timeout", detail="")))
        late = not fresh and "boundAt" in record
        if late or is_stale(record) or record["status"] not in UP:
            assert before == self.slots
        else:
            assert self.slots.sessions[session]["status"] == "disconnected"
            assert not self.slots.is_good(record["proxy"])
            assert self.slots.proxy_of(session) == record["proxy"]

    @rule(pick=anything)
    @only_if(lambda self: self.speakers())
    def a_proxy_fails_and_all_on_it_move(self, pick: int) -> None:
        session = one_of(self.speakers(), pick)
        together = sorted(self.slots.on(self.slots.proxy_of(session) or ""))
        for one in together:
            if one in self.speakers():
                self.report_proxy(one, fresh=True)
        self.the_fleet_works(2 * len(together))

    def saying(self, session: str, word: str) -> Coroutine[Any, Any, object]:
        event = self.event(session)
        if word == "qr":
            return self.links.qr(event, QrData(qr="2@x"))
        if word in {"restart_required", "logged_out", "replaced"}:
            return self.links.disconnected(event, DisconnectedData(reason=word))
        if word == "auth_failure":
            return self.links.auth_failure(event, AuthFailureData(code="405"))
        status: Any = word
        return self.links.status_change(event, StatusData(status=status))

    def say(self, session: str, word: str) -> None:
        before = self.slots
        self.do(self.saying(session, word))
        if is_stale(before.sessions[session]):
            assert before == self.slots

    @rule(pick=anything, word=words)
    @only_if(lambda self: self.speakers())
    def a_worker_speaks(self, pick: int, word: str) -> None:
        self.say(one_of(self.speakers(), pick), word)

    # Sessions move, as the fleet would move them, and later.

    @rule(pick=anything)
    @only_if(lambda self: self.slots.sessions)
    def choose_another(self, pick: int) -> None:
        session = one_of(self.slots.sessions, pick)
        old = self.slots.proxy_of(session)
        if self.slots.is_good(old) or self.slots.sessions[session]["status"] == "connected":
            return
        own = self.slots.sticky(self.slots.sessions[session].get("phone", "?"))
        choice = choose(self.run(self.store.proxies.all()), sticky=own, leaving=old)
        if isinstance(choice, Proxy):
            self.moves.append((session, old, choice.id))

    @rule(pick=anything)
    @only_if(lambda self: self.moves)
    def move_late(self, pick: int) -> None:
        before = self.slots
        session, old, new = self.moves.pop(pick % len(self.moves))
        outcome = self.do(self.store.sessions.assign(session, old, new, self.now), at_fault=[old])
        record = before.sessions.get(session, {})
        wanted = record.get("wanted") == "run" and record.get("proxy") == old
        if record.get("status") == "connected" and old != DIRECT:  # failover only follows a fault
            wanted = False
        assert outcome == ("STALE" if not wanted else "OK" if new in self.free(before) else "NO_ROOM")
        if outcome != "OK":
            assert before == self.slots
        else:
            assert self.slots.proxy_of(session) == new
            assert self.slots.sessions[session]["status"] == "starting"
            self.check_phone_follows(before, session, old, new)

    def check_phone_follows(self, before: Slots, session: str, old: str | None, new: str) -> None:
        """The phone goes along if its own proxy is the one that failed, or does not work either."""
        phone = before.sessions[session].get("phone", "?")
        own = before.sticky(phone)
        stays = "linked" not in before.sessions[session] or (own != old and before.is_good(own))
        assert self.slots.sticky(phone) == (own if stays else new)

    @rule(picks=st.lists(anything, min_size=1, max_size=4), to=st.lists(anything, min_size=1, max_size=3))
    @only_if(lambda self: self.slots.sessions and self.slots.proxies)
    def race_to_move(self, picks: list[int], to: list[int]) -> None:
        """Several sessions to the same places, or one to several: each moves once, at most."""
        wanted = [s for s, record in self.slots.sessions.items() if record["wanted"] == "run"]
        sessions = {one_of(wanted or self.slots.sessions, pick) for pick in picks}
        targets = {one_of(self.free(self.slots) or self.slots.proxies, pick) for pick in to}
        asks = [
            (s, self.slots.proxy_of(s), t)
            for s in sorted(sessions)
            for t in sorted(targets)
            if t != self.slots.proxy_of(s)
        ]
        moves = self.together(self.store.sessions.assign(s, old, new, self.now) for s, old, new in asks)
        outcomes = self.do(moves, at_fault=[old for _, old, _ in asks])
        assert isinstance(outcomes, list)
        moved = [ask[0] for ask, outcome in zip(asks, outcomes, strict=True) if outcome == "OK"]
        assert len(moved) == len(set(moved)), f"moved twice: {moved}"

    @rule(pick=anything)
    @only_if(lambda self: any(record["wanted"] == "run" for record in self.slots.sessions.values()))
    def two_orchestrators_move_the_same(self, pick: int) -> None:
        self.the_pool_grows()
        session = one_of([s for s, record in self.slots.sessions.items() if record["wanted"] == "run"], pick)
        old = self.slots.proxy_of(session)
        targets = sorted(self.free(self.slots).keys() - {old})[:2]
        moves = self.together(self.store.sessions.assign(session, old, new, self.now) for new in targets)
        stays = self.slots.sessions[session]["status"] == "connected" and old != DIRECT
        outcomes = ["STALE", "STALE"] if stays else ["OK", "STALE"]
        assert self.do(moves, at_fault=[old]) == outcomes[: len(targets)]

    # People.

    def command(self, name: str, session: str) -> Coroutine[Any, Any, object]:
        asks: dict[str, Callable[[str], Coroutine[Any, Any, object]]] = {
            "start": self.service.start,
            "stop": self.service.stop,
            "restart": self.service.restart,
            "logout": self.service.logout,
            "delete": self.service.delete,
        }
        return asks[name](session)

    @rule(pick=anything, name=commands)
    @only_if(lambda self: self.slots.sessions)
    def ask(self, pick: int, name: str) -> None:
        self.ask_of(one_of(self.slots.sessions, pick), name)

    def ask_of(self, session: str, name: str) -> None:
        before = self.slots
        refusal = self.do(self.command(name, session))
        if isinstance(refusal, SwitchboardError):
            assert before == self.slots
        elif name in {"start", "restart"}:
            assert self.slots.generation(session) > before.generation(session)

    @rule(phone=phones, many=st.integers(0, 3), names=st.lists(commands, min_size=1, max_size=2))
    @only_if(lambda self: len(self.slots.sessions) < MOST)
    def others_come_while_it_is_stopped(self, phone: str, many: int, names: list[str]) -> None:
        session = self.make(phone)
        if session:
            self.ask_of(session, "stop")
            if many:
                self.race_for_places(phone=phone, many=many)
            for name in names:
                self.ask_of(session, name)

    @rule(pick=anything, names=st.lists(commands, min_size=2, max_size=3), phone=maybe_phones, fleet=st.booleans())
    @only_if(lambda self: self.slots.sessions)
    def ask_for_several_things_at_once(self, pick: int, names: Sequence[str], phone: str, fleet: bool) -> None:
        session = one_of(self.slots.sessions, pick)
        moves: list[Awaitable[object]] = [self.command(name, session) for name in names]
        if phone and session in self.speakers():
            moves.insert(pick % 3, self.link(session, phone))
        if fleet:
            moves.insert(pick % 2, self.round())
        self.do(self.together(moves))

    @rule(pick=anything)
    @only_if(lambda self: any(r["wanted"] == "delete" for r in self.slots.sessions.values()))
    def forget(self, pick: int) -> None:
        session = one_of([s for s, r in self.slots.sessions.items() if r["wanted"] == "delete"], pick)
        self.world.workers.pop(session, None)
        assert self.do(self.store.sessions.forget(session, self.now)) is True
        assert session not in self.slots.sessions

    @rule(pick=anything)
    @only_if(lambda self: self.slots.sessions)
    def forget_what_nobody_wants_gone(self, pick: int) -> None:
        session = one_of(self.slots.sessions, pick)
        if self.slots.sessions[session]["wanted"] != "delete":
            before = self.slots
            assert self.do(self.store.sessions.forget(session, self.now)) is False
            assert before == self.slots


def test_whatever_happens_every_place_is_held_by_one_session(valkey_url: str, tmp_path: Path) -> None:
    """On CI always the same moves; elsewhere others each time, or those of `--hypothesis-seed`."""
    loop = asyncio.new_event_loop()
    client = connect(valkey_url)
    numbers = count()
    try:
        with capture_logs() as logs:
            machine: Any = lambda: Places(  # noqa: E731
                loop, client, f"places-{os.getpid()}-{next(numbers)}:", tmp_path, logs
            )
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=80,
                    stateful_step_count=50,
                    deadline=None,
                    derandomize=bool(os.environ.get("CI")),
                    database=None,
                    suppress_health_check=list(HealthCheck),
                    phases=[Phase.generate],
                ),
            )
    finally:
        loop.run_until_complete(client.aclose())
        loop.close()
