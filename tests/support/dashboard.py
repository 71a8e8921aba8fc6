"""The dashboard as a signed-in person sees it: its real pages over the board's real orchestrator and store.

`async with opened_desk(board) as desk`: `desk.page("/path")` answers the parsed page, `desk.press("/path", field=…)`
what a form does. The board beside it is the world: its workers, its proxies, its clock.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from fastapi import FastAPI

from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.dashboard import DashboardRules, dashboard_routers
from switchboard.dashboard.services import Services, SimulatedPhone
from switchboard.gateway.gateway import gateway_services
from switchboard.gateway.sending import SendRules
from switchboard.settings import Settings
from switchboard.web.app import create_app
from switchboard.web.auth import Guard
from tests.support.board import POLICY, UTC, Board, shows_no_credentials
from tests.support.gateway import OWN_KEY

SECRET = "the-secret-of-these-pages"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ORIGIN = "http://switchboard.test"
_CSRF = re.compile(r'"X-CSRF-Token": "([^"]+)"')
_LINK_MS = 3_600_000


def services_for(board: Board, *, phone: SimulatedPhone | None = None, **changes: Any) -> Services:
    guard = Guard(board.store, OWN_KEY, 1_000_000, board.clock)
    gateway = gateway_services(board.store, POLICY, SendRules(), guard, UTC, board.clock)
    orchestrator = board.orchestrator
    settings = Settings(_env_file=None, data_dir=Path("data"), timezone=UTC)
    given: dict[str, Any] = {
        "store": board.store,
        "policy": POLICY,
        "zone": UTC,
        "clock": board.clock,
        "reading": gateway.reading,
        "changing": gateway.changing,
        "sending": gateway.sending,
        "overview": orchestrator.overview,
        "views": orchestrator.views,
        "sessions": orchestrator.service,
        "proxy_care": orchestrator.care,
        "proxy_views": orchestrator.proxy_views,
        "scan_links": ScanLinks(Signer(SECRET), board.clock, _LINK_MS),
        "passwords": Passwords(board.store.sign_ins, board.clock, QUICK),
        "condition": orchestrator.condition(board.folder, ["orchestrator"]),
        "configuration": settings.effective(),
        "defaults": settings.defaults(),
        "phone": phone,
    }
    return Services(**(given | changes))


def dashboard_app(board: Board, rules: DashboardRules | None = None, **changes: Any) -> FastAPI:
    guard = Guard(board.store, OWN_KEY, 1_000_000, board.clock)
    rules = rules or DashboardRules(SECRET)
    routers = dashboard_routers(services_for(board, **changes), guard, rules, board.stopping)
    return create_app(board.store, ["orchestrator"], routers)


class Shown(HTMLParser):
    """What a page says: its text without scripts, its links and forms."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.response = response
        self.html = response.text
        self.links: list[str] = []
        self.actions: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self._texts: list[str] = []
        self._hidden = 0
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.attributes.append({"tag": tag, **given})
        if tag in {"script", "style"}:
            self._hidden += 1
        if tag == "a":
            self.links.append(given.get("href") or "")
        if tag == "form":
            self.actions.append(given.get("action") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self._texts.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self._texts)

    @property
    def status(self) -> int:
        return self.response.status_code


@dataclass
class Desk:
    board: Board
    http: httpx.AsyncClient
    csrf: str = ""

    async def sign_in(self) -> None:
        answer = await self.http.post("/sign-in", data={"secret": OWN_KEY}, headers={"Origin": ORIGIN})
        assert answer.status_code == 303, answer.text
        found = _CSRF.search((await self.http.get("/proxies", headers={"Accept": "text/html"})).text)
        assert found
        self.csrf = found.group(1)

    async def page(self, path: str, *, language: str = "en", status: int = 200) -> Shown:
        headers = {"Accept": "text/html", "Accept-Language": language}
        answer = await self.http.get(path, headers=headers)
        assert answer.status_code == status, f"{answer.status_code} {answer.headers} {answer.text[-2000:]}"
        shows_no_credentials(answer.text)
        return Shown(answer)

    async def press(
        self, path: str, *, status: int = 200, files: Any = None, language: str = "en", **fields: Any
    ) -> Shown:
        """As htmx does it: the answer is a toast, a part of a page, or (HX-Redirect) where to go."""
        headers = {"HX-Request": "true", "X-CSRF-Token": self.csrf, "Origin": ORIGIN, "Accept-Language": language}
        answer = await self.http.post(path, data=fields, files=files, headers=headers)
        assert answer.status_code == status, f"{answer.status_code} {answer.text[-2000:]}"
        shows_no_credentials(answer.text)
        return Shown(answer)


@asynccontextmanager
async def opened_desk(board: Board, **changes: Any) -> AsyncIterator[Desk]:
    transport = httpx.ASGITransport(dashboard_app(board, **changes), client=("192.0.2.1", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=30) as http:
        desk = Desk(board, http)
        await desk.sign_in()
        yield desk
