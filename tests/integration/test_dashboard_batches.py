"""Batches on the dashboard: from a file to a preview to a queue, and how far each one is."""

from dataclasses import replace
from typing import Any

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from tests.support.board import Board
from tests.support.dashboard import Desk, Shown, opened_desk
from tests.support.driver import UNHURRIED, Driver
from tests.support.gateway import SECRET_TEXT

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
GOOD = "phone,name,order\n972509876541,Dana,17\n972509876542,<b>Yossi</b>,18\n972509876543,נועה,19\n"
BAD = GOOD + "not a number,Alice,20\n972509876544,,21\n972509876541,Dana,22\n"
TEMPLATE = "Hi {name}, " + SECRET_TEXT


@pytest.fixture
async def driver(board: Board) -> Driver:
    """With one linked session, `a`."""
    driver = Driver(board.store, board.client, board.prefix)
    await driver.link("a", PHONE)
    return driver


def chosen(content: str | bytes) -> dict[str, Any]:
    return {"file": ("list.csv", content, "text/csv")}


MAPPED: dict[str, Any] = {
    "session": "a",
    "to_column": "0",
    "text_column": "template",
    "template": TEMPLATE,
    "token": "one",
}


async def queue(desk: Desk, content: str | bytes = GOOD, status: int = 200, **changes: str) -> Shown:
    return await desk.press("/batches", files=chosen(content), status=status, **(MAPPED | changes))


async def look(desk: Desk, content: str | bytes, **changes: str) -> Shown:
    return await desk.press("/batches/preview", files=chosen(content), **(MAPPED | changes))


def batch_of(answer: Shown) -> str:
    return answer.response.headers["hx-redirect"].removeprefix("/batches/")


def selected(page: Shown) -> dict[str, list[str | None]]:
    """The chosen options, by the field before them."""
    found: dict[str, list[str | None]] = {}
    name = ""
    for one in page.attributes:
        if one["tag"] == "select":
            name = str(one["name"])
        if one["tag"] == "option" and "selected" in one:
            found.setdefault(name, []).append(one["value"])
    return found


def field(page: Shown, name: str) -> dict[str, str | None]:
    [found] = [one for one in page.attributes if one.get("name") == name]
    return found


# Before there are any


async def test_an_empty_list_says_what_to_do(desk: Desk) -> None:
    page = await desk.page("/batches")
    assert "No batches yet" in page.text
    assert "/batches/new" in page.links


async def test_without_a_number_it_says_how_to_get_one(board: Board, desk: Desk) -> None:
    await board.proxy()
    page = await desk.page("/batches/new")
    assert "/sessions/new" in page.links
    assert "/batches" not in page.actions


async def test_an_example_to_begin_with(driver: Driver, desk: Desk) -> None:
    for language, name in (("en", "Dana"), ("he", "דנה")):
        file = await desk.http.get("/batches/example.csv", headers={"Accept-Language": language})
        assert file.headers["content-type"] == "text/csv; charset=utf-8"
        assert file.content.startswith(b"\xef\xbb\xbf")
        page = await look(desk, file.content, fresh="true", template=f"Hi {{{'name' if language == 'en' else 'שם'}}}")
        assert f"Hi {name}" in page.text, "it can be used as it is"


# The preview


async def test_columns_are_guessed_and_a_text_is_asked_for(driver: Driver, desk: Desk) -> None:
    page = await look(desk, GOOD, fresh="true", template="")
    assert selected(page)["to_column"] == ["0"]
    assert selected(page)["reference_column"] == ["2"]
    assert "Write what to send" in page.text
    assert [one["data-insert"] for one in page.attributes if "data-insert" in one] == ["{phone}", "{name}", "{order}"]
    assert "Queue" not in page.text


