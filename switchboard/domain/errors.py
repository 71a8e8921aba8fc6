"""Every error a caller of Switchboard can meet. The HTTP status of each is in `web/errors.py`.

SwitchboardError
├── Unauthorized            no valid key or signature
├── Forbidden               a valid key without that scope or session
├── RateLimited             this key calls too often
├── InvalidRequest          a field is wrong, and which
├── PayloadTooLarge         the body is larger than allowed
├── NotFound
│   ├── SessionNotFound
│   ├── MessageNotFound
│   ├── BatchNotFound
│   ├── ProxyNotFound
│   ├── QrNotReady          nothing to scan or to type right now
│   └── ScanLinkInvalid     no link of ours
├── ScanLinkExpired         it was one once
├── Refused                 well-formed, but not now or not to them
│   ├── SessionNotLinked
│   ├── RecipientOptedOut
│   ├── DailyLimitReached
│   ├── QueueFull
│   ├── IdempotencyConflict
│   ├── MessageNotWaiting   it has left, or it already ended
│   ├── SessionExists
│   ├── InvalidTransition   not in the state that the session is in
│   ├── TooManySessions     the phone has all its linked devices
│   ├── NoProxyAvailable    no proxy has room; nothing ever goes direct instead
│   └── ProxyInUse
└── StoreUnavailable        the store is away; nothing was lost, try again
"""

from typing import Any, ClassVar


class SwitchboardError(Exception):
    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class Unauthorized(SwitchboardError):
    code = "UNAUTHORIZED"


class Forbidden(SwitchboardError):
    code = "FORBIDDEN"


class RateLimited(SwitchboardError):
    code = "RATE_LIMITED"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"This key has used its calls for this minute; try again in {retry_after_s} s.",
            retryAfter=retry_after_s,
        )


class InvalidRequest(SwitchboardError):
    code = "INVALID_REQUEST"

    def __init__(self, message: str, field: str | None = None, **details: Any) -> None:
        super().__init__(message, **({"field": field} if field else {}), **details)


class PayloadTooLarge(SwitchboardError):
    code = "PAYLOAD_TOO_LARGE"


class NotFound(SwitchboardError):
    code = "NOT_FOUND"


class SessionNotFound(NotFound):
    code = "SESSION_NOT_FOUND"

    def __init__(self, sender: str) -> None:
        super().__init__(f"There is no session or account '{sender}'.", sender=sender)


class MessageNotFound(NotFound):
    code = "MESSAGE_NOT_FOUND"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"There is no message '{message_id}' here.", messageId=message_id)


class BatchNotFound(NotFound):
    code = "BATCH_NOT_FOUND"

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"There is no batch '{batch_id}'.", batchId=batch_id)


class ProxyNotFound(NotFound):
    code = "PROXY_NOT_FOUND"

    def __init__(self, proxy_id: str) -> None:
        super().__init__(f"There is no proxy '{proxy_id}'.", proxyId=proxy_id)


class QrNotReady(NotFound):
    code = "QR_NOT_READY"

    def __init__(self, session_id: str, state: str, hint: str = "ask again in a moment") -> None:
        super().__init__(
            f"Session '{session_id}' is '{state}' and has no code to show; {hint}.", sessionId=session_id, status=state
        )


class ScanLinkInvalid(NotFound):
    code = "SCAN_LINK_INVALID"

    def __init__(self) -> None:
        super().__init__("This link is not complete, or not from here; ask for a new one.")


class ScanLinkExpired(SwitchboardError):
    code = "SCAN_LINK_EXPIRED"

    def __init__(self) -> None:
        super().__init__("This link is too old, or was used already; ask for a new one.")


class Refused(SwitchboardError):
    code = "REFUSED"


class SessionNotLinked(Refused):
    code = "SESSION_NOT_LINKED"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session '{session_id}' has never been linked to a phone; scan its QR code first.",
            sessionId=session_id,
        )


class RecipientOptedOut(Refused):
    code = "RECIPIENT_OPTED_OUT"

    def __init__(self, to: str) -> None:
        super().__init__("This recipient asked not to be written to.", to=to)


class DailyLimitReached(Refused):
    code = "DAILY_LIMIT_REACHED"

    def __init__(self, limit: int, sent: int, resets_at: str) -> None:
        super().__init__(
            f'The account has sent its {limit} messages of today; send "deferrable": true to queue for the next day.',
            limit=limit,
            sent=sent,
            resetsAt=resets_at,
        )


class QueueFull(Refused):
    code = "QUEUE_FULL"

    def __init__(self, room: int) -> None:
        super().__init__(f"{room} messages wait for this account already; try again later.", room=room)


class IdempotencyConflict(Refused):
    code = "IDEMPOTENCY_CONFLICT"

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used with another body within the last day.")


class MessageNotWaiting(Refused):
    code = "MESSAGE_NOT_WAITING"

    def __init__(self, message_id: str, status: str) -> None:
        super().__init__(
            f"Message '{message_id}' is '{status}' and can no longer be changed this way.",
            messageId=message_id,
            status=status,
        )


class SessionExists(Refused):
    code = "SESSION_EXISTS"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is a session '{session_id}' already.", sessionId=session_id)


class InvalidTransition(Refused):
    code = "INVALID_TRANSITION"

    def __init__(self, session_id: str, command: str, state: str, reason: str) -> None:
        super().__init__(
            f"Can't {command} session '{session_id}', which is '{state}': {reason}.", sessionId=session_id, status=state
        )


class TooManySessions(Refused):
    code = "TOO_MANY_SESSIONS"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"This phone has its {limit} sessions already; delete one first (MAX_SESSIONS_PER_PHONE).", limit=limit
        )


class NoProxyAvailable(Refused):
    code = "NO_PROXY_AVAILABLE"


class ProxyInUse(Refused):
    code = "PROXY_IN_USE"

    def __init__(self, proxy_id: str, sessions: list[str]) -> None:
        super().__init__(
            f"{len(sessions)} sessions are on proxy '{proxy_id}'; with ?force=true (--force) they move, or wait.",
            proxyId=proxy_id,
            sessions=sessions,
        )


class StoreUnavailable(SwitchboardError):
    code = "STORE_UNAVAILABLE"

    def __init__(self) -> None:
        super().__init__("The store can't be reached right now; nothing was lost, try again shortly.")
