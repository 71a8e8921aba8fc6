"""axe-core on a page as it stands: what would keep people out who use a screen reader, a keyboard or little contrast.

Its source goes in through the debugger's door, so the page's content security policy stays as strict as it is.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from playwright.async_api import Page

from switchboard.runners.node import ROOT

SOURCE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
_RUN = "axe.run(document, { resultTypes: ['violations'], iframes: false, preload: false })"


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    impact: str
    help: str
    element: str

    def __str__(self) -> str:
        return f"{self.rule} ({self.impact}): {self.help}\n    {self.element}"


async def violations(page: Page) -> list[Violation]:
    """The serious and critical ones, one for each element."""
    debugger = await page.context.new_cdp_session(page)
    try:
        if not await _evaluated(debugger, "'axe' in window"):
            await _evaluated(debugger, f"{_source()};0")
        found: dict[str, Any] = await _evaluated(debugger, _RUN)
    finally:
        await debugger.detach()
    return [
        Violation(rule["id"], rule["impact"], rule["help"], _element(node))
        for rule in found["violations"]
        for node in rule["nodes"]
        if rule["impact"] in GRAVE
    ]


async def check_accessible(page: Page) -> None:
    found = await violations(page)
    assert not found, f"{page.url} keeps people out:\n  " + "\n  ".join(map(str, found))


async def _evaluated(debugger: Any, expression: str) -> Any:
    answer = await debugger.send(
        "Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True}
    )
    trouble = answer.get("exceptionDetails")
    assert trouble is None, f"axe did not run: {trouble}"
    return answer["result"].get("value")


@cache
def _source() -> str:
    assert SOURCE.exists(), f"{SOURCE} is not there: `make node` installs it"
    return SOURCE.read_text("utf-8")


def _element(node: dict[str, Any]) -> str:
    """Where it is, how it is written, and what axe measured (the contrast, for one)."""
    html = str(node["html"])
    why = [check["message"] for group in ("any", "all", "none") for check in node[group]]
    return f"{' '.join(map(str, node['target']))}: {html[:160]}\n    {'; '.join(why)[:300]}"