async def test_messages_are_shown_as_they_will_be_sent(driver: Driver, desk: Desk) -> None:
    page = await look(desk, GOOD)
    assert "Hi Dana, zanzibar" in page.text
    assert "Hi <b>Yossi</b>," in page.text
    assert "<b>Yossi" not in page.html
    assert "Queue 3 messages" in page.text
    assert len([one for one in page.attributes if one.get("class") == "message-text"]) == 3
    assert "html" not in [one["tag"] for one in page.attributes], "only the part that depends on it"
    assert field(page, "token")["value"] == "one"


async def test_only_the_first_ten_are_shown(driver: Driver, desk: Desk) -> None:
    rows = "".join(f"97250987{n:04},N{n}\n" for n in range(1000, 1482))
    page = await look(desk, "phone,name\n" + rows, spread="144.6")
    assert len([one for one in page.attributes if one.get("class") == "message-text"]) == 10
    assert "and 472 more" in page.text
    assert "Queue 482 messages" in page.text
    assert "One message every 18 seconds." in page.text


async def test_texts_can_come_from_a_column(driver: Driver, desk: Desk) -> None:
    content = "phone,message\n972509876541,a text of its own for Dana\n972509876542,and another one for Yossi\n"
    page = await look(desk, content, fresh="true", template="")
    assert selected(page)["text_column"] == ["1"]
    assert "a text of its own for Dana" in page.text
    assert "Queue 2 messages" in page.text


async def test_bad_rows_are_named_with_their_lines(driver: Driver, desk: Desk) -> None:
    await driver.store.suppressions.add("972509876543")
    page = await look(desk, BAD)
    assert "4 rows can't be sent" in page.text
    assert "4 asked not to be written to: \u2068+972 50-987-6543\u2069" in page.text
    assert "5 no phone number one can write to: \u2068not a number\u2069" in page.text
    assert "6 the column \u2068name\u2069 is empty here" in page.text
    assert "7 the same message to the same number as in line \u20682\u2069" in page.text
    assert "Skip these 4 rows and send the rest" in page.text
    assert field(page, "skip")["value"] == "4"
    assert "checked" not in field(page, "skip")
    assert "checked" in field(await look(desk, BAD, skip="4"), "skip")
    assert "checked" not in field(await look(desk, BAD, skip="3"), "skip"), "that was about other rows"


async def test_local_numbers_without_a_country_are_explained_once(board: Board, driver: Driver, desk: Desk) -> None:
    local = "phone,name\n0509876541,Dana\n0509876542,Yossi\n"
    page = await look(desk, local)
    assert page.text.count("DEFAULT_COUNTRY") == 1
    assert "DEFAULT_COUNTRY" not in (await look(desk, GOOD)).text
    async with opened_desk(board, default_country="IL") as desk:
        assert "Queue 2 messages" in (await look(desk, local)).text
        assert "DEFAULT_COUNTRY" not in (await look(desk, BAD)).text


async def test_who_gets_more_than_one_message_is_counted_and_may(driver: Driver, desk: Desk) -> None:
    page = await look(desk, GOOD + "972509876541,Dana Cohen,20\n+972 50-987-6541,Dana Levi,21\n")
    assert "One recipient appears more than once" in page.text
    assert "Queue 5 messages" in page.text
    assert "more than once" not in (await look(desk, GOOD)).text


async def test_very_many_bad_rows_are_counted(driver: Driver, desk: Desk) -> None:
    page = await look(desk, "phone,name\n972509876541,Dana\n" + "nobody,x\n" * 130)
    assert "and 30 more" in page.text
    assert page.html.count("bad-row") == 100


