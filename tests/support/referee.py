"""Judges every hand-over from books of its own: plain arithmetic on the numbers of the specification.

Knows nothing of the planner. What it is told: who was accepted, handed over, given back, settled and held.
"""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
RECIPIENT_CAP = 3
RECIPIENT_HOURS = (8 * 60, 22 * 60)
BURST_FACTOR, BURST_SLOWDOWN, BURST_WINDOW = 3, 2.0, 10 * MINUTE


@dataclass(frozen=True)
class Figures:
    """What an account may do; hours in minutes after midnight."""

    daily: int
    per_minute: int
    shortest: int
    longest: int
    opens: int
    closes: int

    def open_at(self, minute: int) -> bool:
        if self.opens < self.closes:
            return self.opens <= minute < self.closes
        return minute >= self.opens or minute < self.closes


LEVELS = (
    (14 * DAY, Figures(500, 30, 2_000, 4_000, 7 * 60, 23 * 60)),
    (3 * DAY, Figures(100, 15, 3_000, 5_000, 8 * 60, 22 * 60)),
    (0, Figures(20, 5, 5_000, 8_000, 9 * 60, 21 * 60)),
)


@dataclass
class Letter:
    """A message as it was accepted. `account` and the order are None where a dispatcher decides them."""

    id: str
    to: str
    priority: int
    at: int  # when it was accepted
    looked_at: int  # the last round before that
    serial: int
    account: str | None
    due: float | None = None  # scheduled for
    batch: str | None = None
    in_order: bool = True  # nothing but its account's pace decides when it leaves
    tried: bool = False
    ready_at: int = 0  # it could leave from here on

    def surely_before(self, other: "Letter") -> bool:
        """It entered the queue before the other one, whatever happened within the same round."""
        if self.due is None and other.due is None:
            return self.serial < other.serial
        if self.due is not None and other.due is not None:
            if int(self.due) == int(other.due):
                return self.batch == other.batch and self.serial < other.serial
            return self.due < other.due
        if self.due is not None:
            return self.due + 1 <= other.looked_at
        return other.due is not None and other.due > self.looked_at


