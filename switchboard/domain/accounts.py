"""An account: one phone number, its limits' inputs, and what it is doing right now."""

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from switchboard.domain.trust import Overrides

FOREVER: Final = -1
"""As a moment: until a person says otherwise."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What rarely changes. `revision` grows with every change, so a cached copy can be checked."""

    phone: str
    revision: int
    first_connected_at: int
    zone: ZoneInfo
    own_zone: bool = False  # its zone was set for it, and is not just the default
    overrides: Overrides = Overrides()  # noqa: RUF009 - frozen

    @property
    def is_overridden(self) -> bool:
        """A person set some figure for this account."""
        return self.own_zone or self.overrides != Overrides()


@dataclass(frozen=True, slots=True)
class Account:
    """One consistent look at an account. `epoch` grows with every change that a plan depends on."""

    profile: Profile
    epoch: int = 0
    connected: tuple[str, ...] = ()  # its sessions that can send now
    paused_until: int = 0  # or FOREVER
    pause_reason: str = ""  # empty: a person wanted it
    restricted_until: int = 0  # or FOREVER
    not_before: int = 0  # the delay after the last hand-over ends
    day_ends_at: int = 0  # the end of the local day that `day_count` counts
    day_count: int = 0
    recent: tuple[int, ...] = ()  # hand-overs of the last minute, newest first
    burst_until: int = 0
    waiting: int = 0  # messages in its queue

    def sent_today(self, at: int) -> int:
        return self.day_count if at < self.day_ends_at else 0


@dataclass(frozen=True, slots=True)
class InFlight:
    """The one message an account has handed over and not settled."""

    message_id: str
    lease_until: int
    claimed: bool
    attempts: int
    failures: int
    unknown: bool


@dataclass(frozen=True, slots=True)
class Head:
    """The message at the front of an account's queue, and what its recipient got today."""

    message_id: str
    to: str
    session: str | None
    first_attempt: bool
    recipient_day_ends_at: int
    recipient_count: int
