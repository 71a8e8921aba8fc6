"""Links that sign in by themselves, once and for some minutes: for the person at the terminal that printed them.

A token is short, so that a link fits a line of a terminal: when it ends, some chance, and a signature of both.
"""

import secrets

from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.access.visitors import Opened
from switchboard.domain.clock import Clock
from switchboard.store.api_keys import digest
from switchboard.store.sign_ins import SignIns

LIFETIME_MS = 600_000
LINK = "link"
_PURPOSE = "open"
_MARK = 22  # 128 bits of a signature: nobody guesses that within minutes


def one_time_url(url: str, secret: str, now: int) -> str:
    """A new one, for whoever knows the dashboard's secret. Nothing is written down until it is used."""
    value = f"{(now + LIFETIME_MS) // 1000:x}{secrets.token_hex(4)}"
    return f"{url}/open/{value}.{_mark(Signer(secret), value)}"


class OneTimeLinks:
    def __init__(self, signer: Signer, sign_ins: SignIns, clock: Clock) -> None:
        self._signer = signer
        self._sign_ins = sign_ins
        self._clock = clock

    def seems_good(self, token: str) -> bool:
        """It is ours, and not too old. It may have been used."""
        return self._until(token) > self._clock()

    def is_ours(self, token: str) -> bool:
        return self._until(token) > 0

    async def use(self, token: str) -> Opened | None:
        """What it opens, the first time."""
        until, now = self._until(token), self._clock()
        if until <= now or not await self._sign_ins.spend(digest(token), until, now):
            return None
        return Opened(LINK, "", (await self._sign_ins.password_hash()).turn)

    def _until(self, token: str) -> int:
        """0 if it is not one of ours."""
        value, _, mark = token.partition(".")
        if not self._signer.is_same(_mark(self._signer, value), mark):
            return 0
        return int(value[:-8], 16) * 1000


def _mark(signer: Signer, value: str) -> str:
    return signer.mark(_PURPOSE, value)[:_MARK]
