"""Taking back, trying again, and setting limits. No HTTP here."""

from switchboard.domain import errors
from switchboard.domain.clock import Clock
from switchboard.domain.trust import Overrides
from switchboard.gateway.reading import Reading
from switchboard.store import Store
from switchboard.web.auth import Caller

_AT_ONCE = 500


class Changing:
    def __init__(self, store: Store, reading: Reading, room: int, clock: Clock) -> None:
        self._store = store
        self._reading = reading
        self._room = room
        self._clock = clock

    async def cancel(self, session: str, message_id: str) -> None:
        view = await self._store.accounts.look(session=session, now=self._clock())
        await self._cancel(message_id, view.account.profile.phone)

    async def cancel_any(self, caller: Caller, message_id: str) -> None:
        await self._allowed(caller, message_id)
        await self._cancel(message_id)

    async def _cancel(self, message_id: str, phone: str = "") -> None:
        (outcome,) = await self._store.messages.cancel([message_id], self._clock(), "cancelled", phone)
        if outcome == "UNKNOWN":
            raise errors.MessageNotFound(message_id)
        if outcome != "OK":
            raise errors.MessageNotWaiting(message_id, outcome.removeprefix("LEFT:"))

    async def cancel_batch(self, caller: Caller, batch_id: str) -> dict[str, object]:
        """What has left stays sent. Repeating it finishes what a crash left half-done."""
        batch, _ = await self._reading.batch(batch_id)
        caller.require_session(batch.session)
        await self._store.batches.mark_cancelled(batch_id, self._clock())
        for start in range(0, batch.total, _AT_ONCE):
            rows = await self._store.batches.rows(batch_id, start, _AT_ONCE)
            await self._store.messages.cancel(rows, self._clock(), "batch cancelled")
        _, shown = await self._reading.batch(batch_id)
        return shown

    async def redrive(self, caller: Caller, message_id: str) -> dict[str, object]:
        await self._allowed(caller, message_id)
        outcome, detail = await self._store.messages.redrive(message_id, self._clock())
        if outcome == "OPTED_OUT":
            raise errors.RecipientOptedOut(detail)
        if outcome == "QUEUE_FULL":
            raise errors.QueueFull(self._room)
        return await self._decided(message_id, outcome, detail)

    async def discard(self, caller: Caller, message_id: str) -> dict[str, object]:
        await self._allowed(caller, message_id)
        outcome, detail = await self._store.messages.discard(message_id, self._clock())
        return await self._decided(message_id, outcome, detail)

    async def _allowed(self, caller: Caller, message_id: str) -> None:
        message, _ = await self._reading.status(message_id)
        caller.require_session(message.session)

    async def _decided(self, message_id: str, outcome: str, detail: str) -> dict[str, object]:
        if outcome == "UNKNOWN":
            raise errors.MessageNotFound(message_id)
        if outcome == "NOT_DEAD":
            raise errors.MessageNotWaiting(message_id, detail)
        _, shown = await self._reading.status(message_id)
        return shown

    async def override(self, session: str, overrides: Overrides, zone: str | None) -> None:
        now = self._clock()
        view = await self._store.accounts.look(session=session, now=now)
        await self._store.accounts.override(view.account.profile.phone, overrides, zone, now)
