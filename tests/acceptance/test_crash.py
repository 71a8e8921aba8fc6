"""Everything is killed with SIGKILL at random moments, again and again; no message is lost, doubled or too early.

`CRASH_SEED=7 pytest tests/acceptance/test_crash.py` repeats the orders and the kills of one run.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

import pytest

from switchboard.store.client import Redis
from tests.support.crash_client import Client, Order, orders
from tests.support.crash_evidence import (
    MINUTE_MS,
    Evidence,
    check_caps,
    check_minutes,
    check_one_id_each,
    check_one_in_flight,
    read_evidence,
)
from tests.support.crash_fleet import BY_THE_DAY, MAX_ATTEMPTS, NUMBERS, PREFIX, Fleet, Number
from tests.support.crash_run import answers, connected, kill_at_random, read_hashes, start, until_settled
from tests.support.places import Audit, audit
from tests.support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.crash]

SENDING_S = 34.0
KILLING_S = 44.0
LIMIT_S = 200.0
SENT = {"sent", "delivered", "read"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """All there is to judge by after a run."""

    orders: Sequence[Order]
    client: Client
    audit: Audit
    accounts: Mapping[str, Mapping[str, str]]
    evidence: Evidence

    def of(self, number: Number) -> list[Mapping[str, str]]:
        return [m for m in self.audit.messages.values() if m.get("account") == number.phone]


async def test_nothing_is_lost_doubled_or_over_a_cap_whatever_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("CRASH_SEED", SystemRandom().randrange(1_000_000)))
    started = time.monotonic()
    with capsys.disabled():
        sys.stdout.write(f"\ncrash test, CRASH_SEED={seed}\n")
    with tempfile.TemporaryDirectory(prefix="sb-") as socket_folder, Processes(tmp_path) as processes:
        async with asyncio.timeout(LIMIT_S):
            outcome = await run(Fleet(tmp_path, Path(socket_folder), seed), processes, seed)
        processes.check()
    with capsys.disabled():
        sys.stdout.write(summary(outcome, processes, time.monotonic() - started))


async def run(fleet: Fleet, processes: Processes, seed: int) -> Outcome:
    """Start everything, send and kill at the same time, wait until all is quiet, and judge."""
    async with connected(fleet.store_url) as (store, redis), Client(fleet.gateway_urls, Random(seed)) as client:
        await start(fleet, processes, store)
        book = orders(Random(seed))
        async with asyncio.TaskGroup() as group:
            group.create_task(client.send_all(book, SENDING_S))
            group.create_task(kill_at_random(processes, KILLING_S, Random(seed)))
        await answers(store)
        await until_settled(redis, processes)
        processes.kill("valkey")  # what is judged is what is on disk
        processes.restart("valkey")
        await answers(store)
        outcome = await gather(book, client, redis, fleet)
        check_intake(outcome)
        check_nothing_is_lost(outcome)
        check_workers(outcome)
        await check_answers(outcome, client, Random(seed))
        return outcome


async def gather(book: Sequence[Order], client: Client, redis: Redis, fleet: Fleet) -> Outcome:
    return Outcome(
        orders=book,
        client=client,
        audit=await audit(redis, PREFIX),
        accounts=await read_hashes(redis, "account:97*"),
        evidence=read_evidence(fleet.log_of(session) for number in NUMBERS for session in number.sessions),
    )


def check_intake(outcome: Outcome) -> None:
    """Every order was answered; what was accepted is there exactly once, what was refused is not there at all."""
    client, stored = outcome.client, outcome.audit.messages
    assert not client.answers.keys() & client.refused
    accepted = [order for order in outcome.orders if order.key in client.answers]
    assert len(accepted) + len(client.refused) == len(outcome.orders)
    expected = {reference: to for order in accepted for reference, to in order.messages.items()}
    assert Counter(m["reference"] for m in stored.values()) == Counter(expected.keys())
    assert {m["reference"]: m["to"] for m in stored.values()} == expected
    for order in accepted:
        told = client.answers[order.key]
        for message in [stored[told]] if told in stored else rows_of(outcome, told):
            assert message["reference"] in order.messages


def rows_of(outcome: Outcome, batch: str) -> list[Mapping[str, str]]:
    rows = [m for m in outcome.audit.messages.values() if m.get("batch") == batch]
    assert rows, f"{batch} was accepted and is nowhere"
    return rows


def check_nothing_is_lost(outcome: Outcome) -> None:
    """Ended, or waiting for a day's allowance that is spent; every attempt was counted, and nothing else."""
    for number in NUMBERS:
        mine, account = outcome.of(number), outcome.accounts[number.phone]
        waiting = [m for m in mine if m["place"] not in {"done", "dead"}]
        assert all(m["place"] == "queue" for m in waiting)
        spent = int(account["dayCount"])
        assert spent == sum(int(m.get("attempts", 0)) for m in mine)
        assert spent <= number.daily
        assert not waiting or spent == number.daily
        if number in BY_THE_DAY:
            assert waiting, f"{number.phone} was meant to run out of allowance"
    for message_id, message in outcome.audit.messages.items():
        assert int(message.get("attempts", 0)) <= MAX_ATTEMPTS
        if message_id in outcome.evidence.acked:
            assert message["status"] in SENT, f"{message_id} was acknowledged and is {message['status']}"


