"""A month in seconds: 30 days of 200 accounts through the real store and the real dispatcher, on a virtual clock.

A referee with books of its own looks at every hand-over. The seed is printed; `MONTH_SEED` plays one again.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from random import Random
from zoneinfo import ZoneInfo

import pytest
import uvloop

from switchboard.domain.hours import ALWAYS, Hours
from switchboard.domain.pacing import Policy
from switchboard.domain.phones import zones
from switchboard.domain.trust import STANDARD, Overrides, TrustTable
from switchboard.store import Store
from switchboard.store.client import connect
from switchboard.store.intake import Entry, Row
from switchboard.store.store import StoreRules
from tests.support.fleet import Fleet
from tests.support.ledger import ENDED, Event
from tests.support.places import audit, clear
from tests.support.referee import DAY, HOUR, MINUTE, SECOND

pytestmark = pytest.mark.slow

ACCOUNTS = 200
DAYS = 30
# Clocks change in Berlin and Jerusalem on 25 October, in Cairo at the midnight after the 29th, in New York on
# 1 November.
START = int(datetime(2026, 10, 10, tzinfo=UTC).timestamp() * 1000)
END = START + DAYS * DAY
ZONES = (
    "Europe/Berlin",
    "Asia/Jerusalem",
    "America/New_York",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Pacific/Chatham",
)
PEOPLE = {  # numbers that tell where somebody is
    "Europe/Berlin": "491701234{:03}",
    "Asia/Jerusalem": "972509876{:03}",
    "America/New_York": "12125551{:03}",
    "Africa/Cairo": "201001234{:03}",
}
CAMPAIGNS = (4, 15, 22)  # days on which many send a lot
FLOODED = ("972500000000", "972500000060", "972500000120")
LATEST = 4 * SECOND  # a round may come as late as this


def test_a_month_of_two_hundred_accounts(valkey_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("MONTH_SEED", "20261010"))
    with capsys.disabled():
        print(f"\na month in seconds: seed {seed}", end=" ", flush=True)  # noqa: T201
    began = time.monotonic()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        fleet = runner.run(play(valkey_url, seed))
    with capsys.disabled():
        print(summary(fleet, time.monotonic() - began))  # noqa: T201


def summary(fleet: Fleet, seconds: float) -> str:
    parts = [
        f"{fleet.ledger.told['accepted']} messages",
        f"{fleet.referee.hand_overs} hand-overs",
        f"{DAYS} virtual days",
        f"{seconds:.1f} s",
    ]
    return f"{', '.join(parts)}\n  seen {dict(fleet.ledger.told)}\n  checked {dict(fleet.referee.checked)}"


async def play(url: str, seed: int) -> Fleet:
    client, prefix = connect(url), f"month-{seed}-{os.getpid()}:"
    store = Store(client, prefix, StoreRules(ZoneInfo("UTC")))
    try:
        fleet = Fleet(store, Policy(TrustTable(STANDARD)), seed, START, LATEST)
        customers = Customers(fleet)
        await customers.link_all()
        customers.plan_all()
        await fleet.run(END)
        await reunite(fleet)
        await fleet.run(END + 60 * DAY)
        found = await audit(client, prefix)
        every_message_ended_as_it_should(fleet, found.messages)
        await the_figures_agree(fleet)
        everything_was_met(fleet)
    finally:
        await clear(client, prefix)
        await client.aclose()
    return fleet


async def reunite(fleet: Fleet) -> None:
    """After the month everyone is there again, so that all that waits can leave."""
    fleet.ledger.now = max(fleet.now, END)
    for phone in fleet.referee.accounts:
        await fleet.workers.resume(phone)
        for session in await fleet.store.accounts.sessions_of(phone):
            await fleet.connect(phone, session)


def every_message_ended_as_it_should(fleet: Fleet, messages: Mapping[str, Mapping[str, str]]) -> None:
    assert messages.keys() == fleet.ledger.parcels.keys()
    for message_id, message in messages.items():
        expected, found = fleet.ledger.expected(message_id), message["status"]
        assert found in ENDED, f"{message_id} is still {found} in {message['place']}"
        assert found == expected, f"{message_id} should be {fleet.ledger.parcels[message_id]}, and is {message}"


async def the_figures_agree(fleet: Fleet) -> None:
    """Day by day for every session and account; hour by hour for the fleet."""
    days: dict[str, set[str]] = defaultdict(set)
    for scope, date, _ in fleet.ledger.figures:
        days[scope].add(date)
    for scope, dates in days.items():
        for day in await fleet.store.stats.days(scope, sorted(dates)):
            for figure in ("sent", "failed", "delivered", "read"):
                assert getattr(day, figure) == fleet.ledger.figures[scope, day.date, figure], (scope, day.date, figure)
                if scope == "fleet":
                    hours = [fleet.ledger.figures[scope, day.date, f"{figure}:{hour:02}"] for hour in range(24)]
                    assert [counts[figure] for counts in day.hours] == hours, (day.date, figure)


def everything_was_met(fleet: Fleet) -> None:
    """A month in which something never happened would prove nothing about it."""
    told, checked = fleet.ledger.told, fleet.referee.checked
    for what in (
        "silent", "never claimed", "given back", "retryable", "not_on_whatsapp", "refused", "unconfirmed",
        "rate_limited", "restricted", "cancelled", "redriven", "disconnections", "late, from the dead",
        "refused: daily_limit", "refused: opted_out",
    ):  # fmt: skip
        assert told[what], f"{what} never happened"
    for what in (
        "at the minute's cap", "at the day's cap", "at a recipient's cap", "with a recipient's hours",
        "with a burst's delay", "in order", "without idling",
    ):  # fmt: skip
        assert checked[what], f"no hand-over was {what}"


class Customers:
    """Who is in the fleet, what they send, and what goes wrong when: all drawn before the month begins."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.random = Random(fleet.ledger.seed)
        self.born: dict[str, int] = {}
        self.sent: dict[str, list[str]] = {}
        self._people = 0
        self._batches = 0
        self.locals = [(zone, form.format(n)) for zone, form in PEOPLE.items() for n in range(100, 160)]
        for zone, person in self.locals:
            assert zones(person) == (ZoneInfo(zone),), (person, zones(person))
            fleet.referee.recipient_zones[person] = ZoneInfo(zone)
        self.strangers = [f"8708{n:08}" for n in range(60)]
        fleet.ledger.writers.update((person, "") for person in self.strangers)

    # The accounts.

    async def link_all(self) -> None:
        for n in range(ACCOUNTS):
            phone = f"9725{n:08}"
            sessions = [f"{phone}-{i}" for i in range(2 if n % 10 == 0 else 1)]
            age = (40, 20, 8, 2, -1)[n % 5]  # days before the month; -1: born within it
            born = START - age * DAY if age > 0 else START + self.random.randrange(20 * DAY)
            zone, own = ZONES[n % len(ZONES)], self.own_limits(n)
            self.born[phone], self.sent[phone] = born, []
            link = self.linking(phone, sessions, zone, born, own)
            if born <= START:
                await link()
            else:
                self.fleet.ledger.at(born, phone, link)

    def linking(self, phone: str, sessions: list[str], zone: str, born: int, own: Overrides) -> Event:
        async def link() -> None:
            await self.fleet.link(phone, sessions, zone, min(born, self.fleet.now), own)

        return link

    def own_limits(self, n: int) -> Overrides:
        choices = {
            7: Overrides(daily=30, hours=ALWAYS),
            17: Overrides(per_minute=6, hours=Hours.parse("20:00-04:00")),
            27: Overrides(daily=12),
            37: Overrides(per_minute=2),
        }
        return choices.get(n % 40, Overrides())

    # The month.

    def plan_all(self) -> None:
        for phone in list(self.born):
            for day in range(DAYS):
                self.plan_day(phone, START + day * DAY)
            self.plan_trouble(phone)
        for _, person in self.random.sample(self.locals, 6):
            self.fleet.ledger.at(START + 12 * DAY, "", partial(self.fleet.suppress, person))

    def plan_day(self, phone: str, midnight: int) -> None:
        amount = self.random.choice((0, 4, 5, 6, 8, 10))
        if (midnight - START) // DAY in CAMPAIGNS and self.random.random() < 0.15:
            amount = 110  # more than a young account's day
        if (midnight - START) // DAY == CAMPAIGNS[1] and phone in FLOODED:
            amount = 800  # more than an old one's
        waves = [midnight + hour * HOUR // 2 for hour in self.random.sample((11, 18, 25, 32, 39), 2)]
        for wave, part in zip(waves, (amount - amount // 3, amount // 3), strict=True):
            moment = wave + self.random.choice((0, 0, 0, 0, self.random.randrange(20 * SECOND)))
            if part and moment > self.born[phone] + HOUR:
                self.fleet.ledger.at(moment, phone, self.wave(phone, part))

    def wave(self, phone: str, amount: int) -> Event:
        async def send() -> None:
            now = self.fleet.now
            if amount > 8 and self.random.random() < 0.12:
                self.send_batch(phone, min(amount, 40))
                return
            for row in self.rows(amount, now):
                sender = None if row.to in self.fleet.ledger.writers else phone
                deferrable = self.random.random() < 0.3
                self.fleet.order(sender, Entry([row], phone=sender, deferrable=deferrable))
                if sender:
                    self.sent[phone].append(row.id)

        return send

    def rows(self, amount: int, now: int) -> Iterator[Row]:
        for _ in range(amount):
            kind = self.random.random()
            due, to = 0.0, self.somebody()
            if kind < 0.08:
                due = now + self.random.choice((5 * MINUTE, 20 * MINUTE, 2 * HOUR, 15 * HOUR))
            elif kind < 0.13:
                to = self.random.choice(self.locals)[1]
            elif kind < 0.14:
                to = self.locals[self.random.randrange(8)][1]  # those whom everybody writes to
            elif kind < 0.16:
                to = self.random.choice(self.strangers)
            priority = self.random.choices((1, 2, 3), (88, 8, 4))[0]
            yield Row(self.random.randbytes(9).hex(), to, "hello", priority, due)

    def somebody(self) -> str:
        """Of twelve thousand people, so that nobody gets more than one in days."""
        self._people += 1
        return f"8707{self._people % 12_000:08}"

    def send_batch(self, phone: str, size: int) -> None:
        now, spread = self.fleet.now, self.random.choice((0, 10, 30)) * MINUTE
        self._batches += 1
        batch = f"batch_{self._batches}"
        step = max(spread / size, 1 / 1024)
        rows = [Row(self.random.randbytes(9).hex(), self.somebody(), "hello", 1, now + i * step) for i in range(size)]
        self.fleet.order(phone, Entry(rows, phone=phone, batch=(batch, spread), deferrable=True))
        if self.random.random() < 0.2:
            self.fleet.ledger.at(now + spread // 2 + MINUTE, phone, partial(self.cancel_batch, batch, rows))

    async def cancel_batch(self, batch: str, rows: list[Row]) -> None:
        if rows[0].id in self.fleet.ledger.parcels:
            await self.fleet.cancel_batch(batch)

    def plan_trouble(self, phone: str) -> None:
        fleet, draw = self.fleet, self.random
        born = max(self.born[phone] + DAY, START)

        def moment() -> int:
            return draw.randrange(born, max(END - DAY, born + 1))

        for _ in range(draw.choice((0, 1, 2, 3))):
            gone = moment()
            back = gone + draw.choice((20 * SECOND, 10 * MINUTE, 8 * HOUR))
            fleet.ledger.at(gone, phone, partial(fleet.disconnect, phone, f"{phone}-0"))
            fleet.ledger.at(back, phone, partial(fleet.connect, phone, f"{phone}-0"))
        for _ in range(draw.choice((0, 0, 1))):
            fleet.ledger.at(moment(), phone, partial(fleet.pause, phone, 3 * HOUR))
        for _ in range(3):
            fleet.ledger.at(moment(), phone, partial(self.cancel_some, phone))
        if draw.random() < 0.1:
            fleet.ledger.at(moment(), phone, partial(fleet.override, phone, Overrides(daily=25, per_minute=4)))

    async def cancel_some(self, phone: str) -> None:
        """Of what was sent last, since that may still wait."""
        known = [i for i in self.sent[phone][-30:] if i in self.fleet.ledger.parcels]
        if known:
            await self.fleet.cancel(self.random.sample(known, min(len(known), 4)))
