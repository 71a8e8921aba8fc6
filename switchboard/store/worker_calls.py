"""What the border to the workers has to remember: which requests were made, which events had their effect."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchboard.store.scripts import Scripts

_REMEMBERED_MS = 11 * 60_000
"""A signature is good for five minutes before and after its time; a little longer, and none can be used twice."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a worker, by what tells it from all others."""

    session: str
    stream: str
    sequence: int | None
    mark: str
    about_state: bool
    at: int

    @property
    def arguments(self) -> tuple[str | int, ...]:
        number = "" if self.sequence is None else self.sequence
        return self.session, self.stream, number, self.mark, int(self.about_state), self.at


class WorkerCalls:
    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def admit(self, session: str, request_id: str, now: int) -> str:
        """OK, NOT_FOUND or REPLAYED."""
        return str(await self._scripts.run("admit_worker", session, request_id, now, _REMEMBERED_MS))

    async def heard(self, told: Told, now: int) -> str:
        """NEW, TWICE, or LATE: about the state, and a later one is known."""
        return str(await self._scripts.run("heard", *told.arguments, now))

    async def keep(
        self, told: Told, now: int, kind: str, data: str, tell: str = "", fields: Mapping[str, str | int] | None = None
    ) -> bool:
        """Its effect is done: never again. `data` is kept for the session's page; `tell` passes it on to all."""
        flat = [part for pair in (fields or {}).items() for part in pair]
        return bool(await self._scripts.run("keep", *told.arguments, now, kind, data, tell, *flat))
