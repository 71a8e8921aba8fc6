"""Who gets in, and who does not: strangers, other sites, and pages of ours without their token."""

import re
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.async_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.steps import agree, says
from tests.support.browser import Visit
from tests.support.premises import API_KEY
from tests.support.real_installation import RealInstallation
from tests.support.serving import serving

pytestmark = pytest.mark.anyio

BEHIND_THE_DOOR = (
    "/", "/sessions/new", "/sessions/worker_1", "/sessions/worker_1/link", "/proxies", "/anti-ban", "/send",
    "/messages", "/batches", "/batches/new", "/dead-letters", "/log", "/status", "/settings",
)  # fmt: skip
A_PROXY = "socks5h://a:b@198.51.100.7:1080"


@pytest.fixture(scope="module")
async def other_site() -> AsyncIterator[str]:
    """On another port of the same host: browsers send our cookie along, so only Switchboard itself can refuse."""
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    def page(target: str) -> str:
        return f"""<!doctype html><html lang="en"><head><title>Win a prize</title><link rel="icon" href="data:,"></head>
            <body><form method="post" action="{target}/proxies"><input name="url" value="{A_PROXY}"><button>Win</button>
            </form></body></html>"""

    @app.get("/frame", response_class=HTMLResponse)
    def frame(target: str) -> str:
        return f"""<!doctype html><html lang="en"><head><title>A frame</title><link rel="icon" href="data:,"></head>
            <body><iframe title="ours" src="{target}/"></iframe></body></html>"""

    async with serving(app) as served:
        yield served.url


async def _proxies(it: RealInstallation) -> int:
    return len((await it.ask("GET", "/api/proxies"))["items"])


async def test_a_person_signs_in_comes_where_they_wanted_to_and_signs_out(
    installation: RealInstallation, open_page: Open
) -> None:
    visit = await open_page(installation.url)
    page = visit.page
    await visit.go("/proxies")
    await expect(page).to_have_url(re.compile(r"/sign-in\?next=/proxies$"))
    await expect(page.get_by_label("API key or password")).to_be_focused()

    visit.problems.expect("401 POST /sign-in")
    await page.keyboard.type("sk_not the key")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("This is neither the API key nor the password.")
    assert await page.get_by_label("API key or password").input_value() == "", "a secret is not sent back"

    await page.keyboard.type(API_KEY)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{installation.url}/proxies")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Proxies")
    [cookie] = [one for one in await page.context.cookies() if one.get("name") == "switchboard"]
    assert cookie.get("httpOnly")
    assert cookie.get("sameSite") == "Lax"

    await page.get_by_role("button", name="Sign out").click()
    await expect(page).to_have_url(f"{installation.url}/sign-in")
    await page.go_back()
    await expect(page).to_have_url(re.compile("/sign-in"))


async def test_who_was_signed_out_is_told_and_keeps_what_was_typed(visit: Visit) -> None:
    page = visit.page
    await visit.go("/settings")
    await page.get_by_label("New password").fill("half of a new one")
    await page.context.clear_cookies()
    visit.problems.expect("401 POST /settings/sign-out-everywhere")
    await page.get_by_role("button", name="Sign out everywhere").click()
    await agree(page, "Sign out everywhere?", "Sign out everywhere")
    await says(page, "You are signed out.")
    assert await page.get_by_label("New password").input_value() == "half of a new one"
    await page.get_by_role("link", name="Sign in again").click()
    await expect(page).to_have_url(re.compile(r"/sign-in\?next=/settings$"))


async def test_a_stranger_sees_no_page_and_changes_nothing(installation: RealInstallation, open_page: Open) -> None:
    page = (await open_page(installation.url)).page
    for path in BEHIND_THE_DOOR:
        answer = await page.request.get(path, headers={"Accept": "text/html"}, max_redirects=0)
        assert (answer.status, answer.headers.get("location", "").partition("?")[0]) == (303, "/sign-in"), path
    before = await _proxies(installation)
    refused = await page.request.post("/proxies", form={"url": A_PROXY}, headers={"Origin": installation.url})
    assert refused.status == 401
    for stream in ("/live", "/log/stream"):
        assert (await page.request.get(stream, headers={"Accept": "text/event-stream"})).status == 401
    assert await _proxies(installation) == before


async def test_another_site_can_do_nothing_with_a_persons_cookie(
    installation: RealInstallation, visit: Visit, other_site: str
) -> None:
    before = await _proxies(installation)
    visit.problems.expect("403 POST /proxies")
    await visit.page.goto(f"{other_site}/?target={installation.url}")
    async with visit.page.expect_request("**/proxies") as sent:
        await visit.page.get_by_role("button", name="Win").click()
    assert "switchboard=" in ((await (await sent.value).all_headers()).get("cookie") or ""), "or this proves nothing"
    await expect(visit.page.locator("main")).to_contain_text("This request did not come from this page")
    assert await _proxies(installation) == before


async def test_another_site_cannot_show_it_in_a_frame(
    installation: RealInstallation, visit: Visit, other_site: str
) -> None:
    visit.problems.expect("frame-ancestors", "ERR_BLOCKED_BY_RESPONSE GET /")
    await visit.page.goto(f"{other_site}/frame?target={installation.url}")
    await expect(visit.page.frame_locator("iframe").get_by_role("main")).to_have_count(0)


async def test_a_request_of_our_own_page_without_its_token_is_refused(
    installation: RealInstallation, visit: Visit
) -> None:
    before = await _proxies(installation)
    visit.problems.expect("403 POST /proxies")
    await visit.go("/proxies")
    assert await _post(visit.page) == 403
    assert await _post(visit.page, "x" * 43) == 403
    assert await _proxies(installation) == before


async def _post(page: Page, token: str = "") -> int:
    given = {"url": A_PROXY} | ({"csrf": token} if token else {})
    call = "given => fetch('/proxies', { method: 'POST', body: new URLSearchParams(given) }).then(one => one.status)"
    return int(await page.evaluate(call, given))