def check_workers(outcome: Outcome) -> None:
    evidence, stored = outcome.evidence, outcome.audit.messages
    check_one_id_each(evidence)
    for number in NUMBERS:
        check_caps(evidence, number)
        check_one_in_flight(evidence, number)
        last = [int(m["handed"]) for m in outcome.of(number) if int(m.get("attempts", 0))]
        check_minutes(last, number, MINUTE_MS)
    for claim in evidence.claims:
        message = stored[claim.message_id]
        assert message["to"] == claim.to
        assert claim.attempt <= int(message["attempts"])
        said, _ = evidence.settling.get(claim.key, ("nothing", 0))
        if message["status"] == "dead":
            assert said == "nack", f"{claim.key} is unconfirmed, not dead: its worker said {said}"
    unseen = {m for m, message in stored.items() if message["status"] in SENT} - {c.message_id for c in evidence.claims}
    assert not unseen, f"sent, and no worker ever had it: {unseen}"


async def check_answers(outcome: Outcome, client: Client, random: Random) -> None:
    """The public API says the same, and still knows every Idempotency-Key."""
    stored = outcome.audit.messages
    for order in random.sample([order for order in outcome.orders if order.key in client.answers], 50):
        await client.send(order)
    waiting = [message_id for message_id, m in stored.items() if m["place"] == "queue"]
    for message_id in random.sample(waiting, 20):
        status = await client.get(f"/api/v1/messages/{message_id}/status")
        assert status["waiting"]["reason"] == "daily_limit", status
    listed: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await client.get(f"/api/v1/dead-letters?limit=20{after}")
        listed += [item["messageId"] for item in page["items"]]
        after = page["nextCursor"] and f"&cursor={page['nextCursor']}"
    given_up = {message_id for message_id, m in stored.items() if m["status"] in {"dead", "unconfirmed"}}
    assert sorted(listed) == sorted(given_up)


def summary(outcome: Outcome, processes: Processes, seconds: float) -> str:
    client, statuses = outcome.client, outcome.audit.statuses
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(processes.kills.items()))
    ends = ", ".join(f"{status} {count}" for status, count in sorted(statuses.items()))
    attempts = sum(int(m.get("attempts", 0)) for m in outcome.audit.messages.values())
    return (
        f"  {len(outcome.audit.messages)} messages in {len(client.answers)} requests, {client.repeated} repeated, "
        f"{len(client.refused)} refused\n"
        f"  kills: {kills}\n"
        f"  {attempts} attempts, {len(outcome.evidence.claims)} seen by workers: {ends}\n"
        f"  {seconds:.0f} s\n"
    )