@dataclass
class Books:
    """One account."""

    phone: str
    zone: ZoneInfo
    born: int
    own: dict[str, int] = field(default_factory=dict)
    connected: set[str] = field(default_factory=set)
    in_flight: Letter | None = None
    counted: list[int] = field(default_factory=list)  # hand-overs, or rather when they were claimed, in order
    days: Counter[date] = field(default_factory=Counter)
    arrivals: list[int] = field(default_factory=list)  # into its queue, in order
    last: int | None = None
    last_delay: tuple[float, float] = (0, 0)  # the shortest and the longest that might have been drawn then
    last_per_minute: int = 5
    free_since: int = 0  # settled, connected, resumed or changed: nothing but the pace holds it
    paused_until: int = 0
    restricted_until: int = 0
    waiting: dict[int, dict[str, Letter]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def held_until(self) -> int:
        return max(self.paused_until, self.restricted_until)

    def figures(self, at: int) -> Figures:
        age = at - self.born
        table = next(figures for since, figures in LEVELS if age >= since)
        return replace(table, **self.own)

    def last_rise(self, at: int) -> int:
        """When it got the level it has."""
        return next(self.born + since for since, _ in LEVELS if at - self.born >= since)


def local(at: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at / 1000, zone)


def minute_of(moment: datetime) -> int:
    return moment.hour * 60 + moment.minute


def wall(day: date, minute: int, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(minute // 60, minute % 60), zone).timestamp() * 1000)


@dataclass(frozen=True)
class _Told:
    """What a failed check says; written out only then."""

    letter: Letter
    books: Books
    now: int

    def __str__(self) -> str:
        when = local(self.now, self.books.zone).isoformat()
        return f"{self.letter.id} of {self.books.phone} at {when} ({self.books.figures(self.now)})"


class Referee:
    def __init__(self, slack: int) -> None:
        self.slack = slack  # how late a dispatcher may be
        self.accounts: dict[str, Books] = {}
        self.letters: dict[str, Letter] = {}
        self.recipients: dict[str, list[int]] = defaultdict(list)
        self.recipient_zones: dict[str, ZoneInfo] = {}
        self.hand_overs = 0
        self.checked: Counter[str] = Counter()

    # What it is told.

    def accepted(self, letter: Letter) -> None:
        self.letters[letter.id] = letter
        letter.ready_at = letter.at if letter.due is None else int(letter.due) + 1
        if letter.account is not None:
            books = self.accounts[letter.account]
            insort(books.arrivals, letter.ready_at)
            if letter.in_order:
                books.waiting[letter.priority][letter.id] = letter

    def cancelled(self, message_id: str, now: int) -> None:
        letter = self.letters[message_id]
        self._forget(letter)
        if letter.account is not None and self.accounts[letter.account].in_flight is letter:
            self.given_back(message_id, now)
            self._forget(letter)

    def given_back(self, message_id: str, now: int) -> None:
        """Handed over, never claimed: it counts for nothing, and has its old place again."""
        letter = self.letters[message_id]
        books = self.accounts[letter.account or ""]
        handed = books.counted.pop()
        books.days[local(handed, books.zone).date()] -= 1
        if not letter.tried:
            self.recipients[letter.to].remove(handed)
            if letter.in_order:
                books.waiting[letter.priority][letter.id] = letter
        self.freed(message_id, now)

    def claimed(self, message_id: str, now: int) -> None:
        """A worker has it: from here on the delay and the minute are counted."""
        letter = self.letters[message_id]
        letter.tried = True
        books = self.accounts[letter.account or ""]
        books.counted[-1] = books.last = now

    def freed(self, message_id: str, now: int, retry_at: int | None = None) -> None:
        letter = self.letters[message_id]
        books = self.accounts[letter.account or ""]
        assert books.in_flight is letter, f"{message_id} was not in flight"
        books.in_flight = None
        books.free_since = now
        letter.ready_at = now if retry_at is None else retry_at + 1

    def _forget(self, letter: Letter) -> None:
        if letter.account is not None:
            self.accounts[letter.account].waiting[letter.priority].pop(letter.id, None)

    # What it checks.

    def handed(self, message_id: str, phone: str, session: str, now: int, not_before: int) -> None:
        self.hand_overs += 1
        books, letter = self.accounts[phone], self.letters[message_id]
        figures = books.figures(now)
        told = _Told(letter, books, now)
        assert letter.account in (None, phone), f"{told}: it belongs to {letter.account}"
        assert books.in_flight is None, f"{told}: {books.in_flight} is still in flight"
        assert session in books.connected, f"{told}: {session} is not connected"
        assert books.held_until <= now, f"{told}: the account is held until {books.held_until}"
        self._hours_and_caps(books, figures, now, told)
        self._recipient(books, letter, now, told)
        self._order(books, letter, now, told)
        self._delay(books, letter, figures, now, not_before, told)
        self._write(books, letter, now)

    def _hours_and_caps(self, books: Books, figures: Figures, now: int, told: object) -> None:
        here = local(now, books.zone)
        assert figures.open_at(minute_of(here)), f"{told}: outside its hours"
        minute = len(books.counted) - bisect_right(books.counted, now - MINUTE)
        assert minute < figures.per_minute, f"{told}: {minute} in the minute before"
        assert books.days[here.date()] < figures.daily, f"{told}: {books.days[here.date()]} today"
        self.checked["at the minute's cap"] += minute + 1 == figures.per_minute
        self.checked["at the day's cap"] += books.days[here.date()] + 1 == figures.daily

    def _recipient(self, books: Books, letter: Letter, now: int, told: object) -> None:
        zone = self.recipient_zones.get(letter.to, books.zone)
        here = local(now, zone)
        if letter.to in self.recipient_zones:
            opens, closes = RECIPIENT_HOURS
            assert opens <= minute_of(here) < closes, f"{told}: {here} for {letter.to}"
            self.checked["with a recipient's hours"] += 1
        today = [at for at in self.recipients[letter.to] if local(at, zone).date() == here.date()]
        if not letter.tried:
            assert len(today) < RECIPIENT_CAP, f"{told}: {letter.to} had {len(today)} today"
            self.checked["at a recipient's cap"] += len(today) + 1 == RECIPIENT_CAP

    def _order(self, books: Books, letter: Letter, now: int, told: object) -> None:
        if letter.tried or not letter.in_order:
            return
        for priority, waiting in books.waiting.items():
            for other in waiting.values():
                if priority == letter.priority:
                    assert not other.surely_before(letter), f"{told}: {other} came before {letter}"
                elif priority > letter.priority:
                    assert other.ready_at >= now - self.slack, f"{told}: {other} is more urgent than {letter}"
        self.checked["in order"] += 1

    def _delay(self, books: Books, letter: Letter, figures: Figures, now: int, not_before: int, told: object) -> None:
        arrivals = books.arrivals
        lately = bisect_right(arrivals, now) - bisect_right(arrivals, now - BURST_WINDOW - MINUTE)
        burst = lately > BURST_FACTOR * min(figures.per_minute, books.last_per_minute)
        slowdown = BURST_SLOWDOWN if burst else 1
        drawn = not_before - now
        longest = figures.longest * slowdown
        assert figures.shortest <= drawn <= longest, f"{told}: a delay of {drawn} ms was drawn"
        self.checked["with a burst's delay"] += drawn > figures.longest
        if books.last is not None:
            gap = now - books.last
            assert gap >= books.last_delay[0], f"{told}: {gap} ms after the one before"
        if letter.in_order:
            latest = self._latest(books, letter, figures, now) + self.slack
            assert now <= latest, f"{told}: nothing held it since {local(latest, books.zone).isoformat()}"
            self.checked["without idling"] += 1
        books.last_delay = (figures.shortest, longest)
        books.last_per_minute = figures.per_minute

    def _latest(self, books: Books, letter: Letter, figures: Figures, now: int) -> int:
        """When the last thing that held it ended, the delay taken at its longest."""
        moments = [letter.ready_at, books.free_since, books.held_until, books.last_rise(now)]
        moments.append(self._opening(books, figures, now))
        if books.last is not None:
            moments.append(round(books.last + books.last_delay[1]))
        if len(books.counted) >= figures.per_minute:
            moments.append(books.counted[-figures.per_minute] + MINUTE)
        return max(moments)

    def _opening(self, books: Books, figures: Figures, now: int) -> int:
        here = local(now, books.zone)
        if (figures.opens, figures.closes) == (0, 1440):
            return wall(here.date(), 0, books.zone)
        day = here.date()
        if minute_of(here) < figures.opens:
            day -= timedelta(days=1)
        opened = wall(day, figures.opens, books.zone)
        # A night's hours run over midnight, where a day's allowance begins anew.
        return max(opened, wall(here.date(), 0, books.zone)) if figures.opens > figures.closes else opened

    def _write(self, books: Books, letter: Letter, now: int) -> None:
        self._forget(letter)
        letter.account = books.phone
        books.in_flight, books.last = letter, now
        books.counted.append(now)
        books.days[local(now, books.zone).date()] += 1
        if not letter.tried:
            self.recipients[letter.to].append(now)
