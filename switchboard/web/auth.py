"""Who calls, and what they may do: the first of all checks, before a body is even parsed."""

import hmac
import json
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from switchboard.domain.clock import Clock
from switchboard.domain.errors import Forbidden, RateLimited, Unauthorized
from switchboard.store import Store
from switchboard.store.api_keys import SCOPES, ApiKey, digest
from switchboard.web.app import bounded_body
from switchboard.web.errors import invalid_request

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

MAX_BODY = 256 * 1024 * 1024  # the largest batch of the longest texts, each character escaped
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

    def require_account(self, sessions: set[str]) -> None:
        """What an account's sessions did together is for keys that may use all of them."""
        for session in sorted(sessions - self.key.sessions):
            self.require_session(session)

    def require_named(self, raw: bytes) -> None:
        """The same for a body that is no good otherwise: who may comes before what is asked."""
        with suppress(ValueError):
            body = json.loads(raw)
            if isinstance(body, dict) and isinstance(body.get("sessionId"), str):
                self.require_session(body["sessionId"])


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
        key = await self._remembered(digest(secret))
        if key is None:
            raise Unauthorized("This API key is not known here.")
        if scope not in key.scopes and "admin" not in key.scopes:
            raise Forbidden(f"This key lacks the scope '{scope}'.", scope=scope)
        return Caller(key)

    async def key_of(self, fingerprint: str) -> ApiKey | None:
        """The key whose secret has this digest, as of this moment; None when there is none, or no longer."""
        if hmac.compare_digest(fingerprint, self._own):
            return self._owner
        return await self._store.api_keys.find(fingerprint)

    async def _remembered(self, fingerprint: str) -> ApiKey | None:
        seen = self._seen.get(fingerprint)
        if seen and time.monotonic() - seen[0] < _REMEMBERED_S:
            return seen[1]
        key = await self._store.api_keys.find(fingerprint)
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

    def route(self, scope: str) -> type[APIRoute]:
        """Routes that need this scope."""
        guard = self

        class GuardedRoute(APIRoute):
            needs = scope

            def get_route_handler(self) -> Handler:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    caller = await guard.authenticate(request, scope)
                    request.state.caller = caller
                    await guard.admit(caller)
                    await bounded_body(request, MAX_BODY)
                    return await handle(request)

                return guarded

        return GuardedRoute

    def direct_route(self, scope: str) -> type[APIRoute]:
        """The same for the busiest paths: the endpoint `(request, body, key)` is called without FastAPI's
        machinery, which costs as much as all of the rest. Its signature still makes the OpenAPI entry.

        A good request is counted by its own script call; one that never gets there is counted here.
        """
        guard = self

        class DirectRoute(APIRoute):
            needs = scope

            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                handle = self.get_route_handler()

                async def app(scope: Scope, receive: Receive, send: Send) -> None:
                    response = await handle(Request(scope, receive, send))
                    await response(scope, receive, send)

                self.app = app

            def get_route_handler(self) -> Handler:
                endpoint = self.endpoint
                model: type[BaseModel] = endpoint.__annotations__["body"]

                async def direct(request: Request) -> Response:
                    caller = await guard.authenticate(request, scope)
                    request.state.caller = caller
                    raw = await bounded_body(request, MAX_BODY)
                    try:
                        body = model.model_validate_json(raw)
                    except ValidationError as error:
                        caller.require_named(raw)
                        await guard.admit(caller)
                        raise invalid_request(error.errors(include_url=False, include_input=False)) from None
                    response: Response = await endpoint(request, body, request.headers.get("idempotency-key"))
                    return response

                return direct

        return DirectRoute


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