@pytest.mark.parametrize(
    ("content", "changes", "says"),
    [
        (b"PK\x03\x04rest", {}, "not a CSV file (xlsx)"),
        ("phone,name\n", {}, "no rows to send"),
        (" \n", {}, "no rows to send"),
        (",,\n,,\n", {}, "nothing in any cell"),
        ('phone,name\n1,"Dana\n', {}, "opens in line 2 never closes"),
        (",".join("abc" for _ in range(300)) + "\n1\n", {}, "more than 256 columns"),
        (GOOD, {"template": "Hi {first}"}, "asks for {first}"),
        (GOOD, {"to_column": ""}, "Choose which columns"),
        (GOOD, {"to_column": "9"}, "Choose which columns"),
        (GOOD, {"to_column": "x" * 500}, "Choose which columns"),
        (GOOD, {"text_column": "77"}, "Choose which columns"),
    ],
)
async def test_what_can_not_be_read_is_said(
    driver: Driver, desk: Desk, content: str | bytes, changes: dict[str, str], says: str
) -> None:
    page = await look(desk, content, **changes)
    assert says in page.text
    assert "Queue" not in page.text
    await queue(desk, content, status=400, **changes)


async def test_too_many_rows_are_not_read(board: Board, driver: Driver) -> None:
    async with opened_desk(board, max_rows=2) as desk:
        assert "more than 2 rows" in (await look(desk, GOOD)).text


async def test_too_large_a_file_is_not_read(driver: Driver, desk: Desk) -> None:
    assert "larger than 20 MB" in (await look(desk, b"phone\n" + b"1" * 20_000_000)).text
    too_much = await desk.press("/batches/preview", files=chosen(b"1" * 28_000_000), status=413, **MAPPED)
    assert too_much.response.headers["hx-retarget"] == "#toasts"
    assert too_much.response.headers["hx-reselect"] == ".toast"


async def test_when_it_will_be_done(driver: Driver, desk: Desk) -> None:
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, base_delay_ms=600_000), None, driver.now)
    page = await look(desk, GOOD)
    assert "leave as fast as the limits allow" in page.text
    assert "Done about" in page.text
    assert "12:20." in page.text, "three of them, ten minutes apart, from noon on"
    assert "13:20." in (await look(desk, GOOD, spread="120")).text
    assert "depends on which numbers" in (await look(desk, GOOD, session="")).text
    await driver.store.accounts.pause(PHONE, None, driver.now)
    assert "can't send right now" in (await look(desk, GOOD)).text
    assert "from 0 to 10080" in (await look(desk, GOOD, spread="-1")).text


async def test_no_file_is_no_fault(driver: Driver, desk: Desk) -> None:
    assert "Choose a file" in (await desk.press("/batches/preview", files={"file": ("", b"")}, **MAPPED)).text
    assert "Choose a file" in (await desk.press("/batches/preview", **MAPPED)).text
    assert "Choose a CSV file first" in (await desk.press("/batches", status=400, **MAPPED)).text


# Sending it


async def test_it_is_queued_and_led_to(driver: Driver, desk: Desk) -> None:
    batch = batch_of(await queue(desk, spread="30", reference_column="2"))
    rows = await driver.store.messages.get_many(await driver.store.batches.rows(batch, 0, 10))
    assert [(row.to, row.reference) for row in rows] == [
        ("972509876541", "17"),
        ("972509876542", "18"),
        ("972509876543", "19"),
    ]
    assert rows[0].text == f"Hi Dana, {SECRET_TEXT}"
    assert [(row.scheduled_for or 0) - driver.now for row in rows] == [0, 600_000, 1_200_000]
    page = await desk.page(f"/batches/{batch}")
    assert "3 messages are in the queue." in page.text
    assert SECRET_TEXT not in page.html


async def test_pressed_twice_it_is_queued_once(driver: Driver, desk: Desk) -> None:
    assert batch_of(await queue(desk)) == batch_of(await queue(desk))
    changed = await queue(desk, status=409, template="Something else")
    assert "sent already with other content" in changed.text
    assert field(changed, "token")["value"] != "one"


async def test_bad_rows_are_left_out_only_if_a_person_says_so(driver: Driver, desk: Desk) -> None:
    for skip in ("", "2", "yes"):
        page = await queue(desk, BAD, status=400, skip=skip)
        assert "Nothing was queued" in page.text
    assert (await driver.store.batches.page(10, None)).items == []
    batch = await driver.store.batches.get(batch_of(await queue(desk, BAD, skip="3")))
    assert batch
    assert batch.total == 3


