"""The way of a message, step by step: what is behind it, what it waits for, what is still to come."""

from dataclasses import dataclass
from enum import StrEnum

from switchboard.domain.messages import Message, Place, Status, Waiting

WAITS = frozenset({Place.JOBS, Place.SCHEDULED, Place.OVERFLOW, Place.QUEUE, Place.OUTBOX})
"""Where a message can still be taken back."""
_ENDED = frozenset({Status.CANCELLED, Status.DEAD, Status.UNCONFIRMED})
_REACHED = {Status.SENDING: 1, Status.SENT: 2, Status.DELIVERED: 3, Status.READ: 4}


class Mark(StrEnum):
    DONE = "done"
    CURRENT = "current"
    FUTURE = "future"
    ENDED = "ended"  # here its way stopped


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    mark: Mark
    at: int | None = None

    @property
    def lies_ahead(self) -> bool:
        return self.mark in (Mark.CURRENT, Mark.FUTURE)


def timeline(message: Message) -> list[Step]:
    steps = [Step("accepted", Mark.DONE, message.created_at)]
    later = message.status is Status.SCHEDULED
    if later and message.wait_reason is Waiting.DAILY_LIMIT:
        steps.append(Step("put_off", Mark.CURRENT, message.due))
    elif message.scheduled_for is not None:
        steps.append(Step("scheduled", Mark.CURRENT if later else Mark.DONE, message.scheduled_for))
    if message.status in _ENDED:
        return [*steps, *_the_end(message)]
    reached = _REACHED.get(message.status, 0)
    times = (message.handed_at, message.sent_at, message.delivered_at, message.read_at)
    names = ("handed_over", "sent", "delivered", "read")
    for number, (name, at) in enumerate(zip(names, times, strict=True), 1):
        if number <= reached:
            steps.append(Step(name, Mark.DONE, at))
        else:
            following = number == reached + 1 and steps[-1].mark is Mark.DONE
            steps.append(Step(name, Mark.CURRENT if following else Mark.FUTURE))
    return steps


def _the_end(message: Message) -> list[Step]:
    handed = [Step("handed_over", Mark.DONE, message.handed_at)] if message.attempts else []
    return [*handed, Step(message.status.value, Mark.ENDED)]
