"""The fleet as a whole: its figures, and the list that shows first what needs a person."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from switchboard.domain.sessions import State
from switchboard.store.sessions import With
from tests.support.board import Board, direct_rules, opened_board, refused
from tests.support.driver import HOUR, NOON, Driver

pytestmark = pytest.mark.anyio

SESSIONS, FLEET = "/api/sessions", "/api/fleet"


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board:
        yield board


async def link(board: Board, session: str, phone: str, name: str = "") -> None:
    await board.post(SESSIONS, {"sessionId": session, "name": name})
    assert (await board.store.sessions.connect(session, phone, board.now)).ok


async def turn(board: Board, session: str, state: State, reason: str = "") -> None:
    assert (await board.store.sessions.turn(session, state, reason, board.now, {With.DETACH})).ok


async def gone(board: Board, session: str) -> None:
    sessions = board.store.sessions
    await sessions.turn(
        session, State.STOPPED, "deleting", board.now, {With.DETACH}, {"wanted": "delete"}, among=list(State)
    )
    assert await sessions.forget(session, board.now)


async def furnish(board: Board) -> None:
    """A session of every kind; ids say nothing about how urgent they are."""
    for n in range(1, 13):
        await link(board, f"s{n}", f"9725000000{n:02}", f"Shop {n}")
    await turn(board, "s2", State.DISCONNECTED, "no_ping")
    await turn(board, "s3", State.FAILED, "replaced")
    await turn(board, "s4", State.STARTING)
    await board.store.accounts.pause("972500000005", None, board.now)
    await board.store.accounts.restrict("972500000006", board.now + HOUR, board.now)
    await board.store.accounts.restrict("972500000007", None, board.now)
    await turn(board, "s8", State.STOPPED, "by_request")
    await turn(board, "s9", State.LOGGED_OUT, "logged_out")
    await turn(board, "s10", State.DISCONNECTED, "waiting_for_proxy")
    await turn(board, "s11", State.STOPPED, "scan_timeout")


URGENT = ["s3", "s7", "s9", "s10", "s11"]
ORDER = [*URGENT, "s2", "s6", "s4", "s1", "s5", "s8", "s12"]


def ids(page: dict[str, Any]) -> list[str]:
    return [item["sessionId"] for item in page["items"]]


async def walk(board: Board, limit: int, **params: str) -> list[str]:
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await board.get(SESSIONS, params={"limit": limit, **params, **cursor})
        assert len(page["items"]) <= limit
        found += ids(page)
        if page["nextCursor"] is None:
            return found
        cursor = {"cursor": page["nextCursor"]}


# Figures.


async def test_without_anything_all_figures_are_zero(board: Board) -> None:
    found = await board.get(FLEET)
    assert set(found.pop("sessions").items()) == {(state.value, 0) for state in State}
    assert found == dict.fromkeys(
        ("attention", "accounts", "sentToday", "allowanceToday", "waiting", "scheduled", "jobs", "dead"), 0
    )


async def test_sessions_are_counted_by_the_state_they_show(board: Board) -> None:
    await furnish(board)
    found = await board.get(FLEET)
    assert {state: count for state, count in found["sessions"].items() if count} == {
        "connected": 2, "disconnected": 2, "failed": 1, "starting": 1, "paused": 1, "restricted": 2, "stopped": 2,
        "logged_out": 1,
    }  # fmt: skip
    assert found["attention"] == len(URGENT)
    shown = [item["status"] for item in (await board.get(SESSIONS))["items"]]
    assert {state: count for state, count in found["sessions"].items() if count} == {
        state: shown.count(state) for state in shown
    }


async def test_a_hold_that_is_over_shows_no_more(board: Board) -> None:
    await furnish(board)
    board.now += HOUR
    found = await board.get(FLEET)
    assert (found["sessions"]["restricted"], found["sessions"]["connected"]) == (1, 3)


async def test_messages_and_what_the_accounts_may_send_today_are_counted(board: Board) -> None:
    await link(board, "a", "972500000001")
    await link(board, "b", "972500000002")
    await link(board, "b2", "972500000002")
    driver = Driver(board.store, board.client, board.prefix)
    for _ in range(3):
        await driver.send("a")
    await driver.send("b", due=NOON + HOUR)
    await driver.send(None)
    sent = await driver.attempt("a")
    await driver.confirm(sent.message_id, session="a")
    found = await board.get(FLEET)
    assert (found["accounts"], found["sentToday"], found["allowanceToday"]) == (2, 1, 2 * 20)
    assert (found["waiting"], found["scheduled"], found["jobs"], found["dead"]) == (2, 1, 1, 0)
    board.now += 5 * 24 * HOUR
    later = await board.get(FLEET)
    assert (later["sentToday"], later["allowanceToday"]) == (0, 2 * 100)


async def test_an_account_whose_sessions_are_gone_may_send_nothing(board: Board) -> None:
    await link(board, "a", "972500000001")
    await link(board, "b", "972500000002")
    await gone(board, "a")
    found = await board.get(FLEET)
    assert (found["accounts"], found["allowanceToday"]) == (1, 20)


# The list.


async def test_what_needs_a_person_comes_first_whatever_the_size_of_a_page(board: Board) -> None:
    await furnish(board)
    every = {"status": ",".join(State)}
    page = await board.get(SESSIONS, params=every)
    assert (ids(page), page["total"], page["nextCursor"]) == (ORDER, 12, None)
    for limit in (1, 5, 11, 12):
        assert await walk(board, limit, **every) == ORDER
    plain = await board.get(SESSIONS)
    assert "total" not in plain
    assert sorted(page["items"], key=str) == sorted(plain["items"], key=str)


async def test_or_by_id_for_who_wants_it_so(board: Board) -> None:
    await furnish(board)
    overview = board.orchestrator.overview
    first = await overview.page(limit=9, attention_first=False)
    rest = await overview.page(limit=9, attention_first=False, cursor=str(first["nextCursor"]))
    assert ids(first) + ids(rest) == [f"s{n}" for n in range(1, 13)]


async def test_a_page_goes_on_where_it_ended_though_sessions_come_go_and_change(board: Board) -> None:
    await furnish(board)
    every = {"status": ",".join(State), "limit": "6"}
    first = await board.get(SESSIONS, params=every)
    assert ids(first) == ORDER[:6]
    await turn(board, "s2", State.STARTING)  # the last one shown, now of another rank
    await board.post(SESSIONS, {"sessionId": "s0"})
    await gone(board, "s3")
    rest = await board.get(SESSIONS, params={**every, "limit": "20", "cursor": first["nextCursor"]})
    assert [one for one in ids(rest) if one not in {"s0", "s2"}] == ORDER[6:]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("restricted", ["s7", "s6"]),
        ("paused", ["s5"]),
        ("connected", ["s1", "s12"]),
        ("failed,paused,starting", ["s3", "s4", "s5"]),
        ("stopped", ["s11", "s8"]),
        ("passkey_required", []),
    ],
)
async def test_only_sessions_that_show_the_states_asked_for(board: Board, status: str, expected: list[str]) -> None:
    await furnish(board)
    page = await board.get(SESSIONS, params={"status": status})
    assert (ids(page), page["total"]) == (expected, len(expected))
    assert {item["status"] for item in page["items"]} <= set(status.split(","))


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("S12", ["s12"]),
        ("shop 1", ["s10", "s11", "s1", "s12"]),
        ("972500000005", ["s5"]),
        ("+972 50-000-0005", ["s5"]),
        ("00972500000005", ["s5"]),
        ("050-0000005", ["s5"]),
        (" s5 ", ["s5"]),
        ("0000012", ["s12"]),
        ("nobody", []),
        ("%", []),
        ("חנות", []),
    ],
)
async def test_a_search_finds_by_id_name_and_phone_however_it_is_written(
    board: Board, search: str, expected: list[str]
) -> None:
    await furnish(board)
    assert ids(await board.get(SESSIONS, params={"search": search})) == expected


async def test_search_and_states_go_together_and_the_total_is_of_what_matches(board: Board) -> None:
    await furnish(board)
    page = await board.get(SESSIONS, params={"search": "shop 1", "status": "connected,stopped", "limit": 2})
    assert (ids(page), page["total"]) == (["s11", "s1"], 3)


async def test_a_key_bound_to_sessions_finds_only_these(board: Board) -> None:
    await furnish(board)
    bound = await board.key("read", sessions=("s3", "s12"))
    page = await board.get(SESSIONS, params={"search": "shop"}, key=bound)
    assert (ids(page), page["total"]) == (["s3", "s12"], 2)
    refused(await board.ask("GET", FLEET, key=bound), 403, "FORBIDDEN")


@pytest.mark.parametrize(
    "params", [{"status": "asleep"}, {"status": "failed,"}, {"search": "x" * 101}, {"cursor": "s1", "search": "s"}]
)
async def test_a_filter_that_can_not_be_is_refused(board: Board, params: dict[str, str]) -> None:
    refused(await board.ask("GET", SESSIONS, params=params), 400, "INVALID_REQUEST", field=next(iter(params)))


@pytest.mark.parametrize("limit", [2, 12])
async def test_a_page_costs_three_round_trips_however_long_it_is(board: Board, limit: int) -> None:
    await furnish(board)
    overview = board.orchestrator.overview
    await overview.page(limit=limit)
    before = (await board.client.info("stats"))["total_reads_processed"]
    await overview.page(limit=limit)
    asking = 1
    assert (await board.client.info("stats"))["total_reads_processed"] - before == 3 + asking


async def test_many_at_once_are_those_that_exist(board: Board) -> None:
    await link(board, "a", "972500000001")
    await link(board, "b", "972500000002")
    store = board.store
    assert await store.sessions.get_many(["b", "nobody", "a"]) == [await board.look("b"), await board.look("a")]
    assert await store.sessions.get_many([]) == []
    found = await store.accounts.look_many(["972500000001", "972500000009"], NOON)
    assert found == {"972500000001": (await store.accounts.look(phone="972500000001", now=NOON)).account}
    assert await store.accounts.look_many([], NOON) == {}
