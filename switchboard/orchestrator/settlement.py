"""What becomes of a message after a worker spoke about it. The rules are the domain's, the moves the store's."""

import structlog

from switchboard.domain.clock import Clock
from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass, RetryRules, decide
from switchboard.store import Store
from switchboard.store.outbox import Settled

_log = structlog.get_logger(__name__)
_UNKNOWN = Settled(changed=False, status="unknown", known=False)


class Settlement:
    def __init__(self, store: Store, rules: RetryRules, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    async def confirmed(self, session: str, message_id: str, status: Status, at: int) -> Settled:
        now = self._clock()
        settled = await self._store.outbox.confirm(session, message_id, status, min(at, now), now)
        if settled.changed:
            _log.info("message.confirmed", message_id=message_id, session=session, status=status.value)
        return settled

    async def failed(
        self, session: str, message_id: str, attempt: int, kind: FailureClass, error: str, until: int | None
    ) -> Settled:
        now = self._clock()
        view = await self._store.messages.look(message_id, now)
        if view is None or view.account is None or session not in await self._sessions(view.message.account):
            return _UNKNOWN
        message = view.message
        outcome = decide(self._rules, kind, message.failures, message.unknown, now, until)
        settled = await self._store.outbox.fail(
            view.account.account.profile.phone,
            message_id,
            attempt,
            message.failures,
            kind,
            error,
            outcome,
            now,
        )
        _log.info(
            "message.failed",
            message_id=message_id,
            session=session,
            attempt=attempt,
            kind=kind.value,
            error=error,
            status=settled.status,
            stale=not settled.changed,
        )
        return settled

    async def _sessions(self, phone: str | None) -> set[str]:
        return await self._store.accounts.sessions_of(phone) if phone else set()
