"""The store's moves in any order, with leases that run out and dispatchers that die half-way.

Whatever happens, every message is in exactly one place, no status moves backwards, and no cap is passed.
"""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from switchboard.domain.hours import ALWAYS, Hours, local
from switchboard.domain.ids import message_id_of, whatsapp_id
from switchboard.domain.messages import Status
from switchboard.domain.pacing import Expire, HandOver, Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.retry import FailureClass
from switchboard.domain.trust import STANDARD, Overrides, TrustTable
from switchboard.store import Store
from switchboard.store.client import connect
from switchboard.store.intake import Accepted, Entry, IntakeRules, Row
from switchboard.store.messages import MessageRules
from switchboard.store.outbox import Claimed
from switchboard.store.pace import PaceRules, Planned
from switchboard.store.store import StoreRules
from tests.support.driver import DAY, HOUR, MINUTE, NOON, Driver
from tests.support.places import Audit, clear

pytestmark = pytest.mark.slow

T = TypeVar("T")

ROOM = 4  # so small that the overflow is met often
RULES = StoreRules(
    ZoneInfo("UTC"),
    intake=IntakeRules(room=ROOM),
    pace=PaceRules(room=ROOM),
    messages=MessageRules(room=ROOM),
)
RECIPIENT_CAP = 2
POLICY = Policy(TrustTable(STANDARD), recipients=RecipientRules(RECIPIENT_CAP, ALWAYS))
PHONES = ("972500000001", "972500000002")
SESSIONS = {"a": PHONES[0], "a2": PHONES[0], "b": PHONES[1]}
PEOPLE = tuple(f"87070000000{n}" for n in range(5))
TIGHT = Overrides(daily=5, per_minute=2, base_delay_ms=5_000, jitter_ms=3_000, hours=Hours.parse("08:00-22:00"))
LOOSE = Overrides(daily=8, per_minute=4, base_delay_ms=0, jitter_ms=0, hours=ALWAYS)
NIGHT = Overrides(daily=3, per_minute=1, hours=Hours.parse("20:00-04:00"))

MAY_BECOME = {
    "scheduled": {"scheduled", "queued", "cancelled"},
    "queued": {"queued", "sending", "cancelled", "sent", "delivered", "read"},
    "sending": {"sending", "queued", "failed", "dead", "unconfirmed", "sent", "delivered", "read"},
    "failed": {"failed", "queued", "cancelled", "sent", "delivered", "read"},
    "dead": {"dead", "queued", "sent", "delivered", "read"},
    "unconfirmed": {"unconfirmed", "queued", "sent", "delivered", "read"},
    "cancelled": {"cancelled", "sent", "delivered", "read"},
    "sent": {"sent", "delivered", "read"},
    "delivered": {"delivered", "read"},
    "read": {"read"},
}

sessions = st.sampled_from(sorted(SESSIONS))
phones = st.sampled_from(PHONES)
people = st.sampled_from(PEOPLE)
senders = st.sampled_from([*sorted(SESSIONS), None])
priorities = st.integers(1, 3)
anything = st.integers(0, 10**6)
limits = st.sampled_from([TIGHT, LOOSE, NIGHT])


@dataclass(frozen=True)
class Handed:
    """A hand-over as this test saw it, until it is known whether it counts."""

    phone: str
    message_id: str
    to: str
    at: int
    attempts: int


