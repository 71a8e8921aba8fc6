"""What people do on the pages, whatever the test is about, and how a test knows that a page kept itself true."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import segno
from PIL import Image
from playwright.async_api import Locator, Page, expect

from tests.support.real_installation import RealInstallation
from tests.support.serving import until

WHILE_A_WORKER_STARTS_MS = 45_000
EVIL_NAME = "<img src=x onerror=alert(1)>"
_BORDER = 2  # modules around a code, drawn with it


@asynccontextmanager
async def without_reload(*pages: Page) -> AsyncIterator[None]:
    """What is seen inside of this, the pages got by themselves: a mark on their windows is still there at the end."""
    for page in pages:
        await page.evaluate("() => { window.neverReloaded = true }")
    yield
    for page in pages:
        assert await page.evaluate("() => window.neverReloaded === true"), f"{page.url} was loaded anew"


async def is_live(page: Page) -> None:
    """Its stream is open: from here on it is told what changes."""
    await expect(page.locator("body")).to_have_attribute("data-connection", "live")


async def settled(page: Page) -> None:
    """What was just put into it is awake: htmx listens to its fields."""
    await expect(page.locator(".htmx-added")).to_have_count(0)


async def ask_for_code(page: Page, name: str = "") -> str:
    """A new session by the form, up to the code on the screen. Its id."""
    await page.goto("/sessions/new")
    if name:
        await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Show the code").click()
    await page.wait_for_url("**/sessions/*/link")
    await code_on(page)
    return page.url.split("/")[-2]


async def code_on(page: Page) -> Locator:
    code = page.locator(".qr svg")
    await expect(code).to_be_visible(timeout=WHILE_A_WORKER_STARTS_MS)
    return code


async def is_scannable(it: RealInstallation, page: Page, session: str) -> None:
    """The pixels on the screen are the code that WhatsApp waits for now, dark on light, as a camera needs it."""

    async def same() -> bool:  # unless a new one comes between the two looks
        wanted = segno.make_qr(str((await it.ask("GET", f"/api/sessions/{session}/qr"))["qr"]), error="l")
        return _modules(await (await code_on(page)).screenshot(), len(wanted.matrix)) == _bordered(wanted)

    await until(same, it.PATIENCE_S)


def _modules(png: bytes, size: int) -> list[list[bool]]:
    """Which modules are dark, by the pixel in the middle of each."""
    picture = Image.open(BytesIO(png)).convert("L")
    side = size + 2 * _BORDER
    middles = [(n + 0.5) / side for n in range(side)]
    return [[_value(picture, x, y) < 100 for x in middles] for y in middles]


def _value(picture: Image.Image, x: float, y: float) -> float:
    value = picture.getpixel((int(x * picture.width), int(y * picture.height)))
    assert isinstance(value, int | float)
    return value


def _bordered(code: segno.QRCode) -> list[list[bool]]:
    return [[bool(module) for module in row] for row in code.matrix_iter(border=_BORDER)]


async def says(page: Page, text: str) -> None:
    """In the corner, and for the screen reader."""
    await expect(page.locator("#toasts")).to_contain_text(text)


async def agree(page: Page, question: str, yes: str | None = None) -> None:
    """To what is asked before something that can't be undone, by the button that says what will happen."""
    asked = page.locator("dialog#confirm")
    await expect(asked).to_contain_text(question)
    button = asked.locator("button[data-yes]")
    await expect(button).to_have_text(yes or re.compile(r"\w"))
    await button.click()
    await expect(asked).to_be_hidden()


async def no_scrolling_sideways(page: Page) -> None:
    """By the size of the screen: a phone's browser makes the window as wide as what is in it."""
    view = page.viewport_size
    assert view is not None
    width = await page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= view["width"], f"{page.url} is {width} wide on a screen of {view['width']}"
