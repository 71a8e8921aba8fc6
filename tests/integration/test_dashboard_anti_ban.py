"""The pages of limits: the table by trust, every number's own, and a form that shows what it would do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from switchboard.dashboard.services import PhoneRefused
from switchboard.domain.hours import Hours
from switchboard.domain.pacing import Policy
from switchboard.domain.trust import CONSERVATIVE, STANDARD, Overrides, TrustTable
from switchboard.settings import Settings
from tests.support.board import PHONES, Board
from tests.support.dashboard import ORIGIN, Desk, Shown, opened_desk
from tests.support.driver import DAY, NOON, Driver

pytestmark = pytest.mark.anyio


class NoPhone:
    async def scan(self, qr: str) -> str:
        raise PhoneRefused


@pytest.fixture
async def driver(board: Board) -> Driver:
    """A board with one number, linked just now."""
    driver = Driver(board.store, board.client, board.prefix)
    await driver.link("worker_1", PHONES[1], None)
    return driver


async def limits(board: Board, session: str = "worker_1") -> Overrides:
    return (await board.store.accounts.look(session=session, now=board.now)).account.profile.overrides


def field(page: Shown, name: str) -> dict[str, str | None]:
    [found] = [one for one in page.attributes if one["tag"] == "input" and one.get("name") == name]
    return found


def faults(page: Shown) -> dict[str, str]:
    """What is said at which field."""
    said = re.findall(r'<p class="hint bad" id="f-(\w+)-fault" data-fault="f-\1"[^>]*>([^<]+)</p>', page.html)
    return dict(said)


async def without_scripts(desk: Desk, path: str, **fields: Any) -> Shown:
    headers = {"Origin": ORIGIN, "Accept": "text/html"}
    answer = await desk.http.post(path, data={"csrf": desk.csrf, **fields}, headers=headers)
    assert answer.status_code == 400, answer.text
    return Shown(answer)


def plotted(page: Shown) -> Any:
    found = re.search(r'<script type="application/json">(.*?)</script>', page.html, re.DOTALL)
    assert found
    return json.loads(found.group(1))


class TestTheTable:
    async def test_both_presets_stand_side_by_side(self, desk: Desk) -> None:
        page = await desk.page("/anti-ban")
        assert "In force: Standard preset" in page.text
        assert "changed by settings" not in page.text
        assert [
            text for text in ("In force Conservative preset", "Standard preset Conservative") if text in page.text
        ] == ["In force Conservative preset"], "the columns"
        cold = page.text[page.text.index("Cold from the first day") :]
        assert cold.startswith("Cold from the first day 20 5 \u20665–8\u2069 s 09:00-21:00 10 5 \u20663.5–6.5\u2069 s")
        assert "after 3 days" in page.text
        assert "after 14 days" in page.text
        assert "looks like a spammer's" in page.text
        assert "No numbers yet" in page.text

    async def test_the_preset_that_is_chosen_comes_first(self, board: Board) -> None:
        settings = Settings(_env_file=None, data_dir=Path("data"), pacing_preset="conservative")
        policy = Policy(TrustTable(CONSERVATIVE))
        async with opened_desk(board, policy=policy, configuration=settings.effective()) as desk:
            page = await desk.page("/anti-ban")
        assert "In force: Conservative preset" in page.text
        assert "Cold from the first day 10 5" in page.text
        assert "PACING_PRESET=standard" in page.text

    async def test_figures_of_the_settings_are_named(self, board: Board) -> None:
        levels = {level: Overrides(daily=33).apply(of) if level == "warm" else of for level, of in STANDARD.items()}
        async with opened_desk(board, policy=Policy(TrustTable(levels))) as desk:
            page = await desk.page("/anti-ban")
        assert "PACE__WARM__DAILY" in page.text
        assert "In force: Standard preset, changed by settings" in page.text
        assert "PACE__COLD" not in page.text
        assert "33" in page.text

    async def test_the_demo_says_that_its_figures_are_its_own(self, board: Board, desk: Desk) -> None:
        assert "The demo's figures" not in (await desk.page("/anti-ban")).text
        async with opened_desk(board, phone=NoPhone()) as demo:
            assert "The demo's figures are much livelier" in (await demo.page("/anti-ban")).text


class TestTheList:
    async def test_a_number_shows_its_limits_and_when_they_grow(self, desk: Desk, driver: Driver) -> None:
        page = await desk.page("/anti-ban")
        assert "+972 50-000-0001" in page.text
        assert "0 / 20" in page.text
        assert "2026-06-12T12:00:00+00:00" in page.html
        assert "/anti-ban/worker_1" in page.links
        assert "tone-info" not in page.html, "nothing was set by hand"

    async def test_what_was_set_by_hand_is_marked_and_can_be_sought(self, desk: Desk, driver: Driver) -> None:
        await driver.link("worker_2", PHONES[2], Overrides(daily=7))
        page = await desk.page("/anti-ban")
        assert "0 / 7 by hand" in page.text
        only = await desk.page("/anti-ban?overridden=true")
        assert "/anti-ban/worker_2" in only.links
        assert "/anti-ban/worker_1" not in only.links

    async def test_none_was_set_by_hand(self, desk: Desk, driver: Driver) -> None:
        page = await desk.page("/anti-ban?overridden=true")
        assert "No such number" in page.text
        assert "/anti-ban/worker_1" not in page.links

    async def test_one_that_was_never_linked_has_none(self, board: Board, desk: Desk) -> None:
        await board.store.sessions.register("worker_1", board.now)
        page = await desk.page("/anti-ban")
        assert "so it has no limits" in page.text
        assert "/anti-ban/worker_1" not in page.links
        await desk.page("/anti-ban/worker_1", status=409)

    async def test_names_are_no_markup(self, board: Board, desk: Desk) -> None:
        await board.proxy()
        session = await board.linked(name="<b>x</b>")
        page = await desk.page(f"/anti-ban?search={session}")
        assert "<b>x</b>" not in page.html
        assert "<b>x</b>" in page.text

    async def test_page_by_page(self, board: Board, desk: Desk) -> None:
        for n in range(1, 53):
            await board.store.sessions.register(f"worker_{n}", board.now)
        page = await desk.page("/anti-ban")
        assert page.html.count('id="row-') == 50
        [more] = [link for link in page.links if "cursor" in link]
        assert 'id="row-worker_52"' in (await desk.page(more)).html


class TestTheForm:
    async def test_it_shows_what_is_set_and_the_table_faintly(self, board: Board, desk: Desk, driver: Driver) -> None:
        await driver.link("worker_1", PHONES[1], Overrides(daily=7, base_delay_ms=2500))
        page = await desk.page("/anti-ban/worker_1")
        assert (field(page, "daily")["value"], field(page, "daily")["placeholder"]) == ("7", "20")
        assert (field(page, "delay")["value"], field(page, "delay")["placeholder"]) == ("2.5", "5")
        assert (field(page, "opens")["value"], field(page, "opens")["placeholder"]) == ("", "09:00")
        assert (field(page, "closes")["value"], field(page, "closes")["placeholder"]) == ("", "21:00")
        assert field(page, "timezone")["placeholder"] == "UTC"

    async def test_saving_sets_what_is_filled_in_and_nothing_else(
        self, board: Board, desk: Desk, driver: Driver
    ) -> None:
        saved = await desk.press("/anti-ban/worker_1", daily="15", delay="7,5", opens="9:30", timezone="Asia/Jerusalem")
        assert saved.response.headers["hx-redirect"] == "/anti-ban/worker_1"
        wanted = Overrides(daily=15, base_delay_ms=7500, hours=Hours.parse("09:30-21:00"))
        assert await limits(board) == wanted
        profile = (await board.store.accounts.look(session="worker_1", now=board.now)).account.profile
        assert profile.zone.key == "Asia/Jerusalem"
        assert "The limits are saved" in (await desk.page("/anti-ban/worker_1")).text

    async def test_an_empty_form_is_the_table_again(self, board: Board, desk: Desk, driver: Driver) -> None:
        await desk.press("/anti-ban/worker_1", daily="15")
        await desk.press("/anti-ban/worker_1", daily="", delay=" ")
        assert await limits(board) == Overrides()

    async def test_resetting_to_the_table_asks_and_does(self, board: Board, desk: Desk, driver: Driver) -> None:
        assert "/anti-ban/worker_1/reset" not in (await desk.page("/anti-ban/worker_1")).actions
        await desk.press("/anti-ban/worker_1", daily="15")
        page = await desk.page("/anti-ban/worker_1")
        assert "Reset to the table's figures" in page.text
        [form] = [one for one in page.attributes if one.get("action") == "/anti-ban/worker_1/reset"]
        assert "Remove everything that was set by hand?" in (form["hx-confirm"] or "")
        await desk.press("/anti-ban/worker_1/reset")
        assert await limits(board) == Overrides()

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"daily": "0"}, "from 1 to 10,000"),
            ({"daily": "10001"}, "from 1 to 10,000"),
            ({"daily": "2.5"}, "A whole number"),
            ({"per_minute": "121"}, "from 1 to 120"),
            ({"delay": "soon"}, "from 0 to 3,600"),
            ({"delay": "nan"}, "from 0 to 3,600"),
            ({"delay": "-1"}, "from 0 to 3,600"),
            ({"jitter": "3601"}, "from 0 to 3,600"),
            ({"opens": "25:00"}, "Two times like 07:00"),
            ({"opens": "08:00", "closes": "08:00"}, "that differ"),
            ({"timezone": "Mars/Olympus"}, "A name like Asia/Jerusalem"),
            ({"timezone": "../etc/passwd"}, "A name like Asia/Jerusalem"),
        ],
    )
    async def test_what_can_not_be_is_refused_and_changes_nothing(
        self, board: Board, desk: Desk, driver: Driver, wrong: dict[str, Any], sentence: str
    ) -> None:
        refused = await desk.press("/anti-ban/worker_1", status=400, **wrong)
        assert "input" not in {one["tag"] for one in refused.attributes}, "what was typed stays where it is"
        assert await limits(board) == Overrides()
        looked = await desk.press("/anti-ban/worker_1/preview", **wrong)
        assert "this is the day with the limits that hold now" in looked.text
        whole = await without_scripts(desk, "/anti-ban/worker_1", **wrong)
        for answer in (refused, looked, whole):
            assert {name: sentence in text for name, text in faults(answer).items()} == dict.fromkeys(
                ("opens", "closes") if "opens" in wrong else wrong, True
            )
        for name, typed in wrong.items():
            assert field(whole, name)["value"] == typed
            assert field(whole, name)["aria-invalid"] == "true"
            assert f"f-{name}-fault" in (field(whole, name)["aria-describedby"] or "").split()

    async def test_every_field_that_is_wrong_says_so_and_is_quiet_once_it_is_right(
        self, desk: Desk, driver: Driver
    ) -> None:
        given: dict[str, Any] = {"daily": "0", "delay": "soon", "per_minute": "3"}
        assert faults(await desk.press("/anti-ban/worker_1/preview", **given)).keys() == {"daily", "delay"}
        looked = await desk.press("/anti-ban/worker_1/preview", **given | {"daily": "1"})
        assert faults(looked).keys() == {"delay"}
        [daily] = [one for one in looked.attributes if one.get("id") == "f-daily-fault"]
        assert daily["hx-swap-oob"] == "true", "it is emptied in the page, too"

    async def test_the_figures_of_a_preset_can_be_filled_in(self, board: Board, desk: Desk, driver: Driver) -> None:
        page = await desk.page("/anti-ban/worker_1?use=conservative")
        filled = {name: field(page, name)["value"] for name in ("daily", "per_minute", "delay", "jitter", "opens")}
        assert filled == {"daily": "10", "per_minute": "5", "delay": "3.5", "jitter": "3", "opens": "09:00"}
        assert "They hold once they are saved" in page.text
        assert await limits(board) == Overrides()
        await desk.page("/anti-ban/worker_1?use=daring", status=400)

    async def test_a_preset_is_what_its_name_says_whatever_the_settings_are(self, board: Board, driver: Driver) -> None:
        levels = {level: Overrides(daily=300, per_minute=12).apply(of) for level, of in STANDARD.items()}
        async with opened_desk(board, policy=Policy(TrustTable(levels))) as desk:
            page = await desk.page("/anti-ban/worker_1?use=standard")
        assert (field(page, "daily")["value"], field(page, "daily")["placeholder"]) == ("20", "300")
        assert "Fill in: Standard preset" in page.text
        assert "Standard preset: its figures for this level are filled in" in page.text

    async def test_sessions_of_one_account_share_them(self, desk: Desk, driver: Driver) -> None:
        assert "sessions together" not in (await desk.page("/anti-ban/worker_1")).text
        await driver.link("worker_2", PHONES[1], None)
        page = await desk.page("/anti-ban/worker_1")
        assert "count for its 2 sessions together" in page.text
        assert {"/sessions/worker_1", "/sessions/worker_2"} <= set(page.links)

    @pytest.mark.parametrize("name", ["worker_9", "a:b", "%2e%2e"])
    async def test_one_that_is_not_there(self, desk: Desk, name: str) -> None:
        await desk.page(f"/anti-ban/{name}", status=404)
        await desk.press(f"/anti-ban/{name}/preview", status=404)
        await desk.press(f"/anti-ban/{name}", status=404)

    async def test_in_hebrew(self, desk: Desk, driver: Driver) -> None:
        page = await desk.page("/anti-ban/worker_1", language="he")
        assert 'dir="rtl"' in page.html
        assert "יום עם המגבלות האלה" in page.text
        assert "מספר שלם" in (await desk.press("/anti-ban/worker_1", daily="0", status=400, language="he")).text
        assert "רמת האמון" in (await desk.page("/anti-ban", language="he")).text


class TestThePreview:
    async def test_the_day_that_the_table_makes(self, desk: Desk, driver: Driver) -> None:
        page = await desk.press("/anti-ban/worker_1/preview")
        assert "Up to 20 messages a day, the first at 09:00, the last about 09:03; then the day's limit" in page.text
        [then, now] = plotted(page)["series"]
        assert then["values"] == now["values"] == [0] * 9 + [20] + [0] * 14
        assert "number at the level" not in page.text, "nothing to warn of"

    async def test_the_day_that_these_limits_make(self, desk: Desk, driver: Driver) -> None:
        given: dict[str, Any] = {"daily": "40", "delay": "3600", "jitter": "0", "opens": "07:00", "closes": "13:00"}
        page = await desk.press("/anti-ban/worker_1/preview", **given)
        assert "Up to 6 messages a day, the first at 07:00, the last about 12:00; the hours" in page.text
        [then, now] = plotted(page)["series"]
        assert then["values"] == [0] * 7 + [1] * 6 + [0] * 11
        assert sum(now["values"]) == 20

    async def test_bolder_figures_are_warned_of(self, desk: Desk, driver: Driver) -> None:
        given: dict[str, Any] = {"daily": "21", "per_minute": "6", "delay": "1", "closes": "21:01"}
        page = await desk.press("/anti-ban/worker_1/preview", **given)
        assert "More than the 20 a day of a number at the level “Cold”" in page.text
        assert "More than the 5 a minute" in page.text
        assert "Shorter pauses than the" in page.text
        assert "Outside of the hours" in page.text
        tame: dict[str, Any] = {"daily": "20", "per_minute": "5", "delay": "5", "jitter": "3", "closes": "20:59"}
        assert "at the level" not in (await desk.press("/anti-ban/worker_1/preview", **tame)).text

    async def test_what_waits_would_be_done_sooner(self, board: Board, desk: Desk, driver: Driver) -> None:
        for _ in range(12):
            await driver.send("worker_1")
        given: dict[str, Any] = {"delay": "600", "jitter": "0"}
        page = await desk.press("/anti-ban/worker_1/preview", **given)
        assert "12 messages wait now." in page.text
        assert re.search(r"would leave about 9 Jun, 13:50 instead of 9 Jun, 12:0\d", page.text)
        assert "The last leaves about 9 Jun, 12:0" in (await desk.press("/anti-ban/worker_1/preview")).text

    async def test_nobody_knows_when_it_is_not_connected(self, board: Board, desk: Desk, driver: Driver) -> None:
        await driver.send("worker_1")
        await board.store.accounts.pause(PHONES[1], None, board.now)
        page = await desk.press("/anti-ban/worker_1/preview", daily="5")
        assert "1 message waits now. Nobody knows yet when they leave: its number is paused." in page.text

    async def test_another_zone_moves_the_day(self, desk: Desk, driver: Driver) -> None:
        for _ in range(3):
            await driver.send("worker_1")
        page = await desk.press("/anti-ban/worker_1/preview", timezone="Pacific/Auckland")
        assert "Up to 20 messages a day, the first at 09:00" in page.text
        assert "10 Jun, 09:0" in page.text, "there it is night by now"

    async def test_nothing_is_changed_by_looking(self, board: Board, desk: Desk, driver: Driver) -> None:
        await desk.press("/anti-ban/worker_1/preview", daily="7")
        assert await limits(board) == Overrides()

    async def test_an_older_account_has_another_table(self, board: Board, desk: Desk, driver: Driver) -> None:
        board.now = NOON + 5 * DAY
        page = await desk.press("/anti-ban/worker_1/preview", daily="99")
        assert "at the level" not in page.text
        assert "Up to 99 messages a day, the first at 08:00" in page.text
