"""Accounts: phone numbers, their limits and what holds them."""

from collections.abc import Collection
from zoneinfo import ZoneInfo

from switchboard.domain.accounts import FOREVER, Account
from switchboard.domain.errors import SessionNotFound, SessionNotLinked
from switchboard.domain.hours import day_end
from switchboard.domain.trust import Overrides
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys
from switchboard.store.scripts import Scripts
from switchboard.store.views import AccountView, account_view, write_overrides


class Accounts:
    def __init__(self, client: Redis, keys: Keys, scripts: Scripts, default_zone: ZoneInfo) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._zone = default_zone

    async def sessions_of(self, phone: str) -> set[str]:
        async with store_errors():
            return set(await self._client.smembers(self._keys("account_sessions", phone)))

    async def look(self, *, now: int, session: str = "", phone: str = "") -> AccountView:
        """The account of a session, or of a phone; SessionNotFound or SessionNotLinked if there is none."""
        outcome, *view = await self._scripts.run("account", session, phone, now)
        if outcome == "NOT_LINKED":
            raise SessionNotLinked(session)
        if outcome == "NOT_FOUND":
            raise SessionNotFound(session or phone)
        return account_view(view[0], self._zone)

    async def look_many(self, phones: Collection[str], now: int) -> dict[str, Account]:
        """Those of these that are accounts, by phone; without the messages they are busy with."""
        if not phones:
            return {}
        views = await self._scripts.run("accounts", now, *phones)
        return {view[0]: account_view(view, self._zone).account for view in views}

    async def override(self, phone: str, overrides: Overrides, zone: str | None, now: int) -> None:
        """Replace the figures a person set for this account."""
        values = {
            "overrides": write_overrides(overrides),
            "tz": zone or "",
            "dayEnds": str(day_end(now, ZoneInfo(zone) if zone else self._zone)),
        }
        await self._adjust(phone, now, values, revise=True)

    async def pause(self, phone: str, until: int | None, now: int) -> None:
        """No sending until a moment, or until it is resumed."""
        await self._adjust(phone, now, {"paused": str(FOREVER if until is None else until), "pauseReason": ""})

    async def restrict(self, phone: str, until: int | None, now: int) -> None:
        """WhatsApp holds the account: until a moment it stated, or until a person resumes it."""
        await self._adjust(phone, now, {"restricted": str(FOREVER if until is None else until)})

    async def resume(self, phone: str, now: int) -> None:
        """A person says it may send again: ends a pause and a restriction."""
        await self._adjust(phone, now, {"paused": "", "pauseReason": "", "restricted": ""})

    async def _adjust(self, phone: str, now: int, values: dict[str, str], revise: bool = False) -> None:
        flat = [part for pair in values.items() for part in pair]
        if not await self._scripts.run("adjust", phone, now, int(revise), *flat):
            raise SessionNotFound(phone)
