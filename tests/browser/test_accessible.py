"""Every page, with life on it, in three looks: nobody is kept out, nothing is wider than the screen, nothing breaks."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random

import pytest
from playwright.async_api import Browser, FilePayload, expect

from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.dashboard.access.signing import Signer
from switchboard.domain.sessions import Session, State
from switchboard.store.keys import Keys
from tests.browser.conftest import watched_installation
from tests.browser.steps import EVIL_NAME, no_scrolling_sideways, settled
from tests.support.axe import check_accessible
from tests.support.browser import Look, Visit, visiting
from tests.support.past import Figures, invent_figures, invent_samples, invent_states, write_states
from tests.support.premises import API_KEY, now_ms
from tests.support.real_installation import RealInstallation

pytestmark = pytest.mark.anyio

SECRET = "the dashboard's secret of this test"
PHONES = ("972501170001", "972501170002")
LOOKS = (Look(), Look("he", "dark"), Look("he", "light", "phone"))
PAGES = (
    "/",
    "/?search=nobody",
    "/sessions/{session}",
    "/sessions/new",
    "/sessions/{scanning}/link",
    "/proxies",
    "/anti-ban",
    "/anti-ban/{session}",
    "/send",
    "/messages",
    "/messages/{read}",
    "/messages/{dead}",
    "/batches",
    "/batches/{batch}",
    "/batches/new",
    "/dead-letters",
    "/log",
    "/status",
    "/settings",
    "/nowhere",
)
OPEN_PAGES = ("/sign-in", "/docs", "/scan/{token}", "/scan/forged", "/open/forged")
GONE = {"/nowhere": 404, "/scan/forged": 410, "/open/forged": 410}

NARROWEST = 320  # a small phone, or a large one with everything enlarged

Scene = dict[str, str]
Enter = Callable[[Look, bool], Awaitable[Visit]]


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    async with watched_installation(proxies=3, DASHBOARD_SECRET=SECRET) as it:
        yield it


@pytest.fixture(scope="module")
async def scene(installation: RealInstallation) -> Scene:
    """Two numbers with a past, one of them with an evil name and paused, a code on a screen, a batch under way, a
    message that was read and one that was given up, a proxy out of order."""
    it = installation
    await it.whatsapp.receipts(read_after_ms=0)
    await it.whatsapp.break_proxy(3)
    session, paused = await it.linked(PHONES[0], name="מאפיית הנמל"), await it.linked(PHONES[1], name=EVIL_NAME)
    _invent_past(it, session)
    nobody = "972509999999"
    await it.whatsapp.absent(nobody)
    made = {"session": session, "scanning": await it.provision(), "dead": await it.send(session, "to nobody", nobody)}
    made["read"] = await it.send(session, "Your order is ready: https://shop.example/" + "long-" * 60, "972509876901")
    rows = [{"to": f"9725098769{n:02}", "text": f"row {n}"} for n in range(10, 20)]
    body = {"messages": rows, "sessionId": session, "spreadMinutes": 60}
    made["batch"] = str((await it.ask("POST", "/api/v1/send/batch", json=body))["batchId"])
    await it.send(paused, "waits", "972509876902")
    await it.ask("POST", f"/api/sessions/{paused}/pause", json={})
    await it.ask("PUT", f"/api/anti-ban/sessions/{session}/limits", json={"daily": 1500})
    await it.reaches(made["dead"], "dead")
    await it.reaches(made["read"], "read")
    await it.becomes(made["scanning"], "qr_ready")
    known = Session(made["scanning"], State.QR_READY, int(it.key(f"session:{made['scanning']}")["createdAt"]))
    made["token"] = ScanLinks(Signer(SECRET), now_ms, 3_600_000).make(known).token
    return made


def _invent_past(it: RealInstallation, session: str) -> None:
    now, keys, chance, figures = now_ms(), Keys("switchboard:"), Random(5), Figures()
    pipeline = it.store.pipeline(transaction=False)
    invent_figures(figures, chance, session, PHONES[0], now, 20)
    figures.write(pipeline, keys)
    write_states(pipeline, keys, session, invent_states(chance, now, 20))
    week = {"waiting": 60, "scheduled": 25, "dead": 2, "connected": 2, "sessions": 3, "sent": 400}
    invent_samples(pipeline, keys, chance, now, week)
    pipeline.execute()


@pytest.fixture(scope="module")
async def as_someone(browser: Browser, installation: RealInstallation) -> AsyncIterator[Enter]:
    """One visitor for each look, signed in or a stranger, for all the pages."""
    visits: dict[tuple[Look, bool], Visit] = {}
    async with AsyncExitStack() as stack:

        async def enter(look: Look, signed_in: bool) -> Visit:
            if (look, signed_in) not in visits:
                opened = visiting(browser, installation.url, look, secret=API_KEY if signed_in else None)
                visits[look, signed_in] = await stack.enter_async_context(opened)
            return visits[look, signed_in]

        yield enter


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("path", [*PAGES, *OPEN_PAGES])
async def test_a_page_keeps_nobody_out(as_someone: Enter, scene: Scene, path: str, look: Look) -> None:
    visit = await as_someone(look, path in PAGES)
    page = visit.page
    visit.problems.found.clear()
    assert (await visit.go(path.format(**scene))).status == GONE.get(path, 200)
    if path == "/batches/new":
        await page.locator("input[type=file]").set_input_files(_TABLE)
        await expect(page.locator("textarea#f-template")).to_be_visible()
        await settled(page)
        await page.locator("textarea#f-template").fill("{name}!")
        await expect(page.locator("#composed table")).to_have_count(2)
    await page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    await expect(page.locator("html")).to_have_attribute("dir", "rtl" if look.language == "he" else "ltr")
    await expect(page.locator("html")).to_have_attribute("data-theme", look.scheme)
    await expect(page.get_by_role("heading", level=1)).to_have_count(1)
    await check_accessible(page)
    await no_scrolling_sideways(page)
    if look.device == "phone":
        await page.set_viewport_size({"width": NARROWEST, "height": 640})
        await no_scrolling_sideways(page)
        await page.set_viewport_size({"width": 390, "height": 844})
    broken = [problem for problem in visit.problems.found if path not in GONE or str(GONE[path]) not in problem]
    assert not broken


_TABLE: FilePayload = {
    "name": "customers.csv",
    "mimeType": "text/csv",
    "buffer": "phone,name\n+972 50-987-6543,דנה\n+44 7700 900123,<b>Alice</b>\nnobody,Eve\n".encode(),
}
