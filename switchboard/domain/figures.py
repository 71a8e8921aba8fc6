"""The fleet in figures, as the API, the dashboard and the samples of the week show it."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchboard.domain.sessions import State


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """`sessions` by the state that is shown; every state is there."""

    sessions: Mapping[State, int]
    attention: int  # sessions that need a person
    accounts: int  # that have a session
    sent_today: int
    allowance_today: int  # what these accounts may send today, all together
    waiting: int  # messages in the queues of accounts
    scheduled: int
    jobs: int
    dead: int

    @property
    def total(self) -> int:
        """All sessions."""
        return sum(self.sessions.values())

    @property
    def connected(self) -> int:
        """Sessions that are on line, held or not."""
        return sum(self.sessions[state] for state in (State.CONNECTED, State.PAUSED, State.RESTRICTED))
