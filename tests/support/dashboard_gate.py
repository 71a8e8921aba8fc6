"""A browser before the dashboard's gate: the real routes and store, a few pages of their own, and a clock to turn."""

from types import TracebackType
from typing import Annotated, Any, Self

import httpx
from argon2 import PasswordHasher
from fastapi import APIRouter, File, Form, HTTPException, Request, Response, UploadFile
from fastapi.responses import HTMLResponse, PlainTextResponse

from switchboard.dashboard.access.door import Door
from switchboard.dashboard.access.gate import Gate, visitor_of
from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.sign_in import ShowsPages, sign_in_routes
from switchboard.dashboard.access.signing import Signer
from switchboard.domain.errors import InvalidTransition, StoreUnavailable
from switchboard.store import Store
from switchboard.web.app import create_app
from switchboard.web.auth import Guard
from tests.support.driver import NOON
from tests.support.gateway import OWN_KEY

SECRET = "the-secret-of-these-tests"
PASSWORD = "correct horse battery"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
HTML = {"Accept": "text/html,application/xhtml+xml"}
OWN_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


class PlainPages:
    """Says what a page would have to show."""

    def show(self, request: Request, template: str, /, status: int = 200, **values: object) -> Response:
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        return HTMLResponse(f"{template} nonce={request.state.nonce} {shown}", status)

    def error(self, request: Request, error: Exception, status: int) -> Response:
        return PlainTextResponse(f"{status} {getattr(error, 'code', type(error).__name__)}", status)


class Premises:
    """One installation. Several may share a store, as several machines do."""

    def __init__(
        self, store: Store, *, secret: str = SECRET, api_key: str = OWN_KEY, shown: ShowsPages | None = None
    ) -> None:
        self.now = NOON
        self.store = store
        guard = Guard(store, api_key, 1000, self.clock)
        pages = PlainPages()
        self.gate = Gate(guard, store, Signer(secret), self.clock, pages)
        self.passwords = Passwords(store.sign_ins, self.clock, QUICK)
        door = Door(guard, store.sign_ins, self.passwords, self.clock)
        routers = [*sign_in_routes(self.gate, door, shown or pages), _pages(self.gate), _open_pages(self.gate)]
        self.app = create_app(store, ["orchestrator"], routers)

    def clock(self) -> int:
        return self.now


class Browser:
    """Keeps cookies, follows no redirects, and says where its requests come from unless told otherwise."""

    def __init__(self, premises: Premises, address: str = "192.0.2.1", url: str = "http://switchboard.test") -> None:
        transport = httpx.ASGITransport(premises.app, client=(address, 50_000), raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url=url)
        self.csrf = ""

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers=HTML | headers)

    async def post(self, path: str, headers: dict[str, str] | None = None, **given: Any) -> httpx.Response:
        return await self.http.post(path, headers=HTML | (OWN_ORIGIN if headers is None else headers), **given)

    async def sign_in(self, secret: str = OWN_KEY, then: str = "") -> httpx.Response:
        answer = await self.post("/sign-in", data={"secret": secret, "next": then})
        if answer.status_code == 303:
            self.csrf = (await self.get("/whoami")).json()["csrf"]
        return answer

    async def deed(self, **given: Any) -> httpx.Response:
        return await self.post("/deed", data={"what": "it", "csrf": self.csrf}, **given)

    async def is_in(self) -> bool:
        status = (await self.get("/whoami")).status_code
        assert status in {200, 303}
        return status == 200

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()


def _pages(gate: Gate) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/whoami")
    async def whoami(request: Request) -> dict[str, Any]:
        visitor = visitor_of(request)
        return {"name": visitor.name, "csrf": visitor.csrf, "since": visitor.signed_in_at, "nonce": request.state.nonce}

    @router.post("/deed")
    async def deed(what: Annotated[str, Form()]) -> str:
        return what

    @router.post("/upload")
    async def upload(file: Annotated[UploadFile, File()]) -> int:
        return len(await file.read())

    @router.get("/goes-wrong/{how}")
    async def goes_wrong(how: str, number: int = 0) -> None:
        match how:
            case "refused":
                raise InvalidTransition("worker_1", "stop", "stopped", "it is stopped already")
            case "missing":
                raise HTTPException(404)
            case "store":
                raise StoreUnavailable
        raise RuntimeError("nobody thought of this")

    return router


def _open_pages(gate: Gate) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)

    @router.get("/open")
    async def page(request: Request, response: Response) -> str:
        response.headers["Referrer-Policy"] = "no-referrer"
        return str(request.state.nonce)

    @router.post("/open")
    async def deed() -> str:
        return "done"

    return router
