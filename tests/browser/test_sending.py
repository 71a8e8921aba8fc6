"""One message from the form to the phone, and every step of it seen on the screen while it happens."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import watched_installation
from tests.browser.steps import agree, is_live, says, without_reload
from tests.support.browser import Visit
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio

SENDER = "972501120001"


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    """With one number to send from. Phones take their time, so that each state can be seen."""
    async with watched_installation(proxies=1) as it:
        await it.whatsapp.receipts(delivered_after_ms=2_500)
        await it.linked(SENDER, name="Shop")
        yield it


async def _write(page: Page, to: str, text: str) -> None:
    await page.goto("/send")
    await page.get_by_label("From").select_option("worker_1")
    await page.get_by_label("To", exact=True).fill(to)
    await page.get_by_label("Message", exact=True).fill(text)


async def test_a_message_is_seen_to_be_sent_delivered_and_read(installation: RealInstallation, page: Page) -> None:
    await _write(page, "+972 50-987-6501", "Your order is ready\nשלום <b>and</b> 👋")
    await page.get_by_role("button", name="Send", exact=True).click()
    await page.wait_for_url("**/messages/*")
    await says(page, "The message is in the queue.")
    await expect(page.locator(".message-text")).to_have_text("Your order is ready\nשלום <b>and</b> 👋")
    await is_live(page)
    badge = page.locator("#message .head .badge")
    async with without_reload(page):
        for status in ("Sent", "Delivered"):
            await expect(badge).to_have_text(status, timeout=15_000)
        await expect(page.locator("[aria-current=step]")).to_contain_text("To be read")
        assert await installation.whatsapp.reads("972509876501", SENDER) == 1
        await expect(badge).to_have_text("Read")
        await expect(page.locator(".timeline .step-done")).to_have_count(5)
    await page.get_by_role("link", name="worker_1").click()
    await expect(page.locator("#session meter").first).to_have_attribute("value", "1")


async def test_a_double_click_sends_once_and_so_does_a_repeated_request(
    installation: RealInstallation, page: Page
) -> None:
    await _write(page, "+972 50-987-6502", "only once, please")
    let_through = asyncio.Event()

    async def hold(route: Route) -> None:
        await let_through.wait()
        await route.continue_()

    await page.route("**/send", hold)
    button = page.get_by_role("button", name="Send", exact=True)
    async with page.expect_request("**/send") as sent:
        await button.dblclick()
    await expect(button).to_be_disabled()
    let_through.set()
    await page.wait_for_url("**/messages/*")

    request = await sent.value
    headers = {name: value for name, value in request.headers.items() if name in ("content-type", "x-csrf-token")}
    headers |= {"Origin": installation.url, "HX-Request": "true"}
    again = await page.request.post("/send", data=request.post_data, headers=headers)
    assert again.headers["hx-redirect"] == page.url.removeprefix(installation.url)

    await installation.arrives(SENDER, "only once, please")
    await page.goto("/messages?to=972509876502")
    await expect(page.locator("#messages tbody tr")).to_have_count(1)
    assert await installation.whatsapp.texts(sender=SENDER, to="972509876502") == ["only once, please"]


async def test_what_cant_be_sent_is_said_at_its_field_and_nothing_is_lost(page: Page, visit: Visit) -> None:
    visit.problems.expect("400 POST /send")
    await _write(page, "call me", "do not lose this text")
    async with without_reload(page):
        await page.get_by_role("button", name="Send", exact=True).click()
        field = page.get_by_label("To", exact=True)
        await expect(field).to_have_attribute("aria-invalid", "true")
        await expect(field).to_be_focused()
        await expect(page.locator("#f-to-hint")).to_contain_text("This is not a phone number")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("do not lose this text")
        await expect(field).to_have_value("call me")


async def test_a_message_for_later_waits_and_can_be_cancelled(installation: RealInstallation, page: Page) -> None:
    await _write(page, "+972 50-987-6503", "never to be sent")
    await page.locator("summary", has_text="More").click()
    await page.get_by_label("Not before").fill(f"{datetime.now() + timedelta(days=2):%Y-%m-%dT%H:%M}")  # noqa: DTZ005
    await page.get_by_role("button", name="Send", exact=True).click()
    await page.wait_for_url("**/messages/*")
    badge = page.locator("#message .head .badge")
    await expect(badge).to_have_text("Scheduled")
    async with without_reload(page):
        await page.get_by_role("button", name="Cancel it").click()
        await agree(page, "It will not be sent.")
        await says(page, "The message was cancelled.")
        await expect(badge).to_have_text("Cancelled")
        await expect(page.get_by_role("button", name="Cancel it")).to_have_count(0)


async def test_the_list_shows_what_the_api_was_given_by_itself(installation: RealInstallation, page: Page) -> None:
    await page.goto("/messages")
    await is_live(page)
    async with without_reload(page):
        message = await installation.send("worker_1", "from the CRM", "972509876504")
        row = page.locator(f"#m-{message}")
        await expect(row).to_contain_text("+972 50-987-6504")
        await expect(row.locator(".badge")).to_have_text(re.compile("Sent|Delivered"), timeout=15_000)
        await expect(page.locator("#messages")).not_to_contain_text("from the CRM")  # lists show no texts
