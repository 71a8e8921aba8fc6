"""The page that sends one message: what there is to choose, what is refused and where it says so."""

from dataclasses import replace
from typing import Any

import pytest

from switchboard.domain.messages import Status
from switchboard.domain.sessions import State
from switchboard.store.sessions import With
from tests.support.board import Board
from tests.support.dashboard import Desk, Shown, opened_desk
from tests.support.driver import UNHURRIED, Driver
from tests.support.gateway import OWN_KEY, SECRET_TEXT

pytestmark = pytest.mark.anyio

PHONE, OTHER, SOMEONE = "972500000001", "972500000002", "972509876543"


@pytest.fixture
async def driver(board: Board) -> Driver:
    """With one linked session, `a`."""
    driver = Driver(board.store, board.client, board.prefix)
    await driver.link("a", PHONE)
    return driver


class AnyPhone:
    async def scan(self, qr: str) -> str:
        return OTHER


def field(page: Shown, name: str) -> dict[str, str | None]:
    [found] = [one for one in page.attributes if one.get("name") == name]
    return found


def options(page: Shown) -> list[dict[str, str | None]]:
    return [one for one in page.attributes if one["tag"] == "option"]


def sent_to(answer: Shown) -> str:
    return answer.response.headers["hx-redirect"].removeprefix("/messages/")


async def test_without_a_number_it_says_how_to_get_one(board: Board, desk: Desk) -> None:
    await board.proxy()
    page = await desk.page("/send")
    assert "No number to send from yet" in page.text
    assert "Link a number" in page.text
    assert "/sessions/new" in page.links
    assert "/send" not in page.actions


@pytest.mark.parametrize("path", ["/send", "/batches/new"])
async def test_without_a_proxy_that_comes_first(board: Board, desk: Desk, path: str) -> None:
    page = await desk.page(path)
    assert "Add a proxy" in page.text
    assert "/sessions/new" not in page.links
    async with opened_desk(board, allow_direct=True) as direct:
        assert "/sessions/new" in (await direct.page(path)).links


async def test_the_demo_says_whom_one_may_write_to(board: Board, driver: Driver, desk: Desk) -> None:
    assert "any number works" not in (await desk.page("/send")).text
    async with opened_desk(board, phone=AnyPhone()) as demo:
        assert "any number works, such as +972 50-987-6543" in (await demo.page("/send")).text


async def test_a_local_number_says_what_to_do(board: Board, driver: Driver, desk: Desk) -> None:
    given = {"session": "a", "to": "0509876543", "text": "hello"}
    assert "set DEFAULT_COUNTRY" in (await desk.press("/send", **given, status=400)).text
    async with opened_desk(board, default_country="IL") as desk:
        page = await desk.press("/send", **given | {"to": "12"}, status=400)
    assert "Write it with its country code" in page.text
    assert "DEFAULT_COUNTRY" not in page.text


async def test_senders_are_listed_with_what_is_left_of_their_day(driver: Driver, desk: Desk) -> None:
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=12), None, driver.now)
    await driver.send()
    await driver.confirm((await driver.attempt()).message_id)
    await driver.link("b", OTHER)
    await driver.store.accounts.pause(OTHER, None, driver.now)
    page = await desk.page("/send?session=b")
    assert "a · \u2066+972 50-000-0001\u2069 · 11 left today" in page.text
    assert "b · \u2066+972 50-000-0002\u2069 · Paused" in page.text
    assert [one["value"] for one in options(page)][:3] == ["", "a", "b"], "those that can send come first"
    assert [one["value"] for one in options(page) if "selected" in one][:1] == ["b"]


async def test_one_that_was_never_linked_or_is_logged_out_is_no_sender(driver: Driver, desk: Desk) -> None:
    await driver.store.sessions.register("unlinked", driver.now)
    await driver.link("gone", OTHER)
    await driver.store.sessions.turn("gone", State.LOGGED_OUT, "logged_out", driver.now, {With.DETACH, With.UNLINK})
    page = await desk.page("/send")
    assert "unlinked" not in page.html
    assert "gone" not in [one["value"] for one in options(page)]


