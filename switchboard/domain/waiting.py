"""Why has this message not left, and until when? Also the estimate a sender is given: one answer for both."""

from switchboard.domain import recipients
from switchboard.domain.accounts import Account
from switchboard.domain.forecast import forecast
from switchboard.domain.messages import Message, Place, Waiting
from switchboard.domain.pacing import Policy, Verdict
from switchboard.domain.phones import zones

UNCLAIMED_MS = 5_000
"""A worker that is there claims at once; one that has not by now is not really connected."""


def expected(
    policy: Policy, account: Account, position: int, to: str, now: int, received: tuple[int, int] = (0, 0)
) -> Verdict:
    """When the message at this position leaves. `received`: the recipient's count today, and that day's end."""
    pace = forecast(policy, account, position, now)
    if pace.at is None:
        return pace
    count, day_ends_at = received
    at, reason = recipients.earliest(policy.recipients, zones(to), count, day_ends_at, pace.at)
    return Verdict(at, reason) if at > pace.at else pace


def explain(
    policy: Policy,
    message: Message,
    position: int,
    account: Account | None,
    now: int,
    received: tuple[int, int] = (0, 0),
    connected_accounts: int = 0,
) -> Verdict | None:
    """None once the message has left, or will never leave."""
    match message.place:
        case Place.DONE | Place.DEAD | Place.CLAIMED:
            return None
        case Place.OUTBOX:
            waited = now - (message.handed_at or now)
            return Verdict(None, Waiting.DISCONNECTED) if waited > UNCLAIMED_MS else None
        case Place.SCHEDULED:
            return Verdict(message.due, message.wait_reason or Waiting.SCHEDULED)
        case Place.JOBS:
            return Verdict(None, Waiting.DAILY_LIMIT if connected_accounts else Waiting.DISCONNECTED)
        case Place.OVERFLOW:
            position = account.waiting + 1 if account else 1
    if account is None:
        return Verdict(None, Waiting.DISCONNECTED)
    # A second attempt is no second message: the cap does not hold it.
    verdict = expected(policy, account, position, message.to, now, (0, 0) if message.attempts else received)
    return verdict if verdict.reason else Verdict(verdict.at, Waiting.DELAY)
