"""The list of messages, and the page of one: what they show for what happened, and what can still be done."""

from dataclasses import replace
from urllib.parse import urlencode

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.domain.sessions import State
from switchboard.store.intake import Entry, Row
from switchboard.store.sessions import With
from tests.support.board import Board
from tests.support.dashboard import Desk, Shown
from tests.support.driver import UNHURRIED, Driver
from tests.support.gateway import SECRET_TEXT

pytestmark = pytest.mark.anyio

PHONE, OTHER, SOMEONE = "972500000001", "972500000002", "972509876543"


@pytest.fixture
async def driver(board: Board) -> Driver:
    """With one linked session, `a`."""
    driver = Driver(board.store, board.client, board.prefix)
    await driver.link("a", PHONE)
    return driver


async def send(driver: Driver, board: Board, session: str | None = "a", to: str | None = None, **more: str) -> str:
    """One message, a moment after the one before."""
    driver.now += 1
    board.now = driver.now
    row = driver.row(to)
    entry = Entry([Row(row.id, row.to, SECRET_TEXT, 1, 0, more.get("reference"))], session=session)
    await driver.enqueue(entry)
    return row.id


def listed(page: Shown) -> list[str]:
    return [link.removeprefix("/messages/") for link in page.links if link.startswith("/messages/")]


def steps(page: Shown) -> list[tuple[str, bool]]:
    """The marks of the timeline, and which of them is where it is now."""
    marked = [one for one in page.attributes if one["tag"] == "li" and str(one.get("class", "")).startswith("step-")]
    return [(str(one["class"]).removeprefix("step-"), one.get("aria-current") == "step") for one in marked]


async def test_an_empty_list_says_what_to_do(desk: Desk) -> None:
    page = await desk.page("/messages")
    assert "No messages yet" in page.text
    assert "/send" in page.links


async def test_the_newest_comes_first_and_no_text_is_shown(board: Board, driver: Driver, desk: Desk) -> None:
    sent = [await send(driver, board) for _ in range(3)]
    page = await desk.page("/messages")
    assert listed(page) == sent[::-1]
    assert SECRET_TEXT not in page.html
    assert "/sessions/a" in page.links
    assert "+972 50-000-0001" in page.text
    assert any(one.get("data-on") == "messages" for one in page.attributes)


async def test_why_one_waits_is_said_in_words(board: Board, driver: Driver, desk: Desk) -> None:
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=1), None, driver.now)
    await send(driver, board)
    await send(driver, board)
    unrouted = await send(driver, board, session=None)
    await driver.store.accounts.pause(PHONE, None, driver.now)
    page = await desk.page("/messages")
    assert "its number is paused" in page.text
    assert listed(page)[0] == unrouted
    assert "not chosen yet" in page.text


@pytest.mark.parametrize(("query", "topics"), [("", "messages"), ("?to=97250", ""), ("?reference=order-1", "")])
async def test_a_search_is_not_made_anew_at_every_message(desk: Desk, query: str, topics: str) -> None:
    page = await desk.page(f"/messages{query}")
    [live] = [given for given in page.attributes if given.get("id") == "messages"]
    assert live["data-on"] == topics


async def test_tabs_hold_what_they_say(board: Board, driver: Driver, desk: Desk) -> None:
    dead = await send(driver, board)
    await driver.nack(await driver.attempt(), FailureClass.NOT_ON_WHATSAPP)
    read = await send(driver, board)
    await driver.confirm((await driver.attempt()).message_id, Status.READ)
    waits = await send(driver, board)
    assert listed(await desk.page("/messages?status=failed")) == [dead]
    assert listed(await desk.page("/messages?status=read")) == [read]
    assert listed(await desk.page("/messages?status=waiting")) == [waits]
    later = await driver.send(due=driver.now + 3_600_000)
    assert listed(await desk.page("/messages?status=scheduled")) == [later]
    assert listed(await desk.page("/messages?status=waiting")) == [waits], "as the overview counts them"
    assert listed(await desk.page("/messages?status=queued,read")) == [waits, read], "as the API names them"
    assert "the recipient is not on WhatsApp" in (await desk.page("/messages?status=failed")).text
    empty = await desk.page("/messages?status=cancelled")
    assert "Nothing matches" in empty.text
    assert [one["href"] for one in empty.attributes if one.get("aria-current") == "page"] == [
        "/messages",
        "/messages?status=cancelled",
    ]


