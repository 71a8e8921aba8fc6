"""A CSV file becomes messages on the screen: seen before anything is sent, watched while it goes, cancelled midway."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.browser.conftest import Open, watched_installation
from tests.browser.steps import agree, is_live, says, settled, without_reload
from tests.support.browser import Visit
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio

SENDER = "972501130001"
NAMES = ("Dana", "Yossi", "נועה", "Alice", "=1+1", "<b>Bob</b>", "Gil", "Tal")


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    async with watched_installation(proxies=1) as it:
        await it.linked(SENDER, name="Shop")
        yield it


def _file(*names: str, bad: str = "") -> FilePayload:
    rows = [f"+972 50-987-66{n:02},{name}" for n, name in enumerate(names)]
    content = "\n".join(["phone,name", *rows, bad])
    return {"name": "customers.csv", "mimeType": "text/csv", "buffer": content.encode()}


async def _choose(page: Page, file: FilePayload) -> None:
    await page.goto("/batches/new")
    await page.get_by_label("From").select_option("worker_1")
    await page.locator("input[type=file]").set_input_files(file)
    await expect(page.locator("[data-file-name]")).to_have_text("customers.csv")
    await expect(page.get_by_label("Phone numbers", exact=True)).to_have_value("0")
    await settled(page)


async def test_a_file_is_seen_before_it_is_sent_then_progresses_and_is_cancelled(
    installation: RealInstallation, visit: Visit
) -> None:
    page = visit.page
    await _choose(page, _file(*NAMES, bad="not a number,Eve"))
    async with without_reload(page):
        await page.get_by_label("Text", exact=True).last.fill("Hello ")
        await page.get_by_role("button", name="name", exact=True).click()
        composed = page.locator("#composed")
        await expect(composed).to_contain_text("Hello נועה")
        await expect(composed).to_contain_text("Hello <b>Bob</b>")
        await expect(composed).to_contain_text("1 row can't be sent")
        await expect(composed).to_contain_text("not a number")
        await page.get_by_label("Spread over (minutes)").fill("0.4")
        await expect(composed).to_contain_text("One message every 3 seconds.")

        visit.problems.expect("400 POST /batches")  # nobody agreed yet to leave the bad row out
        await page.get_by_role("button", name="Queue 8 messages").click()
        await expect(composed.get_by_role("alert")).to_contain_text("Nothing was queued")
    await page.get_by_label("Skip this row and send the rest").check()
    await page.get_by_role("button", name="Queue 8 messages").click()

    await page.wait_for_url(re.compile("/batches/[^/]+$"))
    await says(page, "8 messages are in the queue.")
    await is_live(page)
    waiting = page.locator(".legend div", has_text="Not sent yet").locator("dd")
    async with without_reload(page):
        await expect(waiting).to_contain_text(re.compile("^[67] "), timeout=10_000)
        await expect(page.locator("svg.share .part-delivered")).to_have_count(1)
        await expect(waiting).to_contain_text(re.compile("^[56] "), timeout=10_000)
        await page.get_by_role("button", name="Cancel the rest").click()
        await agree(page, "What has been sent stays sent.")
        await says(page, "The batch was cancelled")
        await expect(page.locator("#batch .head .badge")).to_have_text("Cancelled")
        await expect(waiting).to_contain_text("0 ")
        await expect(page.locator("svg.share .part-cancelled")).to_have_count(1)
        await expect(page.get_by_role("button", name="Cancel the rest")).to_have_count(0)
    batch = await installation.ask("GET", f"/api/v1/batches/{page.url.rpartition('/')[2]}")
    assert batch["cancelled"] >= 4
    assert batch["sent"] + batch["cancelled"] == 8
    assert sorted(await installation.whatsapp.texts(sender=SENDER)) == sorted(
        f"Hello {name}" for name in NAMES[: batch["sent"]]
    )


async def test_a_double_click_queues_one_batch_and_the_list_watches_it(
    installation: RealInstallation, page: Page, enter: Open
) -> None:
    watching = (await enter()).page
    await watching.goto("/batches")
    await is_live(watching)
    async with without_reload(watching):
        await _choose(page, _file("Dana", "Gil"))
        await page.get_by_label("Text", exact=True).last.fill("Second: {name}")
        await page.get_by_role("button", name="Queue 2 messages").dblclick()
        await page.wait_for_url(re.compile("/batches/batch[^/]+$"))
        row = watching.locator(f"[id='{page.url.rpartition('/')[2]}']")
        await expect(row).to_contain_text("Done", timeout=30_000)
    sent = await installation.whatsapp.texts(sender=SENDER)
    assert sorted(text for text in sent if text.startswith("Second")) == ["Second: Dana", "Second: Gil"]


async def test_what_is_no_table_is_told_and_nothing_breaks(page: Page) -> None:
    await page.goto("/batches/new")
    picture: FilePayload = {"name": "a.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(200)}
    await page.locator("input[type=file]").set_input_files(picture)
    await expect(page.locator("#composed").get_by_role("alert")).to_contain_text("This is not a CSV file")
    await expect(page.get_by_role("button", name=re.compile("^Queue"))).to_have_count(0)
