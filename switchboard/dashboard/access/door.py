"""Whether a secret opens the dashboard (an API key that may do everything, or the password), and how often to try."""

import ipaddress

from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.visitors import Opened, opens
from switchboard.domain.clock import Clock
from switchboard.domain.errors import Forbidden, RateLimited, Unauthorized
from switchboard.store.api_keys import digest
from switchboard.store.sign_ins import SignIns
from switchboard.web.auth import Guard, seconds_left

PER_ADDRESS = 5
PER_MINUTE = 60
PASSWORD = "password"  # noqa: S105 - the name of who signs in by it


class Door:
    def __init__(self, guard: Guard, sign_ins: SignIns, passwords: Passwords, clock: Clock) -> None:
        self._guard = guard
        self._sign_ins = sign_ins
        self._passwords = passwords
        self._clock = clock

    async def open(self, secret: str, address: str) -> Opened:
        """Raises Unauthorized (wrong), Forbidden (a key that may not) or RateLimited (tried too often).

        Every attempt at the password counts until it proves right. A key, which nobody can guess, is looked at before:
        strangers can't lock out who has one.
        """
        opened = await self._by_key(secret)
        if opened is not None:
            return opened
        now = self._clock()
        place = _place(address)
        attempts = await self._sign_ins.attempts(place, now)
        if attempts.of_address > PER_ADDRESS or attempts.of_all > PER_MINUTE:
            raise RateLimited(seconds_left(now))
        opened = await self._by_password(secret)
        if opened is None:
            raise Unauthorized("This is neither an API key nor the password.")
        await self._sign_ins.forgive(place, now)
        return opened

    async def _by_key(self, secret: str) -> Opened | None:
        turn = (await self._sign_ins.password_hash()).turn
        fingerprint = digest(secret)
        key = await self._guard.key_of(fingerprint)
        if key is None:
            return None
        if not opens(key):
            raise Forbidden("This key is valid, but bound to sessions or without the scope 'admin'.", reason="key")
        return Opened(key.name, fingerprint, turn)

    async def _by_password(self, secret: str) -> Opened | None:
        turn = await self._passwords.verify(secret)
        return None if turn is None else Opened(PASSWORD, "", turn)


def _place(address: str) -> str:
    """Whoever has one IPv6 address has all of its network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "elsewhere"
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False).network_address)
