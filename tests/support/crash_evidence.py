"""What the workers wrote down, and what follows from it. Shares no code with what it judges."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.support.crash_fleet import LEASE_MS, Number

MINUTE_MS = 60_000
SKEW_MS = 500
"""A moment is read by one process and written by another: on a busy machine that takes a while."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt as its worker saw it. `at` is the moment the store gave it away."""

    session: str
    message_id: str
    whatsapp_id: str
    to: str
    attempt: int
    lease_until: int

    @property
    def at(self) -> int:
        return self.lease_until - LEASE_MS

    @property
    def key(self) -> tuple[str, int]:
        return self.message_id, self.attempt


@dataclass(frozen=True, slots=True)
class Evidence:
    """All claims in the order they were given away, told once each; what workers said about them."""

    claims: Sequence[Claim]
    settling: dict[tuple[str, int], tuple[str, int]]  # (message, attempt) -> ack or nack, and the moment before it
    acked: frozenset[str]

    def of(self, number: Number) -> list[Claim]:
        return [claim for claim in self.claims if claim.session in number.sessions]


def read_evidence(logs: Iterable[Path]) -> Evidence:
    claims: dict[Claim, None] = {}
    settling: dict[tuple[str, int], tuple[str, int]] = {}
    acked: set[str] = set()
    for line in (json.loads(text) for log in logs if log.exists() for text in log.read_text().splitlines()):
        if "settling" in line:
            settling.setdefault((line["settling"], line["attempt"]), (line["call"], line["at"]))
        elif "acked" in line:
            acked.add(line["acked"])
        else:
            names = ("session", "messageId", "whatsappId", "to", "attempt", "leaseUntil")
            claims[Claim(*(line[name] for name in names))] = None  # a repeated answer says the same
    return Evidence(sorted(claims, key=lambda claim: claim.at), settling, frozenset(acked))


def check_one_id_each(evidence: Evidence) -> None:
    """No message under two WhatsApp ids, no WhatsApp id for two messages, no attempt given away twice."""
    for name, other in (("message_id", "whatsapp_id"), ("whatsapp_id", "message_id"), ("message_id", "to")):
        seen: dict[str, set[str]] = defaultdict(set)
        for claim in evidence.claims:
            seen[getattr(claim, name)].add(getattr(claim, other))
        twice = {key: values for key, values in seen.items() if len(values) > 1}
        assert not twice, f"one {name}, several {other}: {twice}"
    again = [key for key, times in Counter(claim.key for claim in evidence.claims).items() if times > 1]
    assert not again, f"attempts given away twice: {again}"


def check_caps(evidence: Evidence, number: Number) -> None:
    """Over the day, and over any minute.

    A message is counted when it is handed over, and its worker may claim it up to a lease later (and a
    little more, until a dispatcher is there to take it back): that much shorter is the minute here.
    """
    claims = evidence.of(number)
    assert len(claims) <= number.daily, f"{number.phone} was given {len(claims)} of {number.daily} in a day"
    check_minutes([claim.at for claim in claims], number, MINUTE_MS - 2 * LEASE_MS)


def check_minutes(moments: Sequence[int], number: Number, minute_ms: int) -> None:
    ordered = sorted(moments)
    for first, last in zip(ordered, ordered[number.per_minute :], strict=False):
        assert last - first >= minute_ms, f"{number.phone}: more than {number.per_minute} within {last - first} ms"


def check_one_in_flight(evidence: Evidence, number: Number) -> None:
    """While an attempt's lease runs and no worker has begun to settle it, no other one is given away.

    An acknowledgement of an earlier attempt, however late, settles the message too.
    """
    acks = {message: at for (message, _), (call, at) in evidence.settling.items() if call == "ack"}
    for claim, following in pairwise(evidence.of(number)):
        _, settled_at = evidence.settling.get(claim.key, ("", following.lease_until))
        held_until = min(claim.lease_until, settled_at, acks.get(claim.message_id, settled_at))
        assert following.at >= held_until - SKEW_MS, (
            f"{number.phone}: {following.key} was given away {held_until - following.at} ms before "
            f"{claim.key} was settled or its lease over"
        )
