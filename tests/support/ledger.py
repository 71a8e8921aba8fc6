"""What should have become of every message of a virtual fleet, and what is still to happen when."""

import heapq
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from tests.support.referee import Referee

Event = Callable[[], Awaitable[None]]
ARRIVED = ("sent", "delivered", "read")
ENDED = (*ARRIVED, "cancelled", "dead", "unconfirmed")


@dataclass
class Parcel:
    """What should be known of a message: `status` is `waiting` or `flying` until it ends."""

    status: str = "waiting"
    attempts: int = 0
    failures: int = 0
    unknown: bool = False
    session: str = ""
    day: str = ""
    hour: int = 0
    claimed: bool = False


@dataclass
class Ledger:
    """The model beside the store: its clock, its events, its messages and its figures."""

    seed: int
    now: int
    referee: Referee
    parcels: dict[str, Parcel] = field(default_factory=dict)
    figures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    suppressed: set[str] = field(default_factory=set)
    called_off: set[str] = field(default_factory=set)  # batches
    writers: dict[str, str] = field(default_factory=dict)  # who writes to those that name no sender
    events: list[tuple[int, int, str, Event]] = field(default_factory=list)
    serial: int = 0

    def at(self, moment: int, account: str, event: Event) -> None:
        """Events of one account happen in order; those of several at once."""
        self.serial += 1
        heapq.heappush(self.events, (moment, self.serial, account, event))

    def luck(self, what: str, message_id: str) -> Random:
        """What befalls a message does not depend on which answer of the store came first."""
        return Random(f"{self.seed}:{what}:{message_id}:{self.parcels[message_id].attempts}")

    def figure(self, phone: str, parcel: Parcel, figure: str, by: int) -> None:
        for scope in (f"session:{parcel.session}", f"account:{phone}", "fleet"):
            self.figures[scope, parcel.day, figure] += by
            self.figures[scope, parcel.day, f"{figure}:{parcel.hour:02}"] += by

    def expected(self, message_id: str) -> str:
        """What waits for someone who opted out, or in a batch that was called off, ends when it would leave."""
        letter, status = self.referee.letters[message_id], self.parcels[message_id].status
        gone = letter.to in self.suppressed or letter.batch in self.called_off
        return "cancelled" if status == "waiting" and gone else status