async def test_filters_find_and_stay_in_the_links(board: Board, driver: Driver, desk: Desk) -> None:
    await driver.link("b", OTHER)
    mine = await send(driver, board, to=SOMEONE, reference="order 17/א")
    theirs = await send(driver, board, session="b")
    assert listed(await desk.page("/messages?session=b")) == [theirs]
    assert listed(await desk.page("/messages?to=%2B972+50-987")) == [mine]
    found = await desk.page("/messages?reference=order+17/א")
    assert listed(found) == [mine]
    assert "/messages?status=sent&reference=order+17%2F%D7%90" in found.links
    assert "/messages" in found.links


async def test_a_session_is_found_by_its_id_its_name_or_its_number(board: Board, driver: Driver, desk: Desk) -> None:
    for session, phone, name in (
        ("b", OTHER, "Shop נועה"),
        ("shop", "972500000003", "b"),
        ("c", "442000000004", "Shop"),
    ):
        await driver.link(session, phone)
        await board.client.hset(f"{board.prefix}session:{session}", "name", name)
    sent = {session: await send(driver, board, session=session) for session in ("a", "b", "shop", "c")}

    async def found(word: str) -> list[str]:
        return listed(await desk.page("/messages?" + urlencode({"session": word})))

    assert await found("b") == [sent["b"]], "an id before a name"
    assert await found("SHOP") == [sent["c"]], "the whole name before a part of one"
    assert await found("sho") == [sent["c"], sent["b"]]
    assert await found("נועה") == [sent["b"]]
    for phone in ("+972 50-000-0002", "0500000002", "00972500000002", OTHER):
        assert await found(phone) == [sent["b"]]
    assert await found("nobody at all") == []
    sessions, to_delete = driver.store.sessions, {"wanted": "delete"}
    await sessions.turn("c", State.STOPPED, "deleting", driver.now, {With.DETACH}, to_delete, among=list(State))
    assert await sessions.forget("c", driver.now)
    assert await found("c") == [sent["c"]], "what a session sent stays when it is deleted"


async def test_names_stand_beside_the_ids(board: Board, driver: Driver, desk: Desk) -> None:
    await board.client.hset(f"{board.prefix}session:a", "name", "<b>Shop</b>")
    message = await send(driver, board)
    for path in ("/messages", f"/messages/{message}"):
        page = await desk.page(path)
        assert "<b>Shop</b> · a" in page.text
        assert "<b>Shop" not in page.html


async def test_the_search_is_open_where_something_is_searched_for(desk: Desk) -> None:
    def is_open(page: Shown) -> bool:
        [fold] = [one for one in page.attributes if one.get("class") == "card fold"]
        return "open" in fold

    assert not is_open(await desk.page("/messages?status=sent"))
    assert is_open(await desk.page("/messages?to=972"))


@pytest.mark.parametrize("query", ["session=no:body", "session=../x", "session=" + "x" * 99, "batch=x", "batch=b_zz"])
async def test_a_name_that_is_none_finds_nothing(board: Board, driver: Driver, desk: Desk, query: str) -> None:
    await send(driver, board)
    page = await desk.page(f"/messages?{query}")
    assert "Nothing matches" in page.text


@pytest.mark.parametrize("query", ["status=nonsense", "cursor=x", "reference=" + "x" * 300])
async def test_a_query_that_is_none_is_refused(desk: Desk, query: str) -> None:
    await desk.page(f"/messages?{query}", status=400)


async def test_pages_go_on(board: Board, driver: Driver, desk: Desk) -> None:
    sent = [await send(driver, board) for _ in range(60)]
    first = await desk.page("/messages?status=waiting")
    [following] = [link for link in first.links if "cursor=" in link]
    second = await desk.page(following)
    assert listed(first) + listed(second) == sent[::-1]
    assert not [link for link in second.links if "cursor=" in link]
    assert "/messages?status=waiting" in second.links


async def test_what_was_typed_is_not_taken_for_html(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board, reference="<b>x</b>")
    for page in (await desk.page("/messages?reference=<b>x</b>"), await desk.page(f"/messages/{message}")):
        assert "<b>x" not in page.html
        assert "<b>x</b>" in page.text


