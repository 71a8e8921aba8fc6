"""The seeded store says the same through the store's own functions as it was filled with, and nothing moves in it."""

import time

import httpx
import pytest
import redis

from switchboard.domain.messages import Place, Status
from switchboard.domain.sessions import State
from switchboard.store import Store
from tests.support.premises import API_KEY
from tests.support.seeded import PER_PROXY, Seeded, seed
from tests.support.seeded_program import seeded_program
from tests.support.serving import until

pytestmark = pytest.mark.anyio

NOW = 1_790_000_000_000


@pytest.fixture
def seeded(valkey_url: str, prefix: str) -> Seeded:
    client = redis.Redis.from_url(valkey_url, decode_responses=True)
    made = seed(client, prefix, NOW, sessions=100, messages=2_000)
    client.close()
    return made


async def test_every_session_has_its_places_and_every_state_is_there(store: Store, seeded: Seeded) -> None:
    sessions = await store.sessions.all()
    assert len(sessions) == 100
    assert {session.state for session in sessions} == set(State) - {State.PAUSED, State.RESTRICTED}
    proxies = {proxy.id: proxy for proxy in await store.proxies.all()}
    assert all(len(proxy.sessions) <= PER_PROXY for proxy in proxies.values())
    assert not all(proxy.ok for proxy in proxies.values())
    for session in sessions:
        assert session.proxy is None or session.id in proxies[session.proxy].sessions
        assert session.wanted is None, "nobody starts it"
        states = await store.sessions.states(session.id, 0)
        assert states[-1][1] is session.state
        assert [at for at, _ in states] == sorted(at for at, _ in states)
    due = await store.pace.take(10, NOW)
    assert (due.accounts, due.released) == ([], 0), "nothing is to be done"


async def test_messages_are_in_every_status_and_where_they_say(store: Store, seeded: Seeded) -> None:
    ids = [message for of_status in seeded.messages.by_status.values() for message in of_status]
    messages = await store.messages.get_many(ids)
    assert len(messages) == 2_000
    assert {message.status for message in messages} == set(Status) - {Status.SENDING}
    places = [message.place for message in messages]
    waiting = await store.messages.waiting()
    assert waiting["queue"] == places.count(Place.QUEUE) == seeded.messages.waiting
    assert waiting["scheduled"] == places.count(Place.SCHEDULED) == seeded.messages.scheduled
    assert waiting["dead"] == places.count(Place.DEAD) == len(seeded.messages.dead)
    assert all(message.created_at <= (message.sent_at or NOW) <= NOW for message in messages)


async def test_batches_say_what_their_rows_do_and_one_is_under_way(store: Store, seeded: Seeded) -> None:
    under_way = 0
    for name in seeded.messages.batches:
        batch = await store.batches.get(name)
        assert batch is not None
        rows = await store.messages.get_many(await store.batches.rows(name, 0, batch.total))
        assert len(rows) == batch.total
        assert {row.batch for row in rows} == {name}
        assert batch.delivered == sum(row.delivered_at is not None for row in rows)
        assert batch.waiting == sum(row.place in (Place.QUEUE, Place.SCHEDULED) for row in rows)
        under_way += batch.waiting > 0
    assert under_way == 1


async def test_figures_are_those_of_the_messages(store: Store, seeded: Seeded) -> None:
    dates = [time.strftime("%Y-%m-%d", time.gmtime(NOW / 1000 - n * 86_400)) for n in range(32)]
    days = await store.stats.days("fleet", dates)
    sent = sum(len(seeded.messages.by_status[status]) for status in ("sent", "delivered", "read"))
    assert sum(day.sent for day in days) == sent
    assert sum(day.failed for day in days) == len(seeded.messages.dead)
    assert len(await store.samples.since(NOW - 86_400_000)) > 100


async def test_the_program_leaves_a_seeded_store_as_it_is() -> None:
    async with seeded_program(sessions=40, messages=500) as it:
        async with httpx.AsyncClient(base_url=it.url, headers={"X-API-Key": API_KEY}, trust_env=False) as http:
            shown = (await http.get("/api/sessions")).json()["items"]
            dead = (await http.get("/api/v1/dead-letters")).json()["items"]
        assert len(shown) == 40
        assert {session["status"] for session in shown} >= {"connected", "qr_ready", "failed", "logged_out"}
        assert len(dead) == len(it.seeded.messages.dead)
        await until(lambda: it.store.exists("switchboard:orchestrator:leader") == 1)  # it has looked at the fleet
        states = {one.id: it.store.hget(f"switchboard:session:{one.id}", "status") for one in it.seeded.sessions}
    assert states == {one.id: one.state for one in it.seeded.sessions}