async def test_who_opted_out_after_the_preview_is_still_found(
    driver: Driver, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(self: object, phones: object) -> set[str]:
        return set()

    await driver.store.suppressions.add("972509876542")
    with monkeypatch.context() as patch:
        patch.setattr("switchboard.store.suppressions.Suppressions.among", nobody)
        page = await queue(desk, status=400)
    assert "so nothing was queued" in page.text
    assert "3 asked not to be written to: \u2068+972 50-987-6542\u2069" in page.text
    assert (await driver.store.batches.page(10, None)).items == []
    batch_of(await queue(desk, skip="1"))


@pytest.mark.parametrize("session", ["nobody", "no:body", "n" * 99])
async def test_a_sender_that_is_not_there(driver: Driver, desk: Desk, session: str) -> None:
    assert "There is no session" in (await queue(desk, status=404, session=session)).text


async def test_past_the_days_allowance(driver: Driver, desk: Desk) -> None:
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=1), None, driver.now)
    await driver.send()
    await driver.confirm((await driver.attempt()).message_id)
    assert "sent its 1 messages of today" in (await queue(desk, status=429)).text
    batch = batch_of(await queue(desk, deferrable="true"))
    page = await desk.page(f"/batches/{batch}")
    assert "Today's allowance is used up: the 3 messages wait for tomorrow." in page.text
    assert "today's allowance is used up (expected: 10 Jun, 00:00)" in page.text


async def test_without_scripts_the_whole_page_answers(driver: Driver, desk: Desk) -> None:
    headers = {"Origin": "http://switchboard.test", "Accept": "text/html"}
    given = MAPPED | {"csrf": desk.csrf}
    refused = await desk.http.post("/batches", data=given, files=chosen(BAD), headers=headers)
    assert refused.status_code == 400
    assert "<h1>New batch</h1>" in refused.text
    sent = await desk.http.post("/batches", data=given, files=chosen(GOOD), headers=headers)
    assert sent.status_code == 303
    assert sent.headers["location"].startswith("/batches/batch_")


# How far it is


async def test_its_page_has_its_first_messages_and_no_texts(board: Board, driver: Driver, desk: Desk) -> None:
    await board.client.hset(f"{board.prefix}session:a", "name", "<b>Shop</b>")
    rows = "".join(f"97250987{n:04},N{n}\n" for n in range(1000, 1030))
    batch = batch_of(await queue(desk, "phone,name\n" + rows))
    page = await desk.page(f"/batches/{batch}")
    ids = await driver.store.batches.rows(batch, 0, 30)
    assert [link for link in page.links if link.startswith("/messages/")] == [f"/messages/{id_}" for id_ in ids[:20]]
    assert "The first 20 are shown." in page.text
    assert "Show all 30" in page.text
    assert SECRET_TEXT not in page.html
    assert "Batch of 9 Jun, 12:00" in page.text
    for shown in (page, await desk.page("/batches")):
        assert "<b>Shop</b> · a" in shown.text
        assert "<b>Shop" not in shown.html


def bar(page: Shown) -> dict[str, str | None]:
    [found] = [one for one in page.attributes if one.get("class") == "share"]
    return found


async def test_its_progress(driver: Driver, desk: Desk) -> None:
    batch = batch_of(await queue(desk))
    page = await desk.page(f"/batches/{batch}")
    assert bar(page)["aria-label"] == "Not sent yet: 3"
    assert "3 not sent yet" in page.text
    assert "Done about" in page.text
    driver.now += 1  # a moment lies between the rows of a batch, for their order
    await driver.confirm((await driver.attempt()).message_id, Status.READ)
    await driver.nack(await driver.attempt(), FailureClass.NOT_ON_WHATSAPP)
    page = await desk.page(f"/batches/{batch}")
    assert bar(page)["aria-label"] == "Read: 1, Not sent yet: 1, Given up: 1"
    assert f"/messages?batch={batch}" in page.links
    assert f"/messages?status=failed&batch={batch}" in page.links
    await driver.confirm((await driver.attempt()).message_id)
    page = await desk.page(f"/batches/{batch}")
    assert bar(page)["aria-label"] == "Read: 1, Sent: 1, Given up: 1"
    assert f"/batches/{batch}/cancel" not in page.actions
    assert any(one.get("data-on") == "messages sessions" for one in page.attributes)