async def test_a_link_to_one_that_can_not_send_chooses_no_other_instead(driver: Driver, desk: Desk) -> None:
    await driver.store.sessions.register("unlinked", driver.now)
    page = await desk.page("/send?session=unlinked")
    assert [one["value"] for one in options(page) if "selected" in one][:1] == ["unlinked"]
    refused = await desk.press("/send", session="unlinked", to=SOMEONE, text="hello", status=409)
    assert field(refused, "session")["aria-invalid"] == "true"
    assert "has never been linked" in refused.text


async def test_with_very_many_sessions_a_name_is_typed(driver: Driver, desk: Desk) -> None:
    for n in range(200):
        await driver.link(f"many_{n}", f"9725100{n:05}", None)
    page = await desk.page("/send")
    assert field(page, "session")["tag"] == "input"
    assert field(page, "session")["list"] == "senders"
    assert len([one for one in options(page) if one["value"]]) >= 201
    answer = await desk.press("/send", session="many_199", to=SOMEONE, text="hello")
    assert (await driver.message(sent_to(answer))).session == "many_199"


async def test_a_message_is_queued_as_it_was_typed(driver: Driver, desk: Desk) -> None:
    answer = await desk.press(
        "/send",
        session="a",
        to=" +972 50-987-6543 ",
        text="line one\r\nline two ",
        priority="3",
        scheduled="2026-06-09T15:00",
        reference="order 17",
        token="one",
    )
    message = await driver.message(sent_to(answer))
    assert (message.to, message.text, message.session) == (SOMEONE, "line one\nline two", "a")
    assert (message.priority, message.reference, message.status) == (3, "order 17", Status.SCHEDULED)
    assert message.scheduled_for == 1_781_017_200_000, "15:00 where Switchboard runs"
    page = await desk.page(f"/messages/{message.id}")
    assert "The message is scheduled for 9 Jun, 15:00." in page.text


async def test_no_sender_means_any(driver: Driver, desk: Desk) -> None:
    message = await driver.message(sent_to(await desk.press("/send", to=SOMEONE, text="hello")))
    assert message.session is None
    assert "The message is in the queue." in (await desk.page(f"/messages/{message.id}")).text


async def test_pressed_twice_it_is_sent_once(board: Board, driver: Driver, desk: Desk) -> None:
    token = field(await desk.page("/send"), "token")["value"]
    assert token
    assert token != field(await desk.page("/send"), "token")["value"]
    first, second = [await desk.press("/send", session="a", to=SOMEONE, text="hello", token=token) for _ in range(2)]
    assert sent_to(first) == sent_to(second)
    assert len(await driver.queue(PHONE)) == 1