class Moves(RuleBasedStateMachine):
    def __init__(self, loop: asyncio.AbstractEventLoop, client: Redis, prefix: str) -> None:
        super().__init__()
        self.loop = loop
        self.driver = Driver(Store(client, prefix, RULES), client, prefix, POLICY)
        self.accepted: dict[str, Row] = {}
        self.batches: list[str] = []
        self.requests: list[Entry] = []
        self.claims: list[Claimed] = []
        self.plans: list[Planned] = []
        self.counted: list[Handed] = []
        self.limits: dict[str, Overrides] = {}
        self.statuses: dict[str, str] = {}
        self.attempts: Counter[str] = Counter()

    def run(self, move: Awaitable[T]) -> T:
        return self.loop.run_until_complete(move)

    def teardown(self) -> None:
        self.run(clear(self.driver.client, self.driver.prefix))

    @property
    def now(self) -> int:
        return self.driver.now

    @property
    def store(self) -> Store:
        return self.driver.store

    @initialize(first=limits, second=limits)
    def fleet(self, first: Overrides, second: Overrides) -> None:
        self.driver.now = NOON
        for session, phone in SESSIONS.items():
            self.run(self.driver.link(session, phone, limits=None))
        for phone, given in zip(PHONES, (first, second), strict=True):
            self.override(phone, given)

    # Messages come in.

    def accept(self, entry: Entry) -> None:
        result = self.run(self.driver.enqueue(entry))
        if isinstance(result, Accepted):
            self.accepted.update((row.id, row) for row in entry.rows)
            if entry.batch:
                self.batches.append(entry.batch[0])
            self.requests.append(entry)

    @rule(session=senders, to=people, priority=priorities, deferrable=st.booleans())
    def send(self, session: str | None, to: str, priority: int, deferrable: bool) -> None:
        key = f"key-{len(self.requests)}"
        row = self.driver.row(to, priority)
        self.accept(Entry([row], session=session, deferrable=deferrable, idempotency=(key, "body")))

    @rule(session=senders, to=people, after=st.sampled_from([1, 1000, MINUTE, HOUR, DAY]))
    def schedule(self, session: str | None, to: str, after: int) -> None:
        self.accept(Entry([self.driver.row(to, due=self.now + after)], session=session))

    @rule(session=senders, size=st.integers(1, 5), spread=st.sampled_from([0, 1000, HOUR]), first=anything)
    def send_batch(self, session: str | None, size: int, spread: int, first: int) -> None:
        rows = [
            self.driver.row(PEOPLE[(first + i) % len(PEOPLE)], due=self.now + i * spread / size) for i in range(size)
        ]
        self.accept(Entry(rows, session=session, batch=(f"batch_{len(self.batches)}", spread)))

    @precondition(lambda self: self.requests)
    @rule(pick=anything)
    def repeat_a_request(self, pick: int) -> None:
        entry = self.requests[pick % len(self.requests)]
        if entry.idempotency:
            again = self.run(self.driver.enqueue(replace(entry, rows=[self.driver.row(entry.rows[0].to)])))
            assert isinstance(again, Accepted)
            assert again.message_id == entry.rows[0].id

    # Time goes by, and dispatchers work, die and come late.

    @rule(by=st.sampled_from([1, 1000, 5_000, 31_000, MINUTE, 10 * MINUTE, HOUR, 12 * HOUR]))
    def time_goes_by(self, by: int) -> None:
        self.driver.now += by

    @rule()
    def dispatch(self) -> None:
        before = self.now
        self.handed(list(self.run(self.driver.round()).handed))
        assert self.now == before

    @rule()
    def dispatch_all_that_is_due(self) -> None:
        for _ in range(40):
            done = self.run(self.driver.round())
            self.handed(list(done.handed))
            if not done.busy:
                return
        raise AssertionError("the dispatcher does not come to rest")

    @rule()
    def take_and_die(self) -> None:
        self.run(self.store.pace.take(self.now))

    @rule()
    def take_and_come_late(self) -> None:
        self.plans += [self.driver.planned(view) for view in self.run(self.store.pace.take(self.now)).accounts]

    @rule(phone=phones)
    def plan_beside_another_dispatcher(self, phone: str) -> None:
        self.plans.append(self.run(self.driver.plan_one(phone)))

    @precondition(lambda self: self.plans)
    @rule(pick=anything)
    def carry_out_an_old_plan(self, pick: int) -> None:
        planned = self.plans.pop(pick % len(self.plans))
        if not isinstance(planned.plan, Expire):
            outcome = self.run(self.driver.commit(planned))
            if outcome == "OK" and isinstance(planned.plan, HandOver):
                self.handed([planned.plan])

    @rule()
    def route(self) -> None:
        self.run(self.driver.route())

    # Workers.

    @rule(instance=st.sampled_from(["one", "two"]))
    def work(self, instance: str) -> None:
        """What mostly happens: something is due, and is claimed."""
        self.dispatch_all_that_is_due()
        self.every_message_is_in_one_place()
        for session in SESSIONS:
            self.claim(session, instance)

    @rule(session=sessions, spells=st.integers(2, 7), seconds=st.sampled_from([1, 9]))
    def a_good_spell(self, session: str, spells: int, seconds: int) -> None:
        """Messages come, leave and arrive, as fast as the limits allow."""
        for turn in range(spells):
            self.send(session, PEOPLE[turn % len(PEOPLE)], 1, deferrable=False)
            self.work("one")
            for claim in self.claims[-2:]:
                message = self.run(self.driver.message(claim.message_id))
                self.run(self.driver.confirm(message.id, Status.SENT, message.session or ""))
            self.every_message_is_in_one_place()
            self.driver.now += seconds * 1000

    @precondition(lambda self: self.claims)
    @rule(status=st.sampled_from([Status.SENT, Status.DELIVERED]))
    def confirm_the_last_one(self, status: Status) -> None:
        message = self.run(self.driver.message(self.claims[-1].message_id))
        self.run(self.driver.confirm(message.id, status, message.session or ""))

    @rule(session=sessions, instance=st.sampled_from(["one", "two"]))
    def claim(self, session: str, instance: str) -> None:
        claim = self.run(self.driver.claim(session, instance))
        if claim is None:
            return
        row = self.accepted[claim.message_id]
        assert (claim.to, claim.text) == (row.to, row.text)
        assert message_id_of(whatsapp_id(claim.message_id)) == row.id
        if claim not in self.claims:
            self.attempts[claim.message_id] += 1
            self.claims.append(claim)
        assert claim.attempt == self.attempts[claim.message_id]

    @precondition(lambda self: self.claims)
    @rule(pick=anything, session=sessions, status=st.sampled_from([Status.SENT, Status.DELIVERED, Status.READ]))
    def confirm(self, pick: int, session: str, status: Status) -> None:
        """The current attempt or one of long ago, by its own worker or by a stranger."""
        claim = self.claims[pick % len(self.claims)]
        self.run(self.driver.confirm(claim.message_id, status, session))

    @precondition(lambda self: self.claims)
    @rule(pick=anything, kind=st.sampled_from(FailureClass), hours=st.sampled_from([None, 1]))
    def fail(self, pick: int, kind: FailureClass, hours: int | None) -> None:
        until = None if hours is None else self.now + hours * HOUR
        self.run(self.driver.nack(self.claims[pick % len(self.claims)], kind, until))

    @precondition(lambda self: self.claims)
    @rule(kind=st.sampled_from(FailureClass))
    def fail_the_last_one(self, kind: FailureClass) -> None:
        self.run(self.driver.nack(self.claims[-1], kind))

    @precondition(lambda self: self.accepted)
    @rule(pick=anything, session=sessions)
    def confirm_what_may_never_have_left(self, pick: int, session: str) -> None:
        message_id = list(self.accepted)[pick % len(self.accepted)]
        settled = self.run(self.driver.confirm(message_id, Status.SENT, session))
        assert not settled.changed or self.attempts[message_id]

    # People.

    @precondition(lambda self: self.accepted)
    @rule(pick=anything)
    def cancel(self, pick: int) -> None:
        message_id = list(self.accepted)[pick % len(self.accepted)]
        self.run(self.store.messages.cancel([message_id], self.now, "test"))

    @precondition(lambda self: self.batches)
    @rule(pick=anything, to_the_end=st.booleans())
    def cancel_batch(self, pick: int, to_the_end: bool) -> None:
        batch = self.batches[pick % len(self.batches)]
        self.run(self.store.batches.mark_cancelled(batch, self.now))
        if to_the_end:
            ids = self.run(self.store.batches.rows(batch, 0, 100))
            self.run(self.store.messages.cancel(ids, self.now, "test"))

    @precondition(lambda self: any(s in {"dead", "unconfirmed"} for s in self.statuses.values()))
    @rule(pick=anything, retry=st.booleans())
    def decide_on_a_dead_letter(self, pick: int, retry: bool) -> None:
        dead = [i for i, status in self.statuses.items() if status in {"dead", "unconfirmed"}]
        decide = self.store.messages.redrive if retry else self.store.messages.discard
        self.run(decide(dead[pick % len(dead)], self.now))

    @rule(session=sessions)
    def connect(self, session: str) -> None:
        self.run(self.store.sessions.connect(session, SESSIONS[session], self.now))

    @rule(session=sessions)
    def disconnect(self, session: str) -> None:
        self.run(self.store.sessions.disconnect(session, self.now))

    @rule(phone=phones)
    def link_to_another_phone(self, phone: str) -> None:
        self.run(self.store.sessions.connect("a2", phone, self.now))

    @rule(phone=phones, hours=st.sampled_from([None, 1]))
    def pause(self, phone: str, hours: int | None) -> None:
        until = None if hours is None else self.now + hours * HOUR
        self.run(self.store.accounts.pause(phone, until, self.now))

    @rule(phone=phones)
    def resume(self, phone: str) -> None:
        self.run(self.store.accounts.resume(phone, self.now))

    @rule(phone=phones, given=limits)
    def override(self, phone: str, given: Overrides) -> None:
        self.run(self.store.accounts.override(phone, given, None, self.now))
        self.limits[phone] = given

    @rule(to=people, out=st.booleans())
    def opt(self, to: str, out: bool) -> None:
        people = self.store.suppressions
        self.run(people.add(to) if out else people.remove(to))

    # What must hold.

    def handed(self, hand_overs: list[HandOver]) -> None:
        if hand_overs:  # a message given back in the same round made room for these
            self.forget_what_was_given_back(self.run(self.driver.audit()))
        for hand in hand_overs:
            message = self.run(self.driver.message(hand.message_id))
            assert message.account is not None
            one = Handed(message.account, message.id, message.to, self.now, message.attempts)
            # The same attempt again: in between it was given back, and does not count.
            self.counted = [h for h in self.counted if (h.message_id, h.attempts) != (one.message_id, one.attempts)]
            self.counted.append(one)
            self.run(self.check_may_send(one, hand.session))
            self.check_caps(one)

    async def check_may_send(self, one: Handed, session: str) -> None:
        driver = self.driver
        account: Any = await driver.client.hgetall(f"{driver.prefix}account:{one.phone}")
        connected: Any = await driver.client.smembers(f"{driver.prefix}account:connected:{one.phone}")
        held = [int(account.get(hold, 0)) for hold in ("paused", "restricted")]
        assert all(0 <= until <= self.now for until in held), f"{one} while the account is held: {account}"
        assert session in connected, f"{one} by {session}, and connected are {connected}"

    def check_caps(self, one: Handed) -> None:
        given = self.limits[one.phone]
        hours = given.hours
        assert hours is not None
        here = local(self.now, ZoneInfo("UTC"))
        assert hours.contains(here.hour * 60 + here.minute), f"{one} outside {hours}"
        mine = [h for h in self.counted if h.phone == one.phone]
        minute = [h for h in mine if h.at > self.now - MINUTE]
        today = [h for h in mine if h.at // DAY == self.now // DAY]
        assert len(minute) <= (given.per_minute or 0), minute
        assert len(today) <= (given.daily or 0), today
        if one.attempts == 0:
            theirs = [h for h in self.counted if h.to == one.to and h.attempts == 0]
            theirs = [h for h in theirs if h.at // DAY == self.now // DAY]
            assert len(theirs) <= RECIPIENT_CAP, theirs

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        seen = self.run(self.driver.audit())
        assert set(seen.messages) == set(self.accepted)
        self.no_status_moved_back(seen)
        self.forget_what_was_given_back(seen)
        self.run(self.the_counts_are_right())

    def no_status_moved_back(self, seen: Audit) -> None:
        for message_id, message in seen.messages.items():
            before, status = self.statuses.get(message_id), message["status"]
            if before is not None:
                assert status in MAY_BECOME[before], f"{message_id} went from {before} to {status}"
            self.statuses[message_id] = status

    def forget_what_was_given_back(self, seen: Audit) -> None:
        """Handed over and never claimed: that one does not count."""
        by_message: dict[str, list[Handed]] = defaultdict(list)
        for one in self.counted:
            by_message[one.message_id].append(one)
        for message_id, times in by_message.items():
            message: Any = seen.messages[message_id]
            last = times[-1]
            if int(message.get("attempts", 0)) == last.attempts and message["place"] != "outbox":
                self.counted.remove(last)

    async def the_counts_are_right(self) -> None:
        """Today's hand-overs of each account, and first attempts to each person: no more, and no fewer."""
        reads = self.driver.client.pipeline(transaction=False)
        for phone in PHONES:
            reads.hmget(f"{self.driver.prefix}account:{phone}", "dayEnds", "dayCount")
        for person in PEOPLE:
            reads.hmget(f"{self.driver.prefix}recipient:{person}", "dayEnds", "count")
        for of, (ends, kept) in zip((*PHONES, *PEOPLE), await reads.execute(), strict=True):
            today = [h for h in self.counted if h.at // DAY == self.now // DAY]
            counts = [h for h in today if h.phone == of or (h.to == of and h.attempts == 0)]
            if self.now < int(ends or 0):
                assert int(kept) == len(counts), f"{of} has {kept} today, and it was {counts}"
            else:
                assert not counts


def test_whatever_happens_every_message_is_in_exactly_one_place(valkey_url: str) -> None:
    loop = asyncio.new_event_loop()
    client = connect(valkey_url)
    numbers = count()
    machine: Any = lambda: Moves(loop, client, f"moves-{os.getpid()}-{next(numbers)}:")  # noqa: E731
    on_ci = bool(os.environ.get("CI"))
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=100,
                stateful_step_count=50,
                deadline=None,
                derandomize=on_ci,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            ),
        )
    finally:
        loop.run_until_complete(client.aclose())
        loop.close()