async def test_what_is_left_can_be_cancelled(driver: Driver, desk: Desk) -> None:
    batch = batch_of(await queue(desk))
    await driver.confirm((await driver.attempt()).message_id)
    page = await desk.page(f"/batches/{batch}")
    [ask] = [one["hx-confirm"] for one in page.attributes if one.get("action") == f"/batches/{batch}/cancel"]
    assert ask == "Cancel the 2 messages of this batch that were not sent yet? What has been sent stays sent."
    assert "2 messages will not be sent" in (await desk.press(f"/batches/{batch}/cancel")).text
    assert bar(await desk.page(f"/batches/{batch}"))["aria-label"] == "Sent: 1, Cancelled: 2"


async def test_the_list_is_newest_first_and_goes_on(board: Board, driver: Driver, desk: Desk) -> None:
    made = []
    for n in range(52):
        board.now += 1
        made.append(batch_of(await queue(desk, token=f"t{n}", session="a" if n else "")))
    first = await desk.page("/batches")
    [following] = [link for link in first.links if "cursor=" in link]
    second = await desk.page(following)
    ids = [str(one["id"]) for page in (first, second) for one in page.attributes if one["tag"] == "tr" and "id" in one]
    assert ids == made[::-1]
    assert "chosen automatically" in second.text


async def test_when_the_rest_leaves(board: Board, driver: Driver, desk: Desk) -> None:
    spread = batch_of(await queue(desk, spread="60"))
    assert "Done about 9 Jun, 12:40." in (await desk.page(f"/batches/{spread}")).text
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, base_delay_ms=1_800_000), None, driver.now)
    assert "Done about 9 Jun, 13:00." in (await desk.page(f"/batches/{spread}")).text, "its three, half an hour apart"
    for _ in range(4):
        await driver.send()
    await driver.confirm((await driver.attempt()).message_id)
    # Of its own one waits behind three or before them, and two are still to come: six from half past twelve on.
    assert "Done about 9 Jun, 15:00." in (await desk.page(f"/batches/{spread}")).text
    await driver.store.accounts.pause(PHONE, None, driver.now)
    assert "can't send right now" in (await desk.page(f"/batches/{spread}")).text


async def test_one_whose_number_is_gone_is_still_shown(board: Board, driver: Driver, desk: Desk) -> None:
    batch = batch_of(await queue(desk))
    await board.client.hset(f"{board.prefix}batch:{batch}", "account", "972599999999")
    assert "can't send right now" in (await desk.page(f"/batches/{batch}")).text


@pytest.mark.parametrize("name", ["batch_" + "0" * 18, "x", "new2", "batch_" + "0" * 17 + "%0a"])
async def test_one_that_is_not_there(desk: Desk, name: str) -> None:
    await desk.page(f"/batches/{name}", status=404)
    await desk.press(f"/batches/{name}/cancel", status=404)


async def test_in_hebrew(driver: Driver, desk: Desk) -> None:
    assert 'dir="rtl"' in (await desk.page("/batches/new", language="he")).html
    page = await desk.press("/batches/preview", files=chosen(BAD), language="he", **MAPPED)
    assert "להכניס 3 הודעות לתור" in page.text
    batch = batch_of(await queue(desk))
    assert "התקדמות" in (await desk.page(f"/batches/{batch}", language="he")).text
    assert "דיוורים" in (await desk.page("/batches", language="he")).text
