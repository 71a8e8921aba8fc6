"""Who is signed in at the dashboard, what was tried in vain, which links were used, and the password's hash.

Not for cookies or for what a secret is worth: here are only digests, and moments after which they count no more.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from redis.exceptions import WatchError

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys


@dataclass(frozen=True, slots=True)
class SignIn:
    """`proof` says by what: the digest of an API key, or nothing for the password. It counts in its `turn` only."""

    who: str
    proof: str
    turn: int
    at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Password:
    """`hash` is None while none is set. `turn` grows whenever all sign-ins are ended."""

    hash: str | None
    turn: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """What was tried in this minute, this one included."""

    of_address: int
    of_all: int


class SignIns:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def create(self, token_digest: str, sign_in: SignIn, now: int) -> None:
        async with store_errors():
            await self._client.set(self._record(token_digest), _dump(sign_in), px=sign_in.expires_at - now)

    async def get(self, token_digest: str, now: int) -> SignIn | None:
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            pipeline.get(self._record(token_digest))
            pipeline.hget(self._keys("password"), "turn")
            raw, turn = await pipeline.execute()
        sign_in = _load(raw) if raw else None
        return sign_in if sign_in and sign_in.turn == int(turn or 0) and now < sign_in.expires_at else None

    async def touch(self, token_digest: str, sign_in: SignIn, now: int) -> None:
        """Keep what changed of it. One that was ended meanwhile stays so."""
        async with store_errors():
            await self._client.set(self._record(token_digest), _dump(sign_in), xx=True, px=sign_in.expires_at - now)

    async def remove(self, token_digest: str) -> None:
        async with store_errors():
            await self._client.delete(self._record(token_digest))

    async def remove_all(self) -> None:
        async with store_errors():
            await self._client.hincrby(self._keys("password"), "turn", 1)

    async def attempts(self, address: str, now: int) -> Attempts:
        """Count one more, before it is known to be wrong: those made at the same moment count, too."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for key in self._counters(address, now):
                pipeline.incr(key)
                pipeline.expire(key, 120)
            mine, _, everyone, _ = await pipeline.execute()
        return Attempts(int(mine), int(everyone))

    async def forgive(self, address: str, now: int) -> None:
        """The attempt counted at `now` was right."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for key in self._counters(address, now):
                pipeline.decr(key)
                pipeline.expire(key, 120)
            await pipeline.execute()

    async def spend(self, link_digest: str, until: int, now: int) -> bool:
        """A link that signs in by itself, or a form that counts once, is used: whether for the first time. Remembered
        while it is good."""
        async with store_errors():
            return bool(await self._client.set(self._keys("sign_in_spent", link_digest), "1", nx=True, px=until - now))

    async def password_hash(self) -> Password:
        async with store_errors():
            kept, turn = await self._client.hmget(self._keys("password"), "hash", "turn")
        return Password(kept, int(turn or 0))

    async def set_password_hash(self, hashed: str | None, stays: str | None, now: int) -> None:
        """Another password, or none; every sign-in ends but the one with the digest `stays`."""
        mine = await self.get(stays, now) if stays else None
        async with store_errors():
            pipeline = self._client.pipeline(transaction=True)
            if hashed is None:
                pipeline.hdel(self._keys("password"), "hash")
            else:
                pipeline.hset(self._keys("password"), "hash", hashed)
            pipeline.hincrby(self._keys("password"), "turn", 1)
            _, turn = await pipeline.execute()
        if stays and mine:
            await self.touch(stays, replace(mine, turn=int(turn)), now)

    async def rehash(self, was: Password, hashed: str) -> None:
        """The same password, hashed anew, unless it was changed meanwhile."""
        async with store_errors(), self._client.pipeline(transaction=True) as pipeline:
            await pipeline.watch(self._keys("password"))
            if await pipeline.hget(self._keys("password"), "hash") != was.hash:
                return
            pipeline.multi()
            pipeline.hset(self._keys("password"), "hash", hashed)
            with suppress(WatchError):  # changed at this very moment: then there is nothing to hash anew
                await pipeline.execute()

    def _record(self, token_digest: str) -> str:
        return self._keys("sign_in", token_digest)

    def _counters(self, address: str, now: int) -> tuple[str, str]:
        minute = now // 60_000
        return self._keys("sign_in_attempts", f"{address}:{minute}"), self._keys("sign_in_attempts", f"all:{minute}")


def _dump(sign_in: SignIn) -> str:
    return json.dumps(asdict(sign_in))


def _load(raw: str) -> SignIn:
    fields: dict[str, Any] = json.loads(raw)
    return SignIn(**fields)
