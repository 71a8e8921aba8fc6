"""The operator's day: a proxy burns, limits are set, dead letters are tried again, and the log tells it all."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Open, watched_installation
from tests.browser.steps import agree, is_live, says, without_reload
from tests.support.real_installation import RealInstallation
from tests.support.watching import codes, link_all

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    """With two numbers, each on a proxy of its own."""
    async with watched_installation(proxies=2) as it:
        await link_all(it, "972501140001", "972501140002")
        yield it


async def test_a_proxy_burns_and_its_session_is_seen_to_move(installation: RealInstallation, page: Page) -> None:
    proxy = str((await installation.show("worker_1"))["proxyId"])
    other = "proxy_2" if proxy == "proxy_1" else "proxy_1"
    scans = await codes(installation, "worker_1")
    await page.goto("/proxies")
    await is_live(page)
    burnt, spare = page.locator(f"tr#{proxy}"), page.locator(f"tr#{other}")
    await expect(burnt).to_contain_text("worker_1")
    await expect(burnt).to_contain_text("Works")
    async with without_reload(page):
        await installation.whatsapp.break_proxy(int(proxy[-1]))
        await expect(burnt).to_contain_text("Out of order", timeout=20_000)
        await expect(spare).to_contain_text("worker_1", timeout=20_000)
        await expect(burnt).not_to_contain_text("worker_1")
        await expect(page.locator(".figure", has_text="Out of order").locator("dd")).to_have_text("1")
        await installation.becomes("worker_1", "connected")
        await installation.whatsapp.heal_proxy(int(proxy[-1]))
        await burnt.get_by_role("button", name="Try now").click()
        await says(page, f"{proxy} works")
        await expect(burnt).not_to_contain_text("Out of order")
    assert await codes(installation, "worker_1") == scans, "no new scan"
    await page.goto("/sessions/worker_1")
    await expect(page.locator("#session .facts").first).to_contain_text(other)
    await expect(page.locator("#session .badge").first).to_have_text("Connected")


async def test_a_limit_is_overridden_and_the_estimate_changes(installation: RealInstallation, page: Page) -> None:
    slow = {"baseDelayMs": 1_200_000, "jitterMs": 0}
    await installation.ask("PUT", "/api/anti-ban/sessions/worker_2/limits", json=slow)
    first, *_ = [await installation.send("worker_2", f"limits {n}") for n in range(4)]
    await installation.reaches(first, "delivered")

    await page.goto("/anti-ban")
    await page.locator("#row-worker_2").get_by_role("link", name="Set limits").click()
    preview = page.locator("#preview")
    await expect(preview).to_contain_text("3 messages wait now. The last leaves about")
    day = await preview.get_by_text("messages a day").inner_text()
    async with without_reload(page):
        await page.get_by_label("Pause between two (seconds)").fill("0.1")
        await expect(preview).to_contain_text("3 messages wait now. The last would leave about")
        assert await preview.get_by_text("messages a day").inner_text() != day
        await page.get_by_label("Messages a day", exact=True).fill("many")
        await expect(page.locator("#f-daily-fault")).to_have_text("A whole number from 1 to 10,000.")
        await expect(page.get_by_label("Messages a day", exact=True)).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("Messages a day", exact=True).fill("2000")
        await expect(preview.locator(".notice")).to_contain_text("More than the 1,000 a day")
    await page.get_by_role("button", name="Save").click()
    await says(page, "The limits are saved")
    shown = await installation.ask("GET", "/api/anti-ban/sessions/worker_2/limits")
    assert (shown["daily"], shown["baseDelayMs"]) == (2000, 100)
    await expect(page.locator("#preview")).to_contain_text("3 messages wait now. The last leaves about")
    await page.get_by_role("button", name="Reset to the table's figures").click()
    await agree(page, "Remove everything that was set by hand?")
    await says(page, "The table's figures hold again.")
    await expect(page.get_by_label("Messages a day", exact=True)).to_have_value("")
    assert not (await installation.ask("GET", "/api/anti-ban/sessions/worker_2/limits"))["overridden"]


async def test_dead_letters_come_by_themselves_and_are_tried_again(installation: RealInstallation, page: Page) -> None:
    recipients = ["972509876701", "972509876702", "972509876703"]
    sender = str((await installation.show("worker_1"))["phone"])
    refusal = await installation.whatsapp.fault("ack_error", phone=sender, code=400)
    await page.goto("/dead-letters")
    await expect(page.locator("#letters")).to_contain_text("No dead letters")
    await is_live(page)
    async with without_reload(page):
        dead = [await installation.send("worker_1", f"dead {n}", to) for n, to in enumerate(recipients)]
        rows = [page.locator(f"#letter-{message}") for message in dead]
        for row in rows:
            await expect(row).to_contain_text("Given up", timeout=20_000)
        await expect(page.locator("#letters")).not_to_contain_text("dead 0")

        await installation.whatsapp.heal(refusal)
        await rows[0].get_by_role("button", name="Try again").click()
        await says(page, "1 message is tried again.")
        await expect(rows[0]).to_have_count(0)
        await installation.reaches(dead[0], "delivered")

        await rows[1].get_by_role("button", name="Discard").click()
        await agree(page, "Discard the message to +972 50-987-6702?")
        await expect(rows[1]).to_have_count(0)

        await expect(page.locator("#chosen button").first).to_be_disabled()
        await page.get_by_label("Choose all on this page").check()
        await page.locator("#chosen").get_by_role("button", name="Try again").click()
        await expect(page.locator("#letters")).to_contain_text("No dead letters")
    await installation.arrives(sender, "dead 0", "dead 2")
    assert "dead 1" not in await installation.whatsapp.texts(sender=sender)


async def test_the_log_grows_pauses_and_filters(installation: RealInstallation, enter: Open) -> None:
    page = (await enter()).page
    rows = page.locator("[data-log] tbody tr")
    async with page.expect_response("**/log/stream?**"):
        await page.goto("/log")
    async with without_reload(page):
        first = await installation.send("worker_1", "secret text 1")
        await expect(rows.filter(has_text=first).first).to_be_visible()
        await expect(rows.filter(has_text=first).filter(has_text="delivered")).to_be_visible(timeout=15_000)

        await page.get_by_role("button", name="Pause").click()
        second = await installation.send("worker_1", "secret text 2")
        await expect(page.locator("[data-log-new]")).to_have_text(re.compile(r"^[1-9]\d* new$"))
        await expect(rows.filter(has_text=second)).to_have_count(0)
        await page.get_by_role("button", name="Go on").click()
        await expect(rows.filter(has_text=second).first).to_be_visible()
        await expect(page.locator("[data-log-new]")).to_be_hidden()

        await page.get_by_label("Search").fill(second)
        await expect(rows.filter(has_text=first).first).to_be_hidden()
        await expect(rows.filter(has_text=second).first).to_be_visible()
    await expect(page.locator("main")).not_to_contain_text("secret text")
    await page.get_by_role("link", name="Sessions", exact=True).click()
    await expect(rows.first).to_be_visible()
    await expect(rows.filter(has_text=first)).to_have_count(0)
