"""What becomes of a message that a worker could not send: try again, bury it, or hold the account."""

from dataclasses import dataclass
from enum import StrEnum

from switchboard.domain.accounts import FOREVER
from switchboard.domain.messages import Status


class FailureClass(StrEnum):
    """Why an attempt failed, in the worker's words."""

    RETRYABLE = "retryable"
    NOT_ON_WHATSAPP = "not_on_whatsapp"
    REFUSED = "refused"  # WhatsApp refused this text
    RATE_LIMITED = "rate_limited"
    RESTRICTED = "restricted"
    UNCONFIRMED = "unconfirmed"  # nobody knows whether it arrived


FINAL = frozenset({FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED})
ACCOUNT_HELD = frozenset({FailureClass.RATE_LIMITED, FailureClass.RESTRICTED})


@dataclass(frozen=True, slots=True)
class RetryRules:
    max_attempts: int = 3
    base_gap_ms: int = 30_000
    growth: int = 4
    rate_limit_pause_ms: int = 30 * 60_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` QUEUED: back to the front; FAILED: again at `retry_at`; DEAD, UNCONFIRMED: to a person."""

    status: Status
    failures: int
    unknown: bool
    retry_at: int | None = None
    paused_until: int | None = None
    restricted_until: int | None = None


def decide(
    rules: RetryRules, kind: FailureClass, failures: int, unknown: bool, now: int, until: int | None = None
) -> Outcome:
    """`failures` and `unknown` are those of the attempts before this one."""
    if kind is FailureClass.RATE_LIMITED:
        return Outcome(Status.QUEUED, failures, unknown, paused_until=now + rules.rate_limit_pause_ms)
    if kind is FailureClass.RESTRICTED:
        ends = until if until is not None and until > now else FOREVER
        return Outcome(Status.QUEUED, failures, unknown, restricted_until=ends)
    failures += 1
    if kind in FINAL:
        return Outcome(Status.DEAD, failures, unknown)
    unknown = unknown or kind is FailureClass.UNCONFIRMED
    if failures >= rules.max_attempts:
        return Outcome(Status.UNCONFIRMED if unknown else Status.DEAD, failures, unknown)
    gap = rules.base_gap_ms * rules.growth ** (failures - 1)
    return Outcome(Status.FAILED, failures, unknown, retry_at=now + gap)
