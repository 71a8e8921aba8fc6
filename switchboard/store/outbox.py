"""The worker's side of the store: claim a message, then say what became of it."""

import json
from dataclasses import dataclass

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass, Outcome
from switchboard.store.scripts import Scripts


@dataclass(frozen=True, slots=True)
class Claimed:
    message_id: str
    to: str
    text: str
    attempt: int
    lease_until: int


@dataclass(frozen=True, slots=True)
class Settled:
    """`known` is False for a message this worker's account never had; `changed` if this call settled it."""

    changed: bool
    status: str
    known: bool = True


@dataclass(frozen=True, slots=True)
class OutboxRules:
    lease_ms: int = 60_000
    retention_s: int = 30 * 86_400
    stats_s: int = 90 * 86_400


class Outbox:
    def __init__(self, scripts: Scripts, rules: OutboxRules) -> None:
        self._scripts = scripts
        self._rules = rules

    async def claim(self, session: str, instance: str, now: int) -> Claimed | None:
        raw = await self._scripts.run("claim", session, instance, now, self._rules.lease_ms)
        if not raw:
            return None
        message_id, to, text, attempt, lease_until = raw
        return Claimed(message_id, to, text, int(attempt), int(lease_until))

    async def confirm(self, session: str, message_id: str, status: Status, at: int, now: int) -> Settled:
        """WhatsApp took it (SENT), the phone has it (DELIVERED), the person saw it (READ)."""
        rules = self._rules
        outcome, current = await self._scripts.run(
            "confirm", message_id, session, status, at, now, rules.retention_s, rules.stats_s
        )
        return Settled(outcome == "OK", current, known=outcome != "UNKNOWN")

    async def fail(
        self,
        phone: str,
        message_id: str,
        attempt: int,
        failures_before: int,
        kind: FailureClass,
        error: str,
        outcome: Outcome,
        now: int,
    ) -> Settled:
        """Carry out what the retry rules decided about this attempt, if it is still the current one."""
        call = {
            "message": message_id,
            "phone": phone,
            "attempt": attempt,
            "failuresBefore": failures_before,
            "status": outcome.status,
            "failures": outcome.failures,
            "unknown": outcome.unknown,
            "retryAt": outcome.retry_at,
            "pausedUntil": outcome.paused_until,
            "restrictedUntil": outcome.restricted_until,
            "kind": kind,
            "error": error,
            "now": now,
            "retentionS": self._rules.retention_s,
            "statsS": self._rules.stats_s,
        }
        result, current = await self._scripts.run("fail", json.dumps(call))
        return Settled(result == "OK", current, known=result != "UNKNOWN")