async def test_another_text_in_a_form_that_was_sent_is_another_message(driver: Driver, desk: Desk) -> None:
    given: dict[str, Any] = {"session": "a", "to": SOMEONE}
    await desk.press("/send", **given, text="hello", token="one")
    page = await desk.press("/send", **given, text="hello again", token="one", status=409)
    assert "sent already with other content" in page.text
    token = field(page, "token")["value"]
    assert token != "one"
    await desk.press("/send", **given, text="hello again", token=token)
    assert len(await driver.queue(PHONE)) == 2


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"to": ""}, "to", "not a phone number"),
        ({"to": "12"}, "to", "not a phone number"),
        ({"to": "9" * 60}, "to", "not a phone number"),
        ({"text": " \n "}, "text", "1 to 4095 characters"),
        ({"text": "x" * 4096}, "text", "1 to 4095 characters"),
        ({"session": "nobody"}, "session", "no session or account nobody"),
        ({"session": "no:body"}, "session", "no session or account no:body"),
        ({"session": "n" * 65}, "session", "no such session"),
        ({"scheduled": "2020-01-01T00:00"}, "scheduled", "This moment is over"),
        ({"scheduled": "0001-01-01T00:00"}, "scheduled", "This moment is over"),
        ({"scheduled": "9999-12-31T23:59"}, "scheduled", "too far ahead"),
        ({"scheduled": "soon"}, "scheduled", "This moment is over"),
        ({"reference": "r" * 201}, "reference", "at most 200 characters"),
        ({"priority": "4"}, "priority", "Choose one"),
        ({"priority": "9" * 5000}, "priority", "Choose one"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_the_rest_stays(
    driver: Driver, desk: Desk, changes: dict[str, str], name: str, says: str
) -> None:
    given = {"session": "a", "to": SOMEONE, "text": "what I typed", "reference": "order 17", "token": "t"} | changes
    page = await desk.press("/send", **given, status=404 if "nobody" in says or "no:body" in says else 400)
    assert says in page.text
    if name != "priority":
        assert field(page, name)["aria-invalid"] == "true"
    marked = {one["name"] for one in page.attributes if one.get("aria-invalid")}
    assert marked <= {name}
    if "text" not in changes:
        assert "what I typed" in page.text
    assert field(page, "token")["value"] == "t"
    assert await driver.queue(PHONE) == []


async def test_all_that_is_wrong_is_said_at_once(driver: Driver, desk: Desk) -> None:
    page = await desk.press("/send", session="a", to="", text="", status=400)
    assert {one["name"] for one in page.attributes if one.get("aria-invalid")} == {"to", "text"}


async def test_who_opted_out_is_not_written_to(driver: Driver, desk: Desk) -> None:
    await driver.store.suppressions.add(SOMEONE)
    page = await desk.press("/send", session="a", to=SOMEONE, text="hello", status=403)
    assert field(page, "to")["aria-invalid"] == "true"
    assert "asked not to be written to" in page.text


async def test_past_the_days_allowance_it_can_wait_for_tomorrow(driver: Driver, desk: Desk) -> None:
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=1), None, driver.now)
    await driver.send()
    await driver.confirm((await driver.attempt()).message_id)
    page = await desk.press("/send", session="a", to=SOMEONE, text="hello", status=429)
    assert field(page, "deferrable")["aria-invalid"] == "true"
    assert "sent its 1 messages of today" in page.text
    assert {"tag": "details", "class": "more", "open": None} in page.attributes, "what is marked can be seen"
    answer = await desk.press("/send", session="a", to=SOMEONE, text="hello", deferrable="true")
    page = await desk.page(answer.response.headers["hx-redirect"])
    assert "Today's allowance is used up: the message goes on 10 Jun, 00:00." in page.text
    assert "Put off until tomorrow" in page.text
    assert page.text.count("10 Jun, 00:00") == 2, "in the toast and in the timeline"
    assert "today's allowance is used up" in page.text
    page = await desk.page("/sessions/a")
    assert "/messages?status=scheduled&session=a" in page.links
    assert sent_to(answer) in (await desk.page("/messages?status=scheduled&session=a")).html


async def test_it_uses_up_no_api_keys_rate(board: Board, driver: Driver, desk: Desk) -> None:
    await desk.press("/send", session="a", to=SOMEONE, text="hello")
    await desk.press("/send", session="a", to="", text="", status=400)
    counted = [key async for key in board.client.scan_iter(f"{board.prefix}*rate*")]
    assert counted
    assert all("dashboard" in key for key in counted), counted
    assert OWN_KEY not in str(counted)


async def test_names_are_shown_as_they_are(board: Board, desk: Desk) -> None:
    await board.proxy()
    await board.linked(name="<b>x</b>")
    page = await desk.page("/send")
    assert "<b>x</b> ·" in page.text
    assert "<b>x" not in page.html


async def test_a_form_without_its_mark_sends_nothing(driver: Driver, desk: Desk) -> None:
    desk.csrf = "another"
    await desk.press("/send", session="a", to=SOMEONE, text=SECRET_TEXT, status=403)
    assert await driver.queue(PHONE) == []


async def test_in_hebrew(driver: Driver, desk: Desk) -> None:
    page = await desk.page("/send", language="he")
    assert 'dir="rtl"' in page.html
    assert "שליחת הודעה" in page.text
    refused = await desk.press("/send", session="a", to="", text="", status=400, language="he")
    assert "בדקו את השדות המסומנים" in refused.text
