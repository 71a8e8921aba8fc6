"""The page of dead letters: what it says of them, and what can be done with one or with many."""

import pytest

from switchboard.domain.retry import FailureClass
from switchboard.orchestrator.settlement import Settlement
from tests.support.board import PHONES, Board
from tests.support.dashboard import Desk, opened_desk
from tests.support.driver import MINUTE, Driver

pytestmark = pytest.mark.anyio


@pytest.fixture
async def driver(board: Board) -> Driver:
    driver = Driver(board.store, board.client, board.prefix)
    await driver.link("worker_1", PHONES[1])
    return driver


async def bury(board: Board, driver: Driver, error: str = "status_400", to: str | None = None) -> str:
    """A message that was given up for this reason."""
    message = await driver.send("worker_1", to)
    claim = await driver.attempt("worker_1")
    settlement = Settlement(board.store, driver.retry, lambda: driver.now)
    await settlement.failed("worker_1", message, claim.attempt, FailureClass.REFUSED, error, None)
    driver.now += 1
    board.now = driver.now
    return message


async def unconfirmed(board: Board, driver: Driver) -> str:
    """One that nobody ever answered for."""
    message = await driver.send("worker_1")
    for _ in range(3):
        await driver.attempt("worker_1")
        driver.now += 10 * MINUTE
        await driver.settle_down()
        driver.now += 10 * MINUTE
    board.now = driver.now
    return message


async def status(board: Board, message: str) -> str:
    view = await board.store.messages.look(message, board.now)
    assert view is not None
    return view.message.place.value


def ids(desk_html: str) -> list[str]:
    return [part.split('"')[0] for part in desk_html.split('id="letter-')[1:]]


async def test_when_nothing_failed_it_says_so(desk: Desk) -> None:
    page = await desk.page("/dead-letters")
    assert "No dead letters" in page.text
    assert "Messages that Switchboard gave up on." in page.text
    assert "/messages" in page.links


async def test_each_is_shown_with_who_and_why_newest_first(board: Board, desk: Desk, driver: Driver) -> None:
    first = await bury(board, driver, "not_on_whatsapp", to="972541234567")
    second = await unconfirmed(board, driver)
    page = await desk.page("/dead-letters")
    assert ids(page.html) == [second, first]
    assert "+972 54-123-4567" in page.text
    assert "the recipient is not on WhatsApp" in page.text
    assert "never said how it ended" in page.text
    assert "Given up" in page.text
    assert "Unconfirmed" in page.text
    assert "never sees it twice" in page.text
    assert "2 messages in all" in page.text
    assert f"/messages/{first}" in page.links
    assert "/sessions/worker_1" in page.links
    assert "hello" not in page.text, "what it says is on its own page only"


@pytest.mark.parametrize("word", ["status_499", "a.word:of-another_worker", "unnamed"])
@pytest.mark.parametrize("language", ["en", "he"])
async def test_any_word_for_a_failure_is_shown(
    board: Board, desk: Desk, driver: Driver, word: str, language: str
) -> None:
    await bury(board, driver, word)
    page = await desk.page("/dead-letters", language=language)
    said = {"status_499": "499", "unnamed": "worker"}.get(word, word)
    assert said in page.text
    assert (word in page.text) == (word == said)


async def test_one_is_tried_again(board: Board, desk: Desk, driver: Driver) -> None:
    message = await bury(board, driver)
    toast = await desk.press("/dead-letters/retry", id=message)
    assert "1 message is tried again." in toast.text
    assert toast.response.headers["hx-trigger"] == "changed"
    assert await status(board, message) == "queue"


async def test_many_are_discarded_at_once(board: Board, desk: Desk, driver: Driver) -> None:
    buried = [await bury(board, driver) for _ in range(3)]
    toast = await desk.press("/dead-letters/discard", id=buried[:2])
    assert "2 messages were discarded." in toast.text
    assert ids((await desk.page("/dead-letters")).html) == buried[2:]
    assert [await status(board, message) for message in buried] == ["done", "done", "dead"]


async def test_discarding_asks_first(board: Board, desk: Desk, driver: Driver) -> None:
    await bury(board, driver)
    page = await desk.page("/dead-letters")
    asking = [one for one in page.attributes if "discard" in (one.get("hx-post") or "")]
    assert len(asking) == 2
    assert all("Discard the" in (one["hx-confirm"] or "") for one in asking)


async def test_those_that_can_not_be_tried_are_counted_by_reason(board: Board, desk: Desk, driver: Driver) -> None:
    opted_out = [await bury(board, driver, to=to) for to in ("972541111111", "972542222222")]
    fine, gone = await bury(board, driver), await bury(board, driver)
    for to in ("972541111111", "972542222222"):
        await board.store.suppressions.add(to)
    await desk.press("/dead-letters/discard", id=gone)
    toast = await desk.press("/dead-letters/retry", id=[*opted_out, fine, gone])
    assert "1 message is tried again. Not the others:" in toast.text
    assert "2 messages: This recipient asked not to be written to." in toast.text
    assert "1 message: It has left or ended already" in toast.text
    assert [await status(board, one) for one in opted_out] == ["dead", "dead"]
    assert await status(board, fine) == "queue"


async def test_when_none_could_be_done_the_reason_is_the_answer(board: Board, desk: Desk, driver: Driver) -> None:
    message = await bury(board, driver, to="972541111111")
    await board.store.suppressions.add("972541111111")
    refused = await desk.press("/dead-letters/retry", id=message, status=403)
    assert "asked not to be written to" in refused.text
    gone = await bury(board, driver)
    await desk.press("/dead-letters/discard", id=gone)
    refused = await desk.press("/dead-letters/retry", id=[message, gone], status=400)
    assert "Nothing was done." in refused.text


async def test_a_full_queue_takes_no_more(board: Board, driver: Driver) -> None:
    message = await bury(board, driver)
    await driver.settle_down()
    for _ in range(1000):
        await driver.send("worker_1")
    async with opened_desk(board) as desk:
        refused = await desk.press("/dead-letters/retry", id=message, status=429)
    assert "messages wait for this account already" in refused.text


async def test_choosing_nothing_or_too_many_or_nonsense(desk: Desk) -> None:
    assert "Choose messages first." in (await desk.press("/dead-letters/retry", status=400)).text
    await desk.press("/dead-letters/retry", id=["ab" * 9] * 201, status=400)
    await desk.press("/dead-letters/retry", id="../../x", status=404)
    await desk.press("/dead-letters/discard", id="ab" * 9, status=404)


async def test_more_than_a_page(board: Board, desk: Desk, driver: Driver) -> None:
    buried = [await bury(board, driver) for _ in range(53)]
    page = await desk.page("/dead-letters")
    assert ids(page.html) == buried[:2:-1]
    [more] = [link for link in page.links if link.startswith("/dead-letters?")]
    last = await desk.page(more)
    assert ids(last.html) == buried[2::-1]
    assert "/dead-letters" in last.links
    await desk.page("/dead-letters?cursor=x", status=400)


async def test_in_hebrew(board: Board, desk: Desk, driver: Driver) -> None:
    await bury(board, driver, "not_on_whatsapp")
    page = await desk.page("/dead-letters", language="he")
    assert 'dir="rtl"' in page.html
    assert "הנמען אינו ב־WhatsApp" in page.text
    message = ids(page.html)[0]
    assert "הודעה אחת נשלחת שוב." in (await desk.press("/dead-letters/retry", id=message, language="he")).text
