"""The index of all messages and batches: walked in short steps while others come, go and are forgotten."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.retry import FailureClass
from switchboard.orchestrator.orchestrator import Orchestrator
from switchboard.runners.memory import MemoryRunner, MemoryWorld
from switchboard.store import open_store
from switchboard.store.client import connect
from switchboard.store.index import WalkRules
from switchboard.store.intake import Accepted, Entry, Row
from switchboard.store.messages import MessageQuery, MessageRules
from switchboard.store.store import StoreRules
from tests.support.board import rules_for
from tests.support.driver import DAY, HOUR, Driver

pytestmark = pytest.mark.anyio

PHONE, OTHER = "972500000001", "972500000002"
ANY = MessageQuery()
BATCH = "batch_" + "b" * 18


@pytest.fixture
async def driver(valkey_url: str, prefix: str) -> AsyncIterator[Driver]:
    """Three entries a step and twelve a page, so that few messages show what happens with many."""
    rules = StoreRules(ZoneInfo("UTC"), messages=MessageRules(walk=WalkRules(step=3, most=12)))
    store, client = open_store(valkey_url, prefix, rules), connect(valkey_url)
    driver = Driver(store, client, prefix)
    await driver.link("a", PHONE)
    await driver.link("b", OTHER)
    yield driver
    await store.close()
    await client.aclose()


async def send(driver: Driver, count: int, session: str = "a") -> list[str]:
    """Each at a moment of its own; newest first, as they are found."""
    sent = []
    for _ in range(count):
        driver.now += 1
        sent.append(await driver.send(session))
    return sent[::-1]


async def forget(driver: Driver, *ids: str) -> None:
    """As when their time is up."""
    await driver.store.messages.cancel(ids, driver.now, "cancelled")
    await driver.client.delete(*(f"{driver.prefix}message:{message}" for message in ids))


async def page(
    driver: Driver, limit: int, cursor: str | None = None, query: MessageQuery = ANY, sessions: Sequence[str] = ()
) -> tuple[list[str], str | None]:
    found = await driver.store.messages.recent(query, limit, cursor, frozenset(sessions))
    return [message.id for message in found.items], found.next_cursor


async def every(driver: Driver, query: MessageQuery = ANY, limit: int = 2, sessions: Sequence[str] = ()) -> list[str]:
    seen, cursor = await page(driver, limit, None, query, sessions)
    while cursor is not None:
        more, cursor = await page(driver, limit, cursor, query, sessions)
        seen += more
    return seen


async def indexed(driver: Driver, name: str = "messages") -> set[str]:
    return {str(member) for member in await driver.client.zrange(driver.prefix + name, 0, -1)}


async def test_the_newest_come_first_page_by_page(driver: Driver) -> None:
    sent = await send(driver, 10)
    seen, cursor = await page(driver, 4)
    assert seen == sent[:4]
    seen, cursor = await page(driver, 4, cursor)
    assert seen == sent[4:8]
    assert await page(driver, 4, cursor) == (sent[8:], None)


async def test_nothing_is_one_empty_page_and_the_last_full_one_has_no_next(driver: Driver) -> None:
    assert await page(driver, 5) == ([], None)
    sent = await send(driver, 6)
    for limit in (6, 7):
        assert await page(driver, limit) == (sent, None)
    assert (await page(driver, 5))[1] is not None


async def test_what_was_accepted_at_once_stands_in_its_order(driver: Driver) -> None:
    rows = [driver.row() for _ in range(9)]
    entries = [Entry(rows[:4], batch=(BATCH, 0)), Entry([rows[4]]), Entry(rows[5:], batch=(BATCH[:-1] + "c", 0))]
    results = await driver.store.intake.enqueue(entries, driver.now)
    assert all(isinstance(result, Accepted) for result in results)
    assert await every(driver) == [row.id for row in rows][::-1]


async def test_a_batch_of_ten_thousand_is_all_there_in_its_order(driver: Driver) -> None:
    rows = [driver.row() for _ in range(10_000)]
    await driver.send_batch(BATCH, rows)
    walk = await driver.client.zrange(driver.prefix + "messages", 0, -1)
    assert walk == await driver.store.batches.rows(BATCH, 0, 20_000) == [row.id for row in rows]


async def test_what_was_refused_is_not_in_it(driver: Driver) -> None:
    await driver.store.suppressions.add("972509876543")
    await driver.enqueue(Entry([driver.row("972509876543")], session="a"))
    await driver.enqueue(Entry([driver.row("972509876543")], session="a", batch=(BATCH, 0)))
    assert await indexed(driver) == await indexed(driver, "batches") == set()


async def test_a_cursor_holds_while_others_come_and_go(driver: Driver) -> None:
    sent = await send(driver, 9)
    seen, cursor = await page(driver, 3)
    assert seen == sent[:3]
    await send(driver, 5)
    await forget(driver, sent[2], sent[4])  # the first is the very one the cursor points to
    await page(driver, 9)
    assert sent[2] not in await indexed(driver)
    seen, cursor = await page(driver, 3, cursor)
    assert seen == [sent[3], *sent[5:7]]
    assert await page(driver, 3, cursor) == (sent[7:], None)
    assert sent[2] not in await indexed(driver)


async def test_any_number_at_one_moment_are_all_found_though_the_last_one_seen_is_gone(driver: Driver) -> None:
    sent = {await driver.send() for _ in range(20)}
    seen, cursor = await page(driver, 5)
    await forget(driver, *seen)
    await driver.store.messages.tidy(driver.now + 1)
    while cursor is not None:
        more, cursor = await page(driver, 5, cursor)
        seen += more
    assert len(seen) == 20
    assert set(seen) == sent


async def test_each_filter_finds_its_own(driver: Driver) -> None:
    mine, theirs = await send(driver, 4), await send(driver, 4, "b")
    driver.now += 1
    named = Row("d" * 18, "972501112233", "hello", reference="order-17")
    await driver.enqueue(Entry([named], session="a"))
    driver.now += 1
    unrouted = await driver.send(None)
    rows = await driver.send_batch(BATCH, [driver.row() for _ in range(5)], "b")
    for query, expected in {
        MessageQuery(session="a"): [named.id, *mine],
        MessageQuery(account=OTHER): [*rows[::-1], *theirs],
        MessageQuery(account=OTHER, statuses=frozenset({"queued"})): theirs,
        MessageQuery(statuses=frozenset({"scheduled"})): rows[::-1],
        MessageQuery(statuses=frozenset({"scheduled", "queued"}), session="b"): [*rows[::-1], *theirs],
        MessageQuery(to="2233"): [named.id],
        MessageQuery(to="97250111"): [named.id],
        MessageQuery(to="0111"): [named.id],
        MessageQuery(to="...."): [],
        MessageQuery(reference="order-17"): [named.id],
        MessageQuery(reference="order-1"): [],
        MessageQuery(batch=BATCH): rows,
        MessageQuery(batch=BATCH, session="b", statuses=frozenset({"scheduled"})): rows,
        MessageQuery(batch=BATCH, session="a"): [],
        MessageQuery(batch="batch_" + "0" * 18): [],
        MessageQuery(session="nobody"): [],
    }.items():
        assert await every(driver, query) == expected, query
    assert unrouted in await every(driver)


async def test_of_some_sessions_only_theirs_are_found_and_pages_are_full(driver: Driver) -> None:
    mine = []
    for _ in range(5):
        mine += await send(driver, 1)
        await send(driver, 2, "b")
    await driver.send(None)
    assert (await page(driver, 3, None, ANY, ["a"]))[0] == mine[::-1][:3]
    assert await every(driver, sessions=["a", "c"]) == mine[::-1]
    assert await every(driver, MessageQuery(session="a"), sessions=["a"]) == mine[::-1]
    assert await every(driver, MessageQuery(session="b"), sessions=["a"]) == []
    assert await every(driver, sessions=["c"]) == []


async def test_a_message_is_found_as_what_it_has_become(driver: Driver) -> None:
    sent = await send(driver, 2)
    first = await driver.attempt()
    await driver.nack(first, FailureClass.REFUSED)
    assert await every(driver, MessageQuery(statuses=frozenset({"dead"}))) == [first.message_id] == [sent[1]]
    await driver.store.messages.redrive(sent[1], driver.now)
    assert await every(driver, MessageQuery(statuses=frozenset({"queued"}))) == sent


async def test_a_long_search_is_answered_as_it_is_and_goes_on_from_there(driver: Driver) -> None:
    [old] = await send(driver, 1, "b")
    await send(driver, 20)
    found, cursor = await page(driver, 5, None, MessageQuery(session="b"))
    assert found == []
    assert cursor is not None
    assert await page(driver, 5, cursor, MessageQuery(session="b")) == ([old], None)


async def test_what_is_forgotten_is_skipped_and_leaves_the_index_when_it_is_met(driver: Driver) -> None:
    sent = await send(driver, 12)
    await forget(driver, *sent[:5], sent[7], sent[11])
    assert await every(driver) == [*sent[5:7], *sent[8:11]]
    assert await indexed(driver) == {*sent[5:7], *sent[8:11]}


async def test_rows_of_a_batch_keep_their_places_when_some_are_forgotten(driver: Driver) -> None:
    rows = await driver.send_batch(BATCH, [driver.row() for _ in range(8)])
    seen, cursor = await page(driver, 3, None, MessageQuery(batch=BATCH))
    assert seen == rows[:3]
    await forget(driver, rows[0], rows[4])
    seen, cursor = await page(driver, 3, cursor, MessageQuery(batch=BATCH))
    assert seen == [rows[3], *rows[5:7]]
    assert await page(driver, 3, cursor, MessageQuery(batch=BATCH)) == ([rows[7]], None)


async def test_tidying_takes_only_what_is_old_and_forgotten(driver: Driver) -> None:
    old = await send(driver, 10)
    driver.now += HOUR
    before = driver.now
    new = await send(driver, 2)
    gone = [old[0], *old[3:9], new[0]]
    await forget(driver, *gone)
    assert await driver.store.messages.tidy(before) == 7
    assert await indexed(driver) == {*old, *new} - set(gone[:-1])
    assert await driver.store.messages.tidy(before) == 0


async def test_batches_come_newest_first_and_are_forgotten_too(driver: Driver) -> None:
    names = [f"batch_{n:018x}" for n in (5, 3, 4, 1, 2)]
    for n, name in enumerate(names):
        driver.now += 1
        await driver.send_batch(name, [driver.row()], "ab"[n % 2])
    batches = driver.store.batches
    first = await batches.page(2, None)
    assert [batch.id for batch in first.items] == [names[4], names[3]]
    await driver.client.delete(f"{driver.prefix}batch:{names[2]}", f"{driver.prefix}batch:{names[0]}")
    rest = await batches.page(2, first.next_cursor)
    assert ([batch.id for batch in rest.items], rest.next_cursor) == ([names[1]], None)
    assert await indexed(driver, "batches") == {names[1], names[3], names[4]}
    of_b = await batches.page(5, None, frozenset({"b"}))
    assert [batch.id for batch in of_b.items] == [names[3], names[1]]
    await driver.client.delete(f"{driver.prefix}batch:{names[1]}")
    assert await batches.tidy(driver.now) == 1
    assert await indexed(driver, "batches") == {names[3], names[4]}


async def test_the_orchestrator_tidies_about_once_an_hour(driver: Driver, tmp_path: Path) -> None:
    sent = await send(driver, 3)
    await forget(driver, *sent[:2])
    rules = rules_for(tmp_path, retention_ms=DAY)
    runner = MemoryRunner(MemoryWorld(), clock=lambda: driver.now)
    orchestrator = Orchestrator(driver.store, runner, rules, lambda: driver.now, asyncio.Event())
    await orchestrator.tidy()
    assert len(await indexed(driver)) == 3
    driver.now += DAY + HOUR // 2
    orchestrator = Orchestrator(driver.store, runner, rules, lambda: driver.now, asyncio.Event())
    await orchestrator.tidy()
    assert await indexed(driver) == {sent[2]}
    await forget(driver, sent[2])
    driver.now += HOUR - 1
    await orchestrator.tidy()
    assert len(await indexed(driver)) == 1
    driver.now += 1
    await orchestrator.tidy()
    assert await indexed(driver) == set()
