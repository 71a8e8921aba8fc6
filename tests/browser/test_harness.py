"""The harness itself: it sees what goes wrong on a page, and lets nothing pass that nobody expected."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from playwright.async_api import expect

from tests.browser.conftest import Open
from tests.support.axe import check_accessible, violations
from tests.support.browser import SIZES, ChromiumMissing, Problems, find_chromium, require_chromium
from tests.support.serving import serving

pytestmark = pytest.mark.anyio

STRICT = {"Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'"}
GOOD = """<!doctype html><html lang="{lang}"><head><title>A page</title></head>
<body><main><h1>A page</h1>{body}</main></body></html>"""
SIGN_IN = """<form method="post" action="/sign-in"><label>API key <input name="secret" type="password"></label>
<button type="submit">Sign in</button></form>"""
FILES = {"error.js": "console.error('it broke')", "throws.js": "throw new Error('nobody caught me')"}


def _app() -> FastAPI:
    app = FastAPI()

    @app.get("/page", response_class=HTMLResponse)
    def page(body: str = "", lang: str = "en") -> Response:
        return HTMLResponse(GOOD.format(body=body, lang=lang), headers=STRICT)

    @app.get("/file/{name}")
    def file(name: str) -> Response:
        return Response(FILES[name], media_type="text/javascript")

    @app.get("/endless")
    async def endless() -> Response:
        async def lines() -> AsyncIterator[bytes]:
            yield b":\n\n"
            await anyio.sleep_forever()

        return StreamingResponse(lines(), media_type="text/event-stream")

    @app.get("/sign-in")
    def sign_in() -> Response:
        return HTMLResponse(GOOD.format(body=SIGN_IN, lang="en"), headers=STRICT)

    @app.post("/sign-in")
    def signed_in() -> Response:
        answer = RedirectResponse("/page?body=welcome", 303)
        answer.set_cookie("switchboard", "yes", httponly=True, samesite="strict")
        return answer

    @app.get("/favicon.ico")
    def favicon() -> Response:
        return Response(status_code=204)

    return app


@pytest.fixture(scope="module")
async def pages() -> AsyncIterator[str]:
    async with serving(_app()) as served:
        yield served.url


async def _problems(open_page: Open, url: str, body: str) -> list[str]:
    """What is found on such a page; taken out, so that the fixture does not find it again."""
    visit = await open_page(url)
    await visit.go("/page?body=" + body)
    await visit.page.wait_for_load_state("networkidle")
    found = list(visit.problems.found)
    with pytest.raises(AssertionError, match="went wrong"):
        visit.problems.check()
    visit.problems.found.clear()
    return found


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<script src='/file/error.js'></script>", "console: it broke"),
        ("<script src='/file/throws.js'></script>", "uncaught: nobody caught me"),
        ("<script>document.title = 'never'</script>", "policy: "),
        ("<p style='color:red'>", "policy: "),
        ("<img src='/missing.png' alt=''>", "answer: 404 GET /missing.png"),
        ("<script src='http://127.0.0.1:9/x.js'></script>", "policy: "),
    ],
)
async def test_what_goes_wrong_on_a_page_fails_the_test(open_page: Open, pages: str, body: str, said: str) -> None:
    assert any(problem.startswith(said) for problem in await _problems(open_page, pages, body))


async def test_a_page_without_problems_passes(open_page: Open, pages: str) -> None:
    visit = await open_page(pages)
    assert (await visit.go("/page?body=hello")).status == 200
    visit.problems.check()


async def test_what_was_expected_passes_and_what_was_expected_in_vain_does_not(open_page: Open, pages: str) -> None:
    visit = await open_page(pages)
    visit.problems.expect("404 GET /nowhere")
    with pytest.raises(AssertionError, match="should have gone wrong"):
        visit.problems.check()
    await visit.go("/nowhere")
    visit.problems.check()


def test_a_problem_beside_an_expected_one_is_told() -> None:
    problems = Problems(["answer: 401 POST /sign-in", "console: it broke"])
    problems.expect("401 POST /sign-in")
    with pytest.raises(AssertionError, match="it broke") as told:
        problems.check()
    assert "401" not in str(told.value)


async def test_leaving_a_page_that_still_listens_is_no_problem(open_page: Open, pages: str) -> None:
    visit = await open_page(pages)
    await visit.go("/page")
    await visit.page.evaluate("() => new Promise(heard => { new EventSource('/endless').onopen = () => heard() })")
    async with visit.page.expect_event("requestfailed"):
        await visit.go("/page?body=next")
    visit.problems.check()


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize("device", ["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_visitor_has_a_language_a_screen_and_a_taste(
    open_page: Open, pages: str, language: str, device: str, scheme: str
) -> None:
    visit = await open_page(pages, language=language, device=device, scheme=scheme)
    await visit.go("/page")
    seen: dict[str, Any] = await visit.page.evaluate(
        "() => ({ language: navigator.language.slice(0, 2), width: screen.width, "
        "dark: matchMedia('(prefers-color-scheme: dark)').matches })"
    )
    assert seen == {"language": language, "width": SIZES[visit.look.device][0], "dark": scheme == "dark"}


async def test_a_visitor_can_be_signed_in_and_others_are_not(open_page: Open, pages: str) -> None:
    first = await open_page(pages, secret="the key")
    await expect(first.page.locator("main")).to_contain_text("welcome")
    second = await open_page(pages)
    assert [cookie.get("name") for cookie in await first.page.context.cookies()] == ["switchboard"]
    assert await second.page.context.cookies() == []


async def test_axe_finds_a_field_without_a_label_under_a_strict_policy(open_page: Open, pages: str) -> None:
    visit = await open_page(pages)
    await visit.go("/page?body=<input name='nameless'>")
    found = await violations(visit.page)
    assert [violation.rule for violation in found] == ["label"]
    assert "nameless" in str(found[0])
    with pytest.raises(AssertionError, match="keeps people out"):
        await check_accessible(visit.page)


async def test_axe_finds_nothing_on_a_good_page(open_page: Open, pages: str) -> None:
    visit = await open_page(pages)
    await visit.go("/page?body=<label>Name <input name='named'></label>")
    await check_accessible(visit.page)


def test_without_a_chromium_a_laptop_skips_and_ci_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install chromium"):
        require_chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="install chromium"):
        require_chromium()
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(ChromiumMissing, match="/nowhere/chromium"):
        find_chromium()
