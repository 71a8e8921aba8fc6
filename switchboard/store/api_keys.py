"""API keys beside the one of the settings: each with a name, scopes, sessions and a rate of its own."""

import hashlib
import secrets
from dataclasses import dataclass

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

SCOPES = ("send", "read", "admin")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`id` is the start of the secret's digest: safe to show and to log. No sessions means all of them."""

    id: str
    name: str
    scopes: frozenset[str]
    sessions: frozenset[str]
    per_minute: int


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKeys:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def create(
        self, name: str, scopes: frozenset[str], sessions: frozenset[str], per_minute: int
    ) -> tuple[ApiKey, str]:
        """The new key and its secret, which is not kept and can't be shown again."""
        secret = "sk_" + secrets.token_urlsafe(32)
        fingerprint = digest(secret)
        fields = {
            "name": name,
            "scopes": " ".join(sorted(scopes)),
            "sessions": " ".join(sorted(sessions)),
            "perMinute": str(per_minute),
        }
        async with store_errors():
            await self._client.hset(self._keys("api_key", fingerprint), mapping=fields)
            await self._client.sadd(self._keys("api_keys"), fingerprint)
        return _key(fingerprint, fields), secret

    async def find(self, fingerprint: str) -> ApiKey | None:
        """By the digest of its secret."""
        async with store_errors():
            raw = await self._client.hgetall(self._keys("api_key", fingerprint))
        return _key(fingerprint, raw) if raw else None

    async def list(self) -> "list[ApiKey]":
        async with store_errors():
            fingerprints = sorted(await self._client.smembers(self._keys("api_keys")))
            rows = [(f, await self._client.hgetall(self._keys("api_key", f))) for f in fingerprints]
        return [_key(fingerprint, raw) for fingerprint, raw in rows if raw]

    async def revoke(self, key_id: str) -> bool:
        async with store_errors():
            for fingerprint in await self._client.smembers(self._keys("api_keys")):
                if fingerprint.startswith(key_id) and len(key_id) >= 8:
                    await self._client.delete(self._keys("api_key", fingerprint))
                    await self._client.srem(self._keys("api_keys"), fingerprint)
                    return True
        return False

    async def admit(self, key_id: str, per_minute: int, now: int) -> bool:
        """Count one call of this key; False when it has had its calls for this minute."""
        key = self._keys("rate", f"{key_id}:{now // 60_000}")
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            pipeline.incr(key)
            pipeline.expire(key, 120)
            calls, _ = await pipeline.execute()
        return int(calls) <= per_minute


def _key(fingerprint: str, raw: dict[str, str]) -> ApiKey:
    return ApiKey(
        id=fingerprint[:12],
        name=raw["name"],
        scopes=frozenset(raw["scopes"].split()),
        sessions=frozenset(raw["sessions"].split()),
        per_minute=int(raw["perMinute"]),
    )
