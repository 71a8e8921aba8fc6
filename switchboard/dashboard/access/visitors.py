"""Who looks at the dashboard: a sign-in from its beginning to its end, and the cookie that proves it.

The cookie is a signed random token. What it is worth is in the store, so that a sign-out ends it everywhere.
"""

import secrets
from dataclasses import dataclass, field, replace

from fastapi import Request, Response

from switchboard.dashboard.access.signing import Signer
from switchboard.domain.clock import Clock
from switchboard.domain.hours import DAY_MS
from switchboard.store.api_keys import ApiKey, digest
from switchboard.store.sign_ins import SignIn, SignIns
from switchboard.web.auth import Guard

COOKIE = "switchboard"
_IDLE_MS = 7 * DAY_MS
_LONGEST_MS = 30 * DAY_MS
_RENEW_MS = DAY_MS // 24  # not at every request: each one is a write


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks, and what their forms must carry. `digest` names this sign-in, when all others are to end.

    `name` is that of the key they came `by_key` with; else it says how they came.
    """

    name: str
    by_key: bool
    csrf: str = field(repr=False)
    signed_in_at: int
    digest: str = field(repr=False)
    renewed_until: int | None = None  # the cookie is to be sent again


@dataclass(frozen=True, slots=True)
class Opened:
    """A secret that opens the dashboard: whose, the digest of the key if it is one, and the turn it was right in."""

    who: str
    proof: str
    turn: int


class Visitors:
    def __init__(self, guard: Guard, sign_ins: SignIns, signer: Signer, clock: Clock) -> None:
        self._guard = guard
        self._sign_ins = sign_ins
        self._signer = signer
        self._clock = clock

    async def begin(self, request: Request, response: Response, opened: Opened) -> None:
        """Sign in with a new token, whatever cookie was there: nobody can have planted it."""
        await self.end(request, response)
        now = self._clock()
        token = secrets.token_urlsafe(32)
        sign_in = SignIn(opened.who, opened.proof, opened.turn, now, now + _IDLE_MS)
        await self._sign_ins.create(digest(token), sign_in, now)
        self._put_cookie(request, response, self._signer.sign("cookie", token), sign_in.expires_at)

    async def recognise(self, request: Request, *, renew: bool = True) -> Visitor | None:
        """Renew only where the cookie can be sent again, too."""
        token = self._token(request)
        if token is None:
            return None
        now = self._clock()
        fingerprint = digest(token)
        sign_in = await self._sign_ins.get(fingerprint, now)
        if sign_in is None or not await self._holds(sign_in):
            return None
        until = min(now + _IDLE_MS, sign_in.at + _LONGEST_MS)
        renewed = renew and until - sign_in.expires_at >= _RENEW_MS
        if renewed:
            await self._sign_ins.touch(fingerprint, replace(sign_in, expires_at=until), now)
        csrf = self._signer.mark("csrf", token)
        return Visitor(sign_in.who, bool(sign_in.proof), csrf, sign_in.at, fingerprint, until if renewed else None)

    def renew(self, request: Request, response: Response, until: int) -> None:
        self._put_cookie(request, response, request.cookies[COOKIE], until)

    async def end(self, request: Request, response: Response) -> None:
        token = self._token(request)
        if token is not None:
            await self._sign_ins.remove(digest(token))
        if COOKIE in request.cookies:
            response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=_by_https(request))

    def _token(self, request: Request) -> str | None:
        cookie = request.cookies.get(COOKIE)
        return self._signer.open("cookie", cookie) if cookie else None

    async def _holds(self, sign_in: SignIn) -> bool:
        """A key that was revoked or changed takes what it opened with it. A password ends its whole turn."""
        if not sign_in.proof:
            return True
        key = await self._guard.key_of(sign_in.proof)
        return key is not None and opens(key)

    def _put_cookie(self, request: Request, response: Response, value: str, until: int) -> None:
        seconds = (until - self._clock()) // 1000
        response.set_cookie(
            COOKIE, value, max_age=seconds, httponly=True, samesite="lax", secure=_by_https(request), path="/"
        )


def opens(key: ApiKey) -> bool:
    """The dashboard shows all sessions and changes everything: it takes a key that may do all of that."""
    return "admin" in key.scopes and not key.sessions


def _by_https(request: Request) -> bool:
    return request.url.scheme == "https"
