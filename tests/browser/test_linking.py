"""A phone is linked on the screen: by its code, by letters, by a link for its owner, by the keyboard alone."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.dashboard.access.signing import Signer
from switchboard.domain.sessions import Session, State
from tests.browser.conftest import Open, watched_installation
from tests.browser.steps import ask_for_code, code_on, is_live, is_scannable, without_reload
from tests.support.browser import Visit
from tests.support.premises import API_KEY, now_ms
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio

SECRET = "the dashboard's secret of this test"


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    """Its secret is known, so that a link can be made that is too old by now."""
    async with watched_installation(proxies=2, DASHBOARD_SECRET=SECRET) as it:
        yield it


async def test_a_code_appears_is_scanned_and_connected_is_seen_without_reload(
    installation: RealInstallation, visit: Visit, enter: Open
) -> None:
    page = visit.page
    session = await ask_for_code(page, name="Front desk")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Link a number: Front desk")
    overview = (await enter()).page
    row = overview.locator(f"#row-{session}")
    await expect(row).to_contain_text("Waiting for scan")
    await is_live(overview)
    await is_live(page)
    async with without_reload(page, overview):
        await is_scannable(installation, page, session)
        await installation.scanned(session, "972501110001")
        await expect(page.get_by_role("status").filter(has_text="is linked")).to_contain_text("+972 50-111-0001")
        await expect(page.locator(".qr")).to_have_count(0)
        await expect(page.get_by_role("button", name="Get a code")).to_be_hidden()
        await expect(row).to_contain_text("Connected")
        await expect(row).to_contain_text("+972 50-111-0001")
    await page.get_by_role("link", name="To its page").click()
    await expect(page.locator("#session .badge").first).to_have_text("Connected")


async def test_a_phone_is_linked_by_letters(installation: RealInstallation, page: Page) -> None:
    session = await ask_for_code(page)
    await page.get_by_text("No camera? Use a code").click()
    await page.get_by_label("The phone's number").fill("+972 50-111-0002")
    async with without_reload(page):
        await page.get_by_role("button", name="Get a code").click()
        letters = page.locator("#pairing .code")
        await expect(letters).to_have_text(re.compile(r"^[0-9A-Z]{4}-[0-9A-Z]{4}$"), timeout=20_000)
        await installation.whatsapp.enter_code((await letters.inner_text()).replace("-", ""), "972501110002")
        await expect(page.locator("#link")).to_contain_text("is linked", timeout=20_000)
    await installation.becomes(session, "connected")


async def test_the_owner_scans_by_a_link_that_shows_nothing_else_and_is_good_once(
    installation: RealInstallation, page: Page, open_page: Open
) -> None:
    session = await ask_for_code(page, name="Not for the owner")
    await page.get_by_text("Send the code to the phone's owner").click()
    await page.get_by_role("button", name="Make a link").click()
    link = await page.get_by_label("Link for the owner").input_value()

    owner = await open_page(installation.url, device="phone")
    assert (await owner.go(link)).headers["referrer-policy"] == "no-referrer"
    await is_live(owner.page)
    shown = await owner.page.content()
    assert session not in shown.replace(f"session:{session}", "")
    assert "Not for the owner" not in shown
    assert not await owner.page.get_by_role("navigation").count()
    async with without_reload(owner.page, page):
        await is_scannable(installation, owner.page, session)
        owner.problems.expect("410 GET /scan/")  # the answer to the stream that comes back: it stops asking
        async with owner.page.expect_response(lambda answer: answer.status == 410 and answer.url.endswith("/live")):
            await installation.scanned(session, "972501110003")
        await expect(owner.page.get_by_role("heading", name="Your phone is linked")).to_be_visible()
        await expect(owner.page.locator(".qr")).to_have_count(0)
        await expect(page.locator("#link")).to_contain_text("is linked")

    later = await open_page(installation.url, language="he")
    later.problems.expect("410 GET /scan/")
    assert (await later.go(link)).status == 410
    await expect(later.page.locator("html")).to_have_attribute("dir", "rtl")
    await expect(later.page.locator(".qr")).to_have_count(0)


async def test_a_link_that_grows_too_old_shows_no_code(installation: RealInstallation, open_page: Open) -> None:
    session = await installation.provision()
    await installation.becomes(session, "qr_ready")
    known = Session(session, State.QR_READY, int(installation.key(f"session:{session}")["createdAt"]))
    hour = 3_600_000

    def link(age_ms: int) -> str:
        return "/scan/" + ScanLinks(Signer(SECRET), lambda: now_ms() - age_ms, hour).make(known).token

    good = await open_page(installation.url)
    await good.go(link(age_ms=0))
    await code_on(good.page)
    old = await open_page(installation.url)
    old.problems.expect("410 GET /scan/")
    assert (await old.go(link(age_ms=hour + 1))).status == 410
    await expect(old.page.get_by_role("heading", level=1)).to_have_text("This link is no longer good")
    await expect(old.page.locator(".qr")).to_have_count(0)


async def test_the_keyboard_alone_is_enough_to_sign_in_and_link_a_number(
    installation: RealInstallation, open_page: Open
) -> None:
    page = (await open_page(installation.url)).page
    await page.goto("/")
    await page.keyboard.type(API_KEY)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await _tab_to(page, "Link ")  # "your first number", or "a number"
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/sessions/new$"))
    await _tab_to(page, "Show the code")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/sessions/*/link")
    await code_on(page)
    await installation.scanned(page.url.split("/")[-2], "972501110005")
    await expect(page.locator("#link")).to_contain_text("is linked")
    await _tab_to(page, "To its page")
    await page.keyboard.press("Enter")
    await expect(page.locator("#session .badge").first).to_have_text("Connected")


async def _tab_to(page: Page, name: str) -> None:
    """Not further than a person would; and where they are, they see it."""
    for _ in range(40):
        await page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if await focused.count() and name in await focused.inner_text():
            outline = await focused.evaluate("it => getComputedStyle(it).outlineStyle + getComputedStyle(it).boxShadow")
            assert outline != "nonenone", f"nobody sees that {name} has the focus"
            return
    raise AssertionError(f"{name} can't be reached by the keyboard")
