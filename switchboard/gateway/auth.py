"""Who calls, and what they may do: the first of all checks, before a body is even parsed."""

import hmac
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from switchboard.domain.clock import Clock
from switchboard.domain.errors import Forbidden, RateLimited, Unauthorized
from switchboard.store import Store
from switchboard.store.api_keys import SCOPES, ApiKey, digest
from switchboard.web.app import bounded_body
from switchboard.web.errors import invalid_request

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

MAX_BODY = 64 * 1024 * 1024
_REMEMBERED_S = 5.0
"""How long a revoked key may still work."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The key behind a request. `rate` is what the enqueue script counts it by."""

    key: ApiKey

    @property
    def rate(self) -> tuple[str, int]:
        return self.key.id, self.key.per_minute

    def require_session(self, session: str | None) -> None:
        """A key bound to sessions may touch only what belongs to one of them."""
        if self.key.sessions and session not in self.key.sessions:
            raise Forbidden(f"This key may not use session '{session or 'any'}'.", sessionId=session)


class Guard:
    """Recognises keys: the one of the settings, and those in the store (remembered for some seconds)."""

    def __init__(self, store: Store, api_key: str, per_minute: int, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._own = digest(api_key)
        self._owner = ApiKey(self._own[:12], "API_KEY", frozenset(SCOPES), frozenset(), per_minute)
        self._seen: dict[str, tuple[float, ApiKey]] = {}

    async def authenticate(self, request: Request, scope: str) -> Caller:
        secret = _presented(request)
        if hmac.compare_digest(digest(secret), self._own):
            return Caller(self._owner)
        key = await self._find(secret)
        if key is None:
            raise Unauthorized("This API key is not known here.")
        if scope not in key.scopes and "admin" not in key.scopes:
            raise Forbidden(f"This key lacks the scope '{scope}'.", scope=scope)
        return Caller(key)

    async def _find(self, secret: str) -> ApiKey | None:
        fingerprint = digest(secret)
        seen = self._seen.get(fingerprint)
        if seen and time.monotonic() - seen[0] < _REMEMBERED_S:
            return seen[1]
        key = await self._store.api_keys.find(secret)
        if key:
            self._seen[fingerprint] = (time.monotonic(), key)
        else:
            self._seen.pop(fingerprint, None)
        return key

    async def admit(self, caller: Caller) -> None:
        """Count this call against the key's rate."""
        now = self._clock()
        if not await self._store.api_keys.admit(caller.key.id, caller.key.per_minute, now):
            raise RateLimited(seconds_left(now))

    def route(self, scope: str, *, counted_later: bool = False) -> type[APIRoute]:
        """Routes that need this scope. `counted_later`: a good request is counted by its own script call."""
        guard = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Handler:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    caller = await guard.authenticate(request, scope)
                    request.state.caller = caller
                    if not counted_later:
                        await guard.admit(caller)
                    await bounded_body(request, MAX_BODY)
                    try:
                        return await handle(request)
                    except RequestValidationError as error:
                        if counted_later:
                            await guard.admit(caller)
                        raise invalid_request(error) from None

                return guarded

        return GuardedRoute


def seconds_left(now: int) -> int:
    return 60 - now // 1000 % 60


def _presented(request: Request) -> str:
    secret = request.headers.get("x-api-key")
    if secret is None:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            secret = ""
    if not secret:
        raise Unauthorized("Send your key in the X-API-Key header, or as Authorization: Bearer.")
    return secret


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
