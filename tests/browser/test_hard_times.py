"""The server goes away and comes back, a person presses buttons meanwhile, and someone chose an evil name."""

import re
import signal
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Dialog, expect

from tests.browser.conftest import Open, watched_installation
from tests.browser.steps import EVIL_NAME, ask_for_code, is_live, says, without_reload
from tests.support.browser import Visit
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    async with watched_installation(proxies=1) as it:
        await it.linked("972501160001")
        yield it


async def test_a_name_that_is_a_script_stays_a_name(installation: RealInstallation, visit: Visit) -> None:
    asked: list[str] = []

    async def dismiss(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.dismiss()

    page = visit.page
    page.on("dialog", dismiss)
    session = await ask_for_code(page, name=EVIL_NAME)
    await is_live(page)
    await installation.scanned(session, "972501160002")
    await expect(page.locator("#link")).to_contain_text("is linked")
    for path in (f"/sessions/{session}/link", f"/sessions/{session}", "/", "/anti-ban", f"/anti-ban/{session}", "/send",
                 "/batches/new", "/proxies", "/log", "/messages", "/status", f"/?search={EVIL_NAME}"):  # fmt: skip
        await page.goto(path)
        await expect(page.locator("main h1")).to_be_visible()
        assert not await page.locator("img").count(), path
    await expect(page.locator(f"#row-{session}")).to_contain_text(EVIL_NAME)
    await page.goto(f"/sessions/{session}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(EVIL_NAME)
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator("dialog#confirm")).to_contain_text("for good?")
    await page.get_by_role("button", name="Back", exact=True).click()
    assert not asked


async def test_a_page_says_that_the_server_is_away_and_catches_up_when_it_is_back(
    installation: RealInstallation, visit: Visit, enter: Open
) -> None:
    page, session = visit.page, "worker_1"
    await page.goto(f"/sessions/{session}")
    other = await enter(language="he")
    banner, badge = page.locator("#connection"), page.locator("#session .badge").first
    await is_live(page)
    await is_live(other.page)
    await expect(badge).to_have_text("Connected")
    for one in (visit, other):
        one.problems.expect("request: net::ERR_")
    async with without_reload(page, other.page):
        await installation.end(signal.SIGKILL)
        await expect(banner).to_have_text("Connection lost. Trying again…", timeout=10_000)
        await expect(other.page.locator("#connection")).to_have_text(re.compile("[א-ת]"), timeout=10_000)
        await page.get_by_role("button", name="Restart").click()
        await says(page, "Switchboard can't be reached right now, so it is not known whether this was done")

        await installation.whatsapp.log_out("972501160001")
        await installation.start()
        await expect(badge).to_have_text("Logged out", timeout=45_000)
        await expect(page.locator("body")).to_have_attribute("data-connection", "live")
        await expect(banner).to_have_text("", timeout=10_000)
        await expect(other.page.locator(f"#row-{session}")).to_contain_text("נותק", timeout=45_000)
    await page.goto("/proxies")  # still signed in
    await expect(page.get_by_role("heading", level=1)).to_have_text("Proxies")
