"""One browser for each test process, one real installation for each test file, and pages that may not go wrong.

Playwright's async API, since the installation is async too: anyio keeps one event loop for as long as a fixture of
wider scope is open, so a browser and many tests share it. (The sync API leaves a running loop in the thread, where no
other anyio test could run.) `package` scope gives the loop back to the other tests once this folder is done.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.support.browser import Look, Visit, launched, require_chromium, visiting
from tests.support.premises import API_KEY
from tests.support.real_installation import RealInstallation, real_installation

Open = Callable[..., Awaitable[Visit]]
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file share an installation, so they stay in one process."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with launched(require_chromium()) as browser:
        yield browser


@asynccontextmanager
async def watched_installation(proxies: int = 2, **settings: str) -> AsyncIterator[RealInstallation]:
    """None of its pages may break, whoever asked for it."""
    require_chromium()
    async with real_installation(proxies, start=True, **settings) as it:
        yield it
        broken = [line for line in it.program.log.splitlines() if "http.unexpected" in line]
        assert not broken, "\n".join(broken)


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[RealInstallation]:
    """The tests of a file share it, each with sessions of its own. A file that needs another one has its own."""
    async with watched_installation() as it:
        yield it


@pytest.fixture
async def open_page(browser: Browser) -> AsyncIterator[Open]:
    """`await open_page(url, language="he", device="phone")`: any number of visitors, each with a look of their own.
    At the end none of their pages may have had a problem that was not expected."""
    visits: list[Visit] = []
    async with AsyncExitStack() as stack:

        async def open_page(url: str, *, secret: str | None = None, javascript: bool = True, **look: Any) -> Visit:
            opened = visiting(browser, url, Look(**look), secret=secret, javascript=javascript)
            visits.append(await stack.enter_async_context(opened))
            return visits[-1]

        yield open_page
    for visit in visits:
        visit.problems.check()


@pytest.fixture
def enter(installation: RealInstallation, open_page: Open) -> Open:
    """`await enter(language="he")`: a visitor of the file's installation, signed in."""
    return partial(open_page, installation.url, secret=API_KEY)


@pytest.fixture
async def visit(enter: Open) -> Visit:
    """Signed in, in English, at a desk."""
    return await enter()


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit.page