async def test_the_way_of_a_message(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board)
    path = f"/messages/{message}"
    page = await desk.page(path)
    assert steps(page) == [("done", False), ("current", True), *[("future", False)] * 3]
    for ahead in ("To be handed over for sending", "To be sent", "To be delivered", "To be read"):
        assert ahead in page.text
    assert "Sent" not in page.text, "nobody takes it for done"
    await driver.attempt()
    assert steps(await desk.page(path)) == [*[("done", False)] * 2, ("current", True), *[("future", False)] * 2]
    await driver.confirm(message, Status.SENT)
    await driver.confirm(message, Status.DELIVERED)
    assert steps(await desk.page(path)) == [*[("done", False)] * 4, ("current", True)]
    await driver.confirm(message, Status.READ)
    page = await desk.page(path)
    assert steps(page) == [("done", False)] * 5
    assert any(one.get("data-on", "") == f"message:{message} sessions" for one in page.attributes)


async def test_its_page_shows_everything_about_it(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board, to=SOMEONE, reference="order 17")
    page = await desk.page(f"/messages/{message}")
    for fact in (SECRET_TEXT, "+972 50-987-6543", "+972 50-000-0001", "order 17", f"3EB0{message.upper()}", "Normal"):
        assert fact in page.text
    assert {"tag": "p", "class": "message-text", "dir": "auto"} in page.attributes


async def test_one_that_is_scheduled_says_until_when(driver: Driver, desk: Desk) -> None:
    message = await driver.send(due=driver.now + 3_600_000)
    page = await desk.page(f"/messages/{message}")
    assert steps(page)[:2] == [("done", False), ("current", True)]
    assert page.text.count("9 Jun, 13:00") == 1
    assert "Scheduled for (it is waiting for this) 9 Jun, 13:00:00 To be handed over" in page.text


async def test_one_that_waits_can_be_cancelled(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board)
    path = f"/messages/{message}"
    assert f"{path}/cancel" in (await desk.page(path)).actions
    assert "The message was cancelled." in (await desk.press(f"{path}/cancel")).text
    page = await desk.page(path)
    assert f"{path}/cancel" not in page.actions
    assert steps(page) == [("done", False), ("ended", False)]
    assert "on request" in page.text
    assert "can't be changed any more" in (await desk.press(f"{path}/cancel", status=409)).text


async def test_one_that_has_left_can_not(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board)
    await driver.confirm((await driver.attempt()).message_id)
    assert f"/messages/{message}/cancel" not in (await desk.page(f"/messages/{message}")).actions
    await desk.press(f"/messages/{message}/cancel", status=409)


async def test_a_dead_one_can_be_tried_again_or_discarded(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board)
    await driver.nack(await driver.attempt(), FailureClass.REFUSED)
    page = await desk.page(f"/messages/{message}")
    assert {"/dead-letters/retry", "/dead-letters/discard"} <= set(page.actions)
    assert {"tag": "input", "type": "hidden", "name": "id", "value": message} in page.attributes
    assert "WhatsApp refused it" in page.text
    assert steps(page)[-1] == ("ended", False)
    await driver.store.messages.discard(message, driver.now)
    assert "/dead-letters/retry" not in (await desk.page(f"/messages/{message}")).actions


@pytest.mark.parametrize("name", ["0" * 18, "..", "x", "0" * 17 + "%0a", "0" * 19])
async def test_one_that_is_not_there(desk: Desk, name: str) -> None:
    if name != "..":
        await desk.page(f"/messages/{name}", status=404)
    await desk.press(f"/messages/{name}/cancel", status=404)


async def test_in_hebrew(board: Board, driver: Driver, desk: Desk) -> None:
    message = await send(driver, board)
    await driver.nack(await driver.attempt(), FailureClass.NOT_ON_WHATSAPP)
    await send(driver, board)
    listing = await desk.page("/messages", language="he")
    assert 'dir="rtl"' in listing.html
    assert "הנמען אינו ב־WhatsApp" in listing.text
    assert "מסלול ההודעה" in (await desk.page(f"/messages/{message}", language="he")).text
