"""Hebrew from right to left, light and dark, and a phone in the hand: chosen once, kept from then on."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Open, watched_installation
from tests.browser.steps import code_on, is_live, no_scrolling_sideways, without_reload
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio

DARK = "rgb(15, 20, 27)"


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    async with watched_installation(proxies=1) as it:
        await it.linked("972501150001", name="מאפיית הנמל")
        yield it


async def _side_of_the_menu(page: Page) -> str:
    box, view = await page.locator("nav#menu").bounding_box(), page.viewport_size
    assert box is not None
    assert view is not None
    return "left" if box["x"] + box["width"] / 2 < view["width"] / 2 else "right"


async def test_hebrew_runs_from_right_to_left_and_is_remembered(installation: RealInstallation, page: Page) -> None:
    await page.goto("/proxies?from=here")
    html = page.locator("html")
    await expect(html).to_have_attribute("dir", "ltr")
    assert await _side_of_the_menu(page) == "left"
    await page.get_by_role("button", name="עברית").click()
    await expect(page).to_have_url(f"{installation.url}/proxies?from=here")
    await expect(html).to_have_attribute("dir", "rtl")
    await expect(html).to_have_attribute("lang", "he")
    await expect(page.get_by_role("heading", level=1)).to_have_text("פרוקסי")
    assert await _side_of_the_menu(page) == "right"

    await page.goto("/sessions/worker_1")
    await expect(html).to_have_attribute("dir", "rtl")
    number = page.locator("#session .phone").first
    await expect(number).to_have_text("+972 50-115-0001")
    assert await number.evaluate("it => getComputedStyle(it).direction") == "ltr", "a number is never read backwards"
    await page.locator("form[action='/sign-out'] button").click()
    await expect(page).to_have_url(f"{installation.url}/sign-in")
    await expect(html).to_have_attribute("dir", "rtl")

    await page.get_by_role("button", name="English").click()
    await expect(html).to_have_attribute("dir", "ltr")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_the_first_language_is_the_browsers(installation: RealInstallation, open_page: Open) -> None:
    page = (await open_page(installation.url, language="he")).page
    await page.goto("/sign-in")
    await expect(page.locator("html")).to_have_attribute("dir", "rtl")


async def test_a_hebrew_page_keeps_itself_current_in_hebrew(installation: RealInstallation, enter: Open) -> None:
    page = (await enter(language="he")).page
    await page.goto("/")
    await is_live(page)
    async with without_reload(page):
        await installation.ask("POST", "/api/sessions/worker_1/pause", json={})
        await expect(page.locator("#row-worker_1 .badge")).to_have_text("מושהה")
        await installation.ask("POST", "/api/sessions/worker_1/resume", json={})
        await expect(page.locator("#row-worker_1 .badge")).to_have_text("מחובר")


async def test_light_and_dark_are_chosen_and_kept(page: Page) -> None:
    html = page.locator("html")
    await page.goto("/")
    await expect(html).to_have_attribute("data-theme", "light")
    switch = page.locator("button[data-theme-switch]")
    await switch.click()
    await expect(switch).to_have_attribute("aria-label", "Colours: light")
    await switch.click()
    await expect(switch).to_have_attribute("aria-label", "Colours: dark")
    await expect(html).to_have_attribute("data-theme", "dark")
    await expect(html).to_have_css("background-color", DARK)
    await page.goto("/proxies")
    await expect(html).to_have_attribute("data-theme", "dark")
    await expect(html).to_have_css("background-color", DARK)
    await expect(switch).to_have_attribute("aria-label", "Colours: dark")
    await switch.click()
    await expect(html).to_have_attribute("data-theme", "light")
    await expect(html).not_to_have_css("background-color", DARK)

    await page.emulate_media(color_scheme="dark")  # the system's own, which is chosen again by now
    await expect(html).to_have_css("background-color", DARK)


async def test_a_phone_has_a_menu_that_folds_out_and_codes_that_fit(
    installation: RealInstallation, enter: Open
) -> None:
    page = (await enter(device="phone", language="he")).page
    menu, button = page.locator("nav#menu"), page.locator("button[data-menu]")
    await expect(menu).not_to_be_in_viewport()
    await button.tap()
    await expect(button).to_have_attribute("aria-expanded", "true")
    await expect(menu).to_be_in_viewport()
    await no_scrolling_sideways(page)
    await page.keyboard.press("Escape")
    await expect(menu).not_to_be_in_viewport()
    await expect(button).to_be_focused()
    await button.tap()
    await menu.get_by_role("link", name="פרוקסי").tap()
    await expect(page).to_have_url(f"{installation.url}/proxies")
    await expect(menu).not_to_be_in_viewport()

    session = await installation.provision()
    await page.goto(f"/sessions/{session}/link")
    box = await (await code_on(page)).bounding_box()
    assert box is not None
    assert box["width"] >= 200
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert abs(box["width"] - box["height"]) < 1
    await no_scrolling_sideways(page)
