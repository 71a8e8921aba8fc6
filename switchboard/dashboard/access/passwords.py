"""The dashboard's password: how it is hashed, compared and changed. One is enough; the API key opens, too."""

import asyncio
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from switchboard.domain.clock import Clock
from switchboard.domain.errors import InvalidRequest
from switchboard.store.sign_ins import SignIns

MIN_CHARACTERS = 10
MAX_CHARACTERS = 1000
_AT_ONCE = 2  # each takes 64 MB and a core for as long as it lasts


class Passwords:
    def __init__(self, sign_ins: SignIns, clock: Clock, hasher: PasswordHasher | None = None) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._hasher = hasher or PasswordHasher()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._decoy: str | None = None

    async def is_set(self) -> bool:
        return (await self._sign_ins.password_hash()).hash is not None

    async def verify(self, secret: str) -> int | None:
        """The turn in which this is the right password; None if it is not. Takes as long when none is set."""
        kept = await self._sign_ins.password_hash()
        secret = _plain(secret)
        async with self._turns:
            right = await asyncio.to_thread(self._matches, kept.hash, secret)
            if not right or kept.hash is None:
                return None
            if self._hasher.check_needs_rehash(kept.hash):
                await self._sign_ins.rehash(kept, await asyncio.to_thread(self._hasher.hash, secret))
        return kept.turn

    async def change(self, new: str, stays: str | None = None) -> None:
        """Set it, and end every sign-in but the one with the digest `stays` (`Visitor.digest`)."""
        secret = _plain(new)
        if len(secret) < MIN_CHARACTERS:
            raise InvalidRequest(f"password: needs at least {MIN_CHARACTERS} characters", "password")
        if len(secret) > MAX_CHARACTERS:
            raise InvalidRequest(f"password: has more than {MAX_CHARACTERS} characters", "password")
        async with self._turns:
            hashed = await asyncio.to_thread(self._hasher.hash, secret)
        await self._sign_ins.set_password_hash(hashed, stays, self._clock())

    async def clear(self, stays: str | None = None) -> None:
        """From now on only API keys open; every sign-in but `stays` ends."""
        await self._sign_ins.set_password_hash(None, stays, self._clock())

    def _matches(self, hashed: str | None, secret: str) -> bool:
        if hashed is None and self._decoy is None:
            self._decoy = self._hasher.hash("nobody's password")
        try:
            return self._hasher.verify(hashed or self._decoy or "", secret)
        except (Argon2Error, InvalidHashError):
            return False


def _plain(secret: str) -> str:
    """Two keyboards may write the same letters in different ways."""
    return unicodedata.normalize("NFKC", secret)
