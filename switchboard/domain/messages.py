"""What a message can be, where it can be, and why it may still be waiting."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What the customer sees. Along the first six it only moves forward."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"  # will be tried again
    CANCELLED = "cancelled"
    DEAD = "dead"
    UNCONFIRMED = "unconfirmed"


class Place(StrEnum):
    """Where a message is kept. It is in exactly one of these, and every move between two is one script."""

    JOBS = "jobs"  # gateway:jobs, waits for a sender to be chosen
    SCHEDULED = "scheduled"  # queue:scheduled, waits for a moment
    OVERFLOW = "overflow"  # queue:overflow:<phone>, is due but found no room
    QUEUE = "queue"  # queue:session:<phone>, waits for its account
    OUTBOX = "outbox"  # session:outbox:<sessionId>, handed over
    CLAIMED = "claimed"  # account:<phone> inflight, a worker has it under a lease
    DEAD = "dead"  # dead-letters, waits for a person
    DONE = "done"  # ended


class Waiting(StrEnum):
    """Why a message has not left."""

    DAILY_LIMIT = "daily_limit"
    MINUTE_LIMIT = "minute_limit"
    DELAY = "delay"
    HOURS = "hours"
    DISCONNECTED = "disconnected"
    PAUSED = "paused"
    RESTRICTED = "restricted"
    SCHEDULED = "scheduled"
    RECIPIENT_HOURS = "recipient_hours"
    RECIPIENT_CAP = "recipient_cap"


PRIORITIES = {1: "normal", 2: "high", 3: "urgent"}


@dataclass(frozen=True, slots=True)
class Message:
    """A message as the store keeps it. Times are ms since the epoch; None means not yet."""

    id: str
    to: str
    text: str
    status: Status
    place: Place
    priority: int
    created_at: int
    account: str | None = None
    session: str | None = None
    reference: str | None = None
    batch: str | None = None
    attempts: int = 0
    failures: int = 0
    unknown: bool = False  # some attempt's outcome was never learned
    due: int | None = None
    scheduled_for: int | None = None
    handed_at: int | None = None
    sent_at: int | None = None
    delivered_at: int | None = None
    read_at: int | None = None
    error: str | None = None
    wait_reason: Waiting | None = None
