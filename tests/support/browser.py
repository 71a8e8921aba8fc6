"""The system's Chromium, driven by Playwright, and what a person in front of it sees go wrong.

Every page is watched: an error in the console, a breach of the content security policy, an uncaught exception or a
request that failed is a problem, and one that was not expected fails the test.
"""

import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, async_playwright
from playwright.async_api import Error as PlaywrightError

Language = Literal["en", "he"]
Scheme = Literal["light", "dark"]
Device = Literal["desktop", "phone"]

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCALES: Mapping[Language, str] = {"en": "en-US", "he": "he-IL"}
SIZES: Mapping[Device, tuple[int, int]] = {"desktop": (1280, 800), "phone": (390, 844)}
PATIENCE_MS = 10_000
# The browser's and htmx's words for an answer, or for none, that is noted by itself.
_SAID_TWICE = ("Failed to load resource", "Response Status Error Code", "htmx:send", "htmx:afterRequest")
# Pages look anew every 15 s, whatever they are told (live.ts): that would hide a part that is told nothing.
_NO_LOOK_NOW_AND_THEN = """(set => {
  window.setInterval = (call, ms, ...rest) => ms === 15000 ? 0 : set(call, ms, ...rest)
})(window.setInterval)"""
_GIVEN_UP = "net::ERR_ABORTED"  # by the page: it was left while something was still on its way


class ChromiumMissing(Exception):
    """The message says what to do."""


def find_chromium() -> str:
    named = os.environ.get("CHROMIUM")
    if named and not shutil.which(named):
        raise ChromiumMissing(f"CHROMIUM names {named}, which is not a program")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise ChromiumMissing("install chromium to run the browser tests")
    return found


def require_chromium() -> str:
    """On a laptop without one the test is skipped with the reason; where CI=true it fails."""
    try:
        return find_chromium()
    except ChromiumMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@asynccontextmanager
async def launched(program: str) -> AsyncIterator[Browser]:
    """Nothing of it outlives this."""
    options = ["--disable-dev-shm-usage", "--font-render-hinting=none"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program,
            headless=True,
            args=options,
            chromium_sandbox=os.geteuid() != 0,  # root can't have one
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(frozen=True, slots=True)
class Look:
    """Who looks, and at what size: `str` gives `en-light-desktop`."""

    language: Language = "en"
    scheme: Scheme = "light"
    device: Device = "desktop"

    def __str__(self) -> str:
        return f"{self.language}-{self.scheme}-{self.device}"


@dataclass  # without slots: Playwright leaves marks on whoever listens
class Problems:
    """What went wrong on a page. What a test provokes it announces first, in a few words of the problem's text."""

    found: list[str] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)

    def expect(self, *words: str) -> None:
        """Any number of problems with these words is fine, but there must be one."""
        self._expected += words

    def check(self) -> None:
        bad = [problem for problem in self.found if not any(words in problem for words in self._expected)]
        assert not bad, "on the page went wrong:\n  " + "\n  ".join(bad)
        missed = [words for words in self._expected if not any(words in problem for problem in self.found)]
        assert not missed, f"this should have gone wrong, and did not: {missed}"

    def watch(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        page.on("crash", lambda _: self.found.append("the page crashed"))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type != "error" or message.text.startswith(_SAID_TWICE):
            return
        kind = "policy" if "Content Security Policy" in message.text else "console"
        self.found.append(f"{kind}: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.failure != _GIVEN_UP:
            self.found.append(f"request: {request.failure} {request.method} {_path(request.url)}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.found.append(f"answer: {response.status} {response.request.method} {_path(response.url)}")


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


@dataclass(frozen=True, slots=True)
class Visit:
    """One person with one page of one installation."""

    url: str
    page: Page
    problems: Problems
    look: Look

    async def go(self, path: str) -> Response:
        answer = await self.page.goto(path)
        assert answer is not None, path
        return answer

    async def sign_in(self, secret: str) -> None:
        """As a person does: types the API key, and is let in."""
        await self.go("/sign-in")
        field = self.page.locator("input[name=secret]")
        await field.fill(secret)
        await field.press("Enter")
        await self.page.wait_for_url(re.compile(r"^(?!.*/sign-in)"))


@asynccontextmanager
async def visiting(
    browser: Browser, url: str, look: Look | None = None, *, secret: str | None = None, javascript: bool = True
) -> AsyncIterator[Visit]:
    """A visitor with cookies of their own, signed in if there is a secret. Whoever opens this checks the problems."""
    look = look or Look()
    context = await _context(browser, url, look, javascript)
    try:
        page = await context.new_page()
        visit = Visit(url, page, Problems(), look)
        visit.problems.watch(page)
        if secret is not None:
            await _let_in(visit, secret)
        yield visit
    finally:
        await context.close()


async def _let_in(visit: Visit, secret: str) -> None:
    try:
        await visit.sign_in(secret)
    except PlaywrightError as error:
        error.add_note(f"the page was {visit.page.url}, and went wrong: {visit.problems.found}")
        raise


async def _context(browser: Browser, url: str, look: Look, javascript: bool) -> BrowserContext:
    width, height = SIZES[look.device]
    phone = look.device == "phone"
    context = await browser.new_context(
        base_url=url,
        locale=LOCALES[look.language],
        color_scheme=look.scheme,
        viewport={"width": width, "height": height},
        has_touch=phone,
        is_mobile=phone,
        java_script_enabled=javascript,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    await context.add_init_script(_NO_LOOK_NOW_AND_THEN)
    return context
