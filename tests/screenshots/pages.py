"""The one table of what is photographed: a page's name, where it is, and what is done on it first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.browser.steps import settled
from tests.support.browser import Visit

Prepare = Callable[[Visit], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Shot:
    """`path` may name what is in the scene: {session}, {scanning}, {batch}, {message}."""

    name: str
    path: str
    prepare: Prepare | None = None
    signed_in: bool = True


CUSTOMERS = """phone,name,day
+1 202 555 0171,Dana,Tuesday
+44 7700 900871,Oliver,Wednesday
+972 55-000-1871,נועה,Thursday
not a number,Sam,Friday
+1 202 555 0172,,Friday
"""


async def _choose_customers(visit: Visit) -> None:
    """A file of customers, and a text that names them."""
    file = {"name": "customers.csv", "mimeType": "text/csv", "buffer": CUSTOMERS.encode()}
    await visit.page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type] # a dict of that shape
    await visit.page.locator("[name=template]").wait_for()
    await settled(visit.page)
    await visit.page.locator("[name=template]").fill("Hello {name}, your order is ready on {day}.")
    await visit.page.locator("[name=template]").blur()
    await visit.page.get_by_text("Hello Dana, your order is ready on Tuesday.").first.wait_for()
    await visit.page.locator("#composed").evaluate("element => element.scrollIntoView({ block: 'end' })")


async def _try_other_limits(visit: Visit) -> None:
    """Before they are saved: the day they would make."""
    for name, value in {"daily": "240", "delay": "150", "opens": "09:00", "closes": "18:00"}.items():
        await visit.page.locator(f"[name={name}]").fill(value)
    await visit.page.locator("#preview").filter(has_text="09:00").wait_for()
    await settled(visit.page)


async def _follow_the_owners_link(visit: Visit) -> None:
    await visit.page.locator("details:has(form[action$='/scan-link']) > summary").click()
    await visit.page.locator("form[action$='/scan-link'] button").click()
    link = await visit.page.locator("#scan-link-url").input_value()
    await visit.page.goto(link)
    await visit.page.locator(".qr svg").wait_for()


SHOTS = (
    Shot("sign-in", "/sign-in", signed_in=False),
    Shot("overview", "/"),
    Shot("session", "/sessions/{session}"),
    Shot("new-session", "/sessions/new"),
    Shot("link", "/sessions/{scanning}/link"),
    Shot("scan", "/sessions/{scanning}/link", _follow_the_owners_link),
    Shot("proxies", "/proxies"),
    Shot("anti-ban", "/anti-ban"),
    Shot("limits", "/anti-ban/{session}", _try_other_limits),
    Shot("send", "/send"),
    Shot("messages", "/messages"),
    Shot("message", "/messages/{message}"),
    Shot("batches", "/batches"),
    Shot("new-batch", "/batches/new", _choose_customers),
    Shot("batch", "/batches/{batch}"),
    Shot("dead-letters", "/dead-letters"),
    Shot("log", "/log"),
    Shot("status", "/status"),
    Shot("settings", "/settings"),
    Shot("api", "/docs"),
)
