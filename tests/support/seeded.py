"""A store full of life, in seconds: sessions in every state, their accounts and proxies, messages in every status.

For measuring and for looking at; nothing moves in it. The sessions are nobody's to start (`wanted` is not set) and no
account is due, so a Switchboard that runs on this store leaves it as it is. Goes through the keys, not the moves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from switchboard.store.keys import Keys
from tests.support import invented
from tests.support.past import DAY_MS, HOUR_MS, MINUTE_MS, Figures, invent_samples, invent_states, write_states
from tests.support.seeded_messages import SeededMessages, seed_messages

PER_PROXY = 4
# Of a hundred sessions. What is linked has a phone, an account and a place.
_STATES = {
    "connected": 79, "disconnected": 6, "starting": 2, "qr_ready": 3, "logged_out": 3, "failed": 2, "stopped": 4,
    "passkey_required": 1,
}  # fmt: skip
_LINKED = ("connected", "disconnected", "failed", "stopped")
_REASONS = {
    "disconnected": "proxy_error",
    "failed": "crash_loop:worker_exited:1",
    "stopped": "by_request",
    "logged_out": "logged_out",
}


@dataclass(frozen=True, slots=True)
class SeededSession:
    id: str
    state: str
    name: str
    phone: str | None
    proxy: str | None


@dataclass(frozen=True, slots=True)
class Seeded:
    """What is there, to pick examples from."""

    sessions: Sequence[SeededSession]
    proxies: Sequence[str]
    messages: SeededMessages
    by_state: Mapping[str, list[SeededSession]] = field(default_factory=dict)

    def one(self, state: str) -> SeededSession:
        return self.by_state[state][0]


def seed(
    client: Any, prefix: str, now: int, *, sessions: int = 1_000, messages: int = 100_000, seed: int = 7
) -> Seeded:
    """Into an empty store, through a synchronous client of redis-py. The same seed gives the same store."""
    keys, chance = Keys(prefix), Random(seed)
    pipeline = client.pipeline(transaction=False)
    proxies = [f"proxy_{n}" for n in range(1, sessions // PER_PROXY + sessions // 50 + 2)]
    _write_proxies(pipeline, keys, chance, proxies, now)
    made = list(_invent_sessions(chance, sessions, proxies))
    for one in made:
        _write_session(pipeline, keys, chance, one, now)
    pipeline.set(keys("sessions_seq"), sessions)
    pipeline.execute()
    figures = Figures()
    senders = [(one.id, one.phone) for one in made if one.phone and one.state == "connected"]
    sent = seed_messages(client, keys, chance, senders, figures, now, messages)
    figures.write(pipeline, keys)
    pipeline.execute()
    waiting = {"waiting": sent.waiting, "scheduled": sent.scheduled, "dead": len(sent.dead)}
    up = {"connected": len(senders), "sessions": sessions, "sent": messages // 30}
    invent_samples(pipeline, keys, chance, now, waiting | up)
    pipeline.execute()
    by_state: dict[str, list[SeededSession]] = {}
    for one in made:
        by_state.setdefault(one.state, []).append(one)
    return Seeded(made, proxies, sent, by_state)


def _write_proxies(pipeline: Any, keys: Keys, chance: Random, proxies: Sequence[str], now: int) -> None:
    for n, proxy in enumerate(proxies):
        host = f"203.0.113.{n % 250 + 1}:{1080 + n // 250}"
        fields = {"url": f"socks5h://user:pass@{host}", "host": host, "place": f"{host} user", "source": "api"}
        fields |= {"addedAt": str(now - 30 * DAY_MS), "status": "OK", "reason": ""}
        if n % 60 == 59 or proxy == proxies[-1]:
            fields |= {"status": "BAD", "reason": "unreachable", "badAt": str(now - chance.randint(1, 300) * MINUTE_MS)}
        pipeline.hset(keys("proxy", proxy), mapping=fields)
    pipeline.sadd(keys("proxies"), *proxies)
    pipeline.set(keys("proxies_seq"), len(proxies))


def _invent_sessions(chance: Random, count: int, proxies: Sequence[str]) -> Iterator[SeededSession]:
    """Every state is there from a few dozen sessions on; one phone in twenty has a second session."""
    states = [state for state, share in _STATES.items() for _ in range(max(1, round(share * count / 100)))]
    chance.shuffle(states := (states + ["connected"] * count)[:count])
    numbers = invented.phones(chance)
    phone = next(numbers)
    for n, state in enumerate(states):
        if chance.random() > 0.05:
            phone = next(numbers)
        linked = state in _LINKED
        placed = linked or state in ("starting", "qr_ready")
        proxy = proxies[n // PER_PROXY] if placed else None
        yield SeededSession(f"worker_{n + 1}", state, invented.name(chance), phone if linked else None, proxy)


def _write_session(pipeline: Any, keys: Keys, chance: Random, one: SeededSession, now: int) -> None:
    age = chance.choice((1, 2, 5, 9, 20, 60)) * DAY_MS
    fields = {
        "status": one.state, "reason": _REASONS.get(one.state, ""), "createdAt": now - age, "name": one.name,
        "device": f"Switchboard {one.id}", "generation": 1,
    }  # fmt: skip
    if one.phone:
        fields |= {"phone": one.phone, "linked": 1, "connectedAt": now - age + 31_000, "lastPing": now - 20_000}
        _write_account(pipeline, keys, chance, one, now, age)
    if one.proxy:
        fields |= {"proxy": one.proxy, "boundAt": now - age}
        pipeline.sadd(keys("proxy_sessions", one.proxy), one.id)
        if not one.phone:
            pipeline.set(keys("temp", one.id), one.proxy)
    if one.state == "qr_ready":
        fields |= {"qr": f"2@{one.id},made,up", "qrUntil": now + HOUR_MS, "scanBy": now + HOUR_MS}
    pipeline.hset(keys("session", one.id), mapping=fields)
    pipeline.sadd(keys("sessions"), one.id)
    past = invent_states(chance, now, age // DAY_MS) if one.phone else [(now - age, "starting")]
    if past[-1][1] != one.state:
        past.append((now - chance.randint(1, 90) * MINUTE_MS, one.state))
    write_states(pipeline, keys, one.id, past)
    for at, state in past[-20:]:
        pipeline.xadd(
            keys("session_events", one.id), {"type": f"session.{state}", "at": at, "account": one.phone or ""}
        )


def _write_account(pipeline: Any, keys: Keys, chance: Random, one: SeededSession, now: int, age: int) -> None:
    phone = str(one.phone)
    fields: dict[str, Any] = {
        "first": now - age,
        "rev": 1,
        "epoch": 1,
        "dayEnds": now + 6 * HOUR_MS,
        "dayCount": chance.randint(0, 20),
    }
    hold = chance.random()
    if hold < 0.03:
        fields |= {"paused": now + 2 * HOUR_MS, "pauseReason": "rate_limited"}
    elif hold < 0.04:
        fields |= {"restricted": -1}
    pipeline.hset(keys("account", phone), mapping=fields)
    pipeline.sadd(keys("accounts"), phone)
    pipeline.sadd(keys("account_sessions", phone), one.id)
    pipeline.sadd(keys("phone_sessions", phone), one.id)
    pipeline.set(keys("phone_proxy", phone), str(one.proxy))
    if one.state == "connected":
        pipeline.sadd(keys("connected", phone), one.id)
