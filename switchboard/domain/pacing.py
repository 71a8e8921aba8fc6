"""When may this account send next, and why not now? The heart of the product, without any I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from switchboard.domain import hours, recipients
from switchboard.domain.accounts import FOREVER, Account, Head, InFlight, Profile
from switchboard.domain.hours import MINUTE_MS
from switchboard.domain.messages import Waiting
from switchboard.domain.phones import zones
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import Limits, TrustTable


@dataclass(frozen=True, slots=True)
class Policy:
    """All the rules an account is paced by."""

    table: TrustTable
    recipients: RecipientRules = RecipientRules()  # noqa: RUF009 - frozen
    burst_factor: float = 3.0
    burst_slowdown: float = 2.0
    outbox_lease_ms: int = 60_000

    def limits(self, profile: Profile, at: int) -> Limits:
        return self.table.limits(profile.first_connected_at, at, profile.overrides)

    def burst_threshold(self, profile: Profile, at: int) -> int:
        """More than this many queued within one minute is a burst."""
        return int(self.burst_factor * self.limits(profile, at).per_minute)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first moment an account may send, and the reason that holds it longest. None: nobody knows."""

    at: int | None
    reason: Waiting | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """Give this message to this session now. The figures are the guard the store checks again."""

    message_id: str
    session: str
    daily: int
    per_minute: int
    day: str
    hour: int
    day_ends_at: int
    not_before: int
    lease_until: int
    recipient_cap: int
    recipient_day_ends_at: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may leave yet; look again at `until`, or when something changes."""

    until: int | None
    reason: Waiting | None


@dataclass(frozen=True, slots=True)
class Defer:
    """The account may send but this recipient must not be written to yet; let the others pass."""

    message_id: str
    until: int
    reason: Waiting


@dataclass(frozen=True, slots=True)
class Recall:
    """Handed over, never claimed: it provably did not leave, so it goes back and is not counted."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Expire:
    """Claimed, and never answered for: its outcome is unknown."""

    in_flight: InFlight


Plan = HandOver | Wait | Defer | Recall | Expire


def plan(
    policy: Policy, account: Account, in_flight: InFlight | None, head: Head | None, now: int, random: Random
) -> Plan:
    """What to do with one account at this moment."""
    if in_flight is not None:
        return _await_settlement(in_flight, now)
    if head is None:
        return Wait(next_visit(policy, account, now), None)
    verdict = earliest(policy, account, now)
    if verdict.at != now:
        return Wait(verdict.at, verdict.reason)
    may_write, reason = _recipient_verdict(policy, head, now)
    if may_write > now and reason is not None:
        return Defer(head.message_id, may_write, reason)
    return _hand_over(policy, account, head, now, random)


def _await_settlement(in_flight: InFlight, now: int) -> Plan:
    if now < in_flight.lease_until:
        return Wait(in_flight.lease_until, None)
    return Expire(in_flight) if in_flight.claimed else Recall(in_flight.message_id)


def _recipient_verdict(policy: Policy, head: Head, now: int) -> tuple[int, Waiting | None]:
    # A second attempt is no second message, so the cap does not count it again.
    count = head.recipient_count if head.first_attempt else 0
    return recipients.earliest(policy.recipients, zones(head.to), count, head.recipient_day_ends_at, now)


def _hand_over(policy: Policy, account: Account, head: Head, now: int, random: Random) -> HandOver:
    zone = account.profile.zone
    limits = policy.limits(account.profile, now)
    here = hours.local(now, zone)
    sender = head.session if head.session in account.connected else account.connected[0]
    return HandOver(
        message_id=head.message_id,
        session=sender or account.connected[0],
        daily=limits.daily,
        per_minute=limits.per_minute,
        day=here.date().isoformat(),
        hour=here.hour,
        day_ends_at=hours.day_end(now, zone),
        not_before=now + draw_delay(policy, account, limits, now, random),
        lease_until=now + policy.outbox_lease_ms,
        recipient_cap=policy.recipients.daily_cap,
        recipient_day_ends_at=recipients.day_end(zones(head.to), zone, now),
    )


def draw_delay(policy: Policy, account: Account, limits: Limits, now: int, random: Random) -> int:
    """The pause after a message that leaves now."""
    return _spread(policy, account, random.uniform(*limits.delay_range), now)


def mean_delay(policy: Policy, account: Account, limits: Limits, now: int) -> int:
    """The pause to expect after a message that leaves now."""
    return _spread(policy, account, sum(limits.delay_range) / 2, now)


def _spread(policy: Policy, account: Account, delay: float, now: int) -> int:
    """Longer while a burst is being spread."""
    return round(delay * policy.burst_slowdown if now < account.burst_until else delay)


def earliest(policy: Policy, account: Account, now: int) -> Verdict:
    """The first moment at or after `now` when every limit of the account allows one more message."""
    if account.restricted_until == FOREVER:
        return Verdict(None, Waiting.RESTRICTED)
    if account.paused_until == FOREVER:
        return Verdict(None, Waiting.PAUSED)
    if not account.connected:
        return Verdict(None, Waiting.DISCONNECTED)
    at, reason = now, None
    while True:  # what holds longest at one moment may lead into the reach of another limit
        until, why = max(_holds_at(policy, account, at), key=_moment)
        if until <= at:
            return Verdict(at, reason)
        # A spent day ends at night: that the hours are closed then is no reason of its own.
        reason = reason if (reason, why) == (Waiting.DAILY_LIMIT, Waiting.HOURS) else why
        at = _no_later_than_next_level(policy, account, at, until) if why in _BY_LEVEL else until


_BY_LEVEL = frozenset({Waiting.MINUTE_LIMIT, Waiting.DAILY_LIMIT, Waiting.HOURS})


def _moment(hold: tuple[int, Waiting]) -> int:
    return hold[0]


def _holds_at(policy: Policy, account: Account, at: int) -> Iterator[tuple[int, Waiting]]:
    """Until when each limit would hold a message at `at`; in the past where it does not."""
    limits = policy.limits(account.profile, at)
    yield account.not_before, Waiting.DELAY
    if len(account.recent) >= limits.per_minute:
        yield account.recent[limits.per_minute - 1] + MINUTE_MS, Waiting.MINUTE_LIMIT
    yield account.paused_until, Waiting.PAUSED
    yield account.restricted_until, Waiting.RESTRICTED
    if account.sent_today(at) >= limits.daily:
        yield account.day_ends_at, Waiting.DAILY_LIMIT
    yield hours.next_open(at, limits.hours, account.profile.zone), Waiting.HOURS


def _no_later_than_next_level(policy: Policy, account: Account, at: int, until: int) -> int:
    """A higher level may allow more before `until`."""
    rises = policy.table.next_level_at(account.profile.first_connected_at, at)
    return until if rises is None else min(until, rises)


def next_visit(policy: Policy, account: Account, now: int) -> int | None:
    """When an account with nothing to send is worth a look: its allowance changes by itself."""
    moments = [policy.table.next_level_at(account.profile.first_connected_at, now)]
    if account.sent_today(now):
        moments.append(account.day_ends_at)
    moments += [until for until in (account.paused_until, account.restricted_until) if until > now]
    return min((moment for moment in moments if moment is not None), default=None)


def spare(policy: Policy, account: Account, now: int) -> int:
    """How many more messages this account could still take on today, for choosing a sender."""
    if FOREVER in (account.paused_until, account.restricted_until):
        return 0
    if max(account.paused_until, account.restricted_until) > now:
        return 0
    limits = policy.limits(account.profile, now)
    return limits.daily - account.sent_today(now) - account.waiting
