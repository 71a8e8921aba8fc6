"""Drives the store's moves in short sentences, on a clock of its own. What the servers do, without HTTP."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from redis.asyncio import Redis

from switchboard.dispatcher.dispatcher import Dispatcher, Round
from switchboard.dispatcher.router import route_jobs
from switchboard.domain.hours import ALWAYS
from switchboard.domain.messages import Message, Status
from switchboard.domain.pacing import HandOver, Policy, plan, spare
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.retry import FailureClass, RetryRules, decide
from switchboard.domain.sessions import State
from switchboard.domain.trust import STANDARD, Overrides, TrustTable
from switchboard.store import Store
from switchboard.store.intake import Accepted, Entry, Refused, Result, Row, Stale
from switchboard.store.outbox import Claimed, Settled
from switchboard.store.pace import Planned
from switchboard.store.sessions import With
from switchboard.store.views import AccountView
from tests.support.places import Audit, audit

NOON = 1_781_006_400_000  # 2026-06-09T12:00:00Z, a Tuesday
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
UNHURRIED = Overrides(daily=10_000, per_minute=1_000, base_delay_ms=0, jitter_ms=0, hours=ALWAYS)
"""Limits that never hold anything back, for tests of everything else."""


class Driver:
    def __init__(self, store: Store, client: Redis, prefix: str, policy: Policy | None = None) -> None:
        self.store = store
        self.client = client
        self.prefix = prefix
        self.now = NOON
        self.policy = policy or Policy(TrustTable(STANDARD), recipients=RecipientRules(3, ALWAYS))
        self.retry = RetryRules()
        self.dispatcher = Dispatcher(store, self.policy, self.retry, lambda: self.now, Random(1))
        self._recipients = 0
        self._ids = Random(2)

    async def audit(self) -> Audit:
        return await audit(self.client, self.prefix)

    async def link(self, session: str, phone: str, limits: Overrides | None = UNHURRIED) -> None:
        """A connected session; `limits` None leaves those of its age."""
        await self.store.sessions.register(session, self.now)
        await self.store.sessions.connect(session, phone, self.now)
        if limits is not None:
            await self.store.accounts.override(phone, limits, None, self.now)

    async def relink(self, session: str, phone: str) -> None:
        """Logged out by its phone, and scanned by another one."""
        sessions = self.store.sessions
        await sessions.turn(session, State.LOGGED_OUT, "logged_out", self.now, {With.DETACH, With.UNLINK})
        await sessions.turn(session, State.STARTING, "", self.now)
        assert (await sessions.connect(session, phone, self.now)).ok

    def someone(self) -> str:
        """A recipient nobody has written to, in no known time zone."""
        self._recipients += 1
        return f"8707{self._recipients:08}"

    def row(self, to: str | None = None, priority: int = 1, due: float = 0) -> Row:
        return Row(self._ids.randbytes(9).hex(), to or self.someone(), "hello", priority, due)

    async def enqueue(self, entry: Entry) -> Accepted | Refused:
        """As the gateway does: a stale guard is computed anew and asked again."""
        result = await self.ask(entry)
        if isinstance(result, Stale):
            limits = self.policy.limits(result.profile, self.now)
            burst = self.policy.burst_threshold(result.profile, self.now)
            guarded = replace(entry, revision=result.profile.revision, daily=limits.daily, burst=burst)
            result = await self.ask(guarded)
        assert not isinstance(result, Stale)
        return result

    async def ask(self, entry: Entry) -> Result:
        [result] = await self.store.intake.enqueue([entry], self.now)
        return result

    async def send(self, session: str | None = "a", to: str | None = None, priority: int = 1, due: float = 0) -> str:
        """The id of one accepted message."""
        result = await self.enqueue(Entry([self.row(to, priority, due)], session=session))
        assert isinstance(result, Accepted), result
        return result.message_id

    async def send_batch(self, batch: str, rows: Sequence[Row], session: str | None = "a") -> list[str]:
        result = await self.enqueue(Entry(rows, session=session, batch=(batch, 0)))
        assert isinstance(result, Accepted), result
        return [row.id for row in rows]

    async def round(self) -> Round:
        return await self.dispatcher.round(self.now)

    async def settle_down(self) -> list[HandOver]:
        """Rounds until nothing is due at this moment; what they handed over."""
        handed: list[HandOver] = []
        for _ in range(1000):
            done = await self.round()
            handed.extend(done.handed)
            if not done.busy:
                return handed
        raise AssertionError("the dispatcher does not come to rest")

    async def route(self) -> int:
        return await route_jobs(self.store, self.policy, self.now)

    async def plan_one(self, phone: str) -> Planned:
        """What a dispatcher would do with this account now, not committed yet."""
        return self.planned(await self.store.accounts.look(now=self.now, phone=phone))

    def planned(self, view: AccountView) -> Planned:
        decision = plan(self.policy, view.account, view.in_flight, view.head, self.now, Random(1))
        return Planned(
            view,
            decision,
            spare(self.policy, view.account, self.now),
            self.policy.burst_threshold(view.account.profile, self.now),
        )

    async def commit(self, planned: Planned) -> str:
        [outcome] = await self.store.pace.commit([planned], self.now)
        return outcome

    async def hand_over(self, session: str = "a") -> str:
        """The id of the one message that is handed over to this session now."""
        [handed] = [h for h in await self.settle_down() if h.session == session]
        return handed.message_id

    async def claim(self, session: str = "a", instance: str = "one") -> Claimed | None:
        return await self.store.outbox.claim(session, instance, self.now)

    async def claimed(self, session: str = "a", instance: str = "one") -> Claimed:
        claim = await self.claim(session, instance)
        assert claim is not None
        return claim

    async def attempt(self, session: str = "a") -> Claimed:
        """Handed over and claimed."""
        await self.settle_down()
        return await self.claimed(session)

    async def confirm(self, message_id: str, status: Status = Status.SENT, session: str = "a") -> Settled:
        return await self.store.outbox.confirm(session, message_id, status, self.now, self.now)

    async def nack(self, claim: Claimed, kind: FailureClass, until: int | None = None) -> Settled:
        """As the worker API does: the rules decide from the message as it is now."""
        message = await self.message(claim.message_id)
        outcome = decide(self.retry, kind, message.failures, message.unknown, self.now, until)
        return await self.store.outbox.fail(
            message.account or "",
            message.id,
            claim.attempt,
            message.failures,
            kind,
            kind.value,
            outcome,
            self.now,
        )

    async def message(self, message_id: str) -> Message:
        view = await self.store.messages.look(message_id, self.now)
        assert view is not None
        return view.message

    async def position(self, message_id: str) -> int:
        view = await self.store.messages.look(message_id, self.now)
        assert view is not None
        return view.position

    async def view(self, phone: str) -> AccountView:
        return await self.store.accounts.look(now=self.now, phone=phone)

    async def queue(self, phone: str) -> list[str]:
        return [m.id for m in (await self.store.messages.queue_page(phone, 2000, None)).items]

    async def events(self, kind: str) -> list[dict[str, str]]:
        stream: Any = await self.client.xrange(self.prefix + "events")
        return [fields for _, fields in stream if fields["type"] == kind]
