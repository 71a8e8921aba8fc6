"""The orchestrator as its callers, its workers and its proxies see it: the real app behind real HTTP over the real
store, real SOCKS5 servers on loopback, workers in memory, and a clock that stands still until a test moves it.

Every answer is held against the app's own OpenAPI document, and must not show a proxy's credentials.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from fastapi import FastAPI
from redis.asyncio import Redis

from switchboard.domain.clock import Clock
from switchboard.domain.hours import ALWAYS
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.retry import RetryRules
from switchboard.domain.sessions import Session
from switchboard.domain.trust import STANDARD, TrustTable
from switchboard.orchestrator.orchestrator import Orchestrator, OrchestratorRules
from switchboard.orchestrator.sessions import SessionServiceRules
from switchboard.runners.memory import MemoryRunner, MemoryWorld
from switchboard.runners.spec import WorkerSpec
from switchboard.store import Store, open_store
from switchboard.store.client import connect
from switchboard.store.sessions import SessionRules
from switchboard.store.store import StoreRules
from switchboard.web.app import create_app
from switchboard.web.auth import Guard
from switchboard.web.signatures import sign, worker_secret
from tests.support.driver import NOON
from tests.support.gateway import OWN_KEY, Document, check_error_shape
from tests.support.places import audit
from tests.support.serving import Served, serving
from tests.support.socks5 import Socks5Server, socks5_server

UTC = ZoneInfo("UTC")
MASTER = "the master secret of these tests"
USER, PASSWORD = "us3r-never-shown", "p4ss/never:shown"
WRITTEN = f"{USER}:p4ss%2Fnever%3Ashown"
CREDENTIALS = (USER, PASSWORD, "p4ss", "never%3Ashown")
WHATSAPP = ("web.whatsapp.com", 443)
PHONES = [f"97250000000{n}" for n in range(10)]
POLICY = Policy(TrustTable(STANDARD), RecipientRules(3, ALWAYS))
INTERVAL = 2_000
SCAN_MS = 300_000


def rules_for(folder: Path, **changes: Any) -> OrchestratorRules:
    rules = OrchestratorRules(
        policy=POLICY,
        retries=RetryRules(),
        zone=UTC,
        sessions_dir=folder,
        webhook_url="http://127.0.0.1:3000/api/webhook",
        webhook_secret=MASTER,
        service=SessionServiceRules(SCAN_MS, patience_s=0),
        probe_timeout_s=5,
    )
    return replace(rules, **changes)


def direct_rules(folder: Path, **changes: Any) -> OrchestratorRules:
    """ALLOW_DIRECT=true."""
    rules = rules_for(folder, **changes)
    return replace(
        rules, service=replace(rules.service, allow_direct=True), fleet=replace(rules.fleet, allow_direct=True)
    )


def orchestrator_app(store: Store, orchestrator: Orchestrator, clock: Clock, per_minute: int = 1_000_000) -> FastAPI:
    return create_app(store, ["orchestrator"], orchestrator.routers(Guard(store, OWN_KEY, per_minute, clock)))


@cache
def document() -> Document:
    """It is the same for every app, and is made without asking a store."""
    nowhere = open_store("unix:///nowhere/s", "", StoreRules(UTC))
    runner = MemoryRunner(MemoryWorld(), clock=lambda: 0)
    orchestrator = Orchestrator(nowhere, runner, rules_for(Path("/nowhere")), lambda: 0, asyncio.Event())
    return Document(orchestrator_app(nowhere, orchestrator, lambda: 0))


@dataclass
class Board:
    store: Store
    client: Redis
    prefix: str
    folder: Path
    stack: AsyncExitStack
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    now: int = NOON
    world: MemoryWorld = field(default_factory=MemoryWorld)
    socks: dict[str, Socks5Server] = field(default_factory=dict)
    whatsapp: tuple[str, int] = ("", 0)

    orchestrator: Orchestrator = field(init=False)
    served: Served = field(init=False)
    http: httpx.AsyncClient = field(init=False)

    def clock(self) -> int:
        return self.now

    # --- as an API caller ----------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Any request; `key` for another API key than the owner's, None for no key at all."""
        if "key" in given:
            given["headers"] = {"X-API-Key": given.pop("key") or "", **given.get("headers", {})}
        response = await self.http.request(method, path, **given)
        shows_no_credentials(response.text)
        check(response)
        return response

    async def get(self, path: str, **given: Any) -> Any:
        return good(await self.ask("GET", path, **given))

    async def post(self, path: str, body: object = None, **given: Any) -> Any:
        return good(await self.ask("POST", path, **({} if body is None else {"json": body}), **given))

    async def delete(self, path: str, **given: Any) -> Any:
        return good(await self.ask("DELETE", path, **given))

    async def provision(self, **body: object) -> str:
        """The id of a new session."""
        return str((await self.post("/api/sessions/provision", body))["sessionId"])

    async def show(self, session: str) -> dict[str, Any]:
        return dict(await self.get(f"/api/sessions/{session}"))

    async def command(self, session: str, command: str, body: object = None) -> dict[str, Any]:
        return dict(await self.post(f"/api/sessions/{session}/{command}", body))

    async def key(self, *scopes: str, sessions: tuple[str, ...] = (), per_minute: int = 1_000_000) -> str:
        return (await self.store.api_keys.create("k", frozenset(scopes), frozenset(sessions), per_minute))[1]

    # --- as a worker ---------------------------------------------------------------------------------------------

    async def signed(self, session: str, path: str, body: object, **headers: str) -> httpx.Response:
        content = json.dumps(body).encode()
        return await self.http.post(path, content=content, headers=signature(session, content) | headers)

    async def tell(
        self,
        session: str,
        kind: str,
        data: Mapping[str, object],
        at: int | None = None,
        number: tuple[str, int] | None = None,
    ) -> httpx.Response:
        body = {"sessionId": session, "type": kind, "timestamp": self.now if at is None else at, "data": data}
        if number:
            body |= {"stream": number[0], "sequence": number[1]}
        response = await self.signed(session, "/api/webhook", body)
        assert response.status_code == 200, response.text
        return response

    async def qr(self, session: str, text: str = "2@qr", expires_in: int = 60_000) -> None:
        await self.tell(session, "QR_CODE", {"qr": text, "expiresAt": self.now + expires_in})

    async def connected(self, session: str, phone: str, **given: Any) -> None:
        data = {"phoneNumber": phone, "jid": f"{phone}:1@s.whatsapp.net", "fingerprint": "Switchboard"}
        await self.tell(session, "CONNECTED", data, **given)

    async def disconnected(self, session: str, reason: str, **given: Any) -> None:
        await self.tell(session, "DISCONNECTED", {"reason": reason}, **given)

    async def claim(self, session: str, **body: object) -> dict[str, Any]:
        whole = {"sessionId": session, "instance": "instance-one", "waitMs": 0, **body}
        response = await self.signed(session, f"/api/worker/sessions/{session}/outbox/claim", whole)
        assert response.status_code == 200, response.text
        return dict(response.json())

    # --- the world around ----------------------------------------------------------------------------------------

    async def socks5(self, user: str = USER, password: str = PASSWORD) -> tuple[Socks5Server, str]:
        """A proxy that works and leads to WhatsApp, not in the pool yet; and its URL."""
        server = await self.stack.enter_async_context(socks5_server(user, password, {WHATSAPP: self.whatsapp}))
        return server, f"socks5h://{WRITTEN}@127.0.0.1:{server.port}"

    async def proxy(self) -> str:
        """The id of a new one in the pool."""
        server, url = await self.socks5()
        proxy = str((await self.post("/api/proxies", {"url": url}))["proxyId"])
        self.socks[proxy] = server
        return proxy

    async def fill(self, proxy: str, places: int = 4) -> list[str]:
        """Sessions that hold its places."""
        return [await self.provision(proxy=proxy) for _ in range(places)]

    # --- time ----------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Rounds of the fleet until nothing more is to be done at this moment."""
        await settle(self, self.orchestrator.fleet.round, self.orchestrator.fleet.settled)

    async def up(self, ms: int = INTERVAL) -> None:
        """Some time passes, and the fleet does what is due."""
        self.now += ms
        await self.settle()

    async def all_up(self) -> None:
        """Until every start that had to wait for its turn was made."""
        before: tuple[object, ...] = ()
        while before != (before := tuple(sorted(self.world.workers))) or not before:
            await self.up()

    async def running(self, **body: object) -> str:
        """A session whose worker was started."""
        session = await self.provision(**body)
        await self.up()
        assert self.worker(session) is not None
        return session

    async def linked(self, phone: str = PHONES[1], **body: object) -> str:
        """A connected session."""
        session = await self.running(**body)
        await self.connected(session, phone)
        return session

    def worker(self, session: str) -> WorkerSpec | None:
        found = self.world.workers.get(session)
        return self.world.specs[session] if found and found.running else None

    async def look(self, session: str) -> Session:
        return await self.store.sessions.find(session)

    async def told(self, kind: str | None = None) -> list[dict[str, str]]:
        """All that was told to those who follow, or that of one type."""
        stream: Any = await self.client.xrange(self.prefix + "events")
        return [fields for _, fields in stream if kind in (None, fields["type"])]

    async def on(self, proxy: str) -> set[str]:
        return set((await self.store.proxies.find(proxy)).sessions)


async def settle(board: Board, one_round: Callable[[], Awaitable[float]], done: Callable[[], Awaitable[None]]) -> None:
    for _ in range(200):
        before = (await board.store.sessions.all(), dict(board.world.workers))
        await one_round()
        await done()
        if before == (await board.store.sessions.all(), dict(board.world.workers)):
            return
    raise AssertionError("the fleet does not come to rest")


def next_orchestrator(board: Board, world: MemoryWorld | None = None, name: str = "orchestrator") -> Orchestrator:
    """What is started after this one was killed; with a new world if the whole machine was restarted."""
    if world is not None:
        board.world = world
    runner = MemoryRunner(board.world, clock=board.clock)
    return Orchestrator(board.store, runner, rules_for(board.folder, name=name), board.clock, asyncio.Event())


async def rounds(board: Board, orchestrator: Orchestrator) -> None:
    await settle(board, orchestrator.fleet.round, orchestrator.fleet.settled)


def signature(session: str, content: bytes) -> dict[str, str]:
    return sign(
        worker_secret(MASTER, session), content, message_id=f"msg_{secrets.token_hex(8)}", timestamp=int(time.time())
    )


def shows_no_credentials(text: str) -> None:
    """No credential of a proxy is in it."""
    for secret in CREDENTIALS:
        assert secret not in text, f"shows {secret}: {text}"


def check(response: httpx.Response) -> None:
    """The answer is one that the document lists, in the shape it says."""
    if response.headers.get("content-type", "").startswith("application/json"):
        document().check(response)
    else:
        assert response.status_code == 200


def good(response: httpx.Response) -> Any:
    assert response.status_code in {200, 201}, f"{response.status_code} {response.text}"
    return response.json()


def refused(response: httpx.Response, status: int, error: str, sentence: str = "", /, **details: object) -> None:
    """The answer is this error, says so in this sentence, with at least these details."""
    check_error_shape(response)
    body = response.json()
    assert (response.status_code, body["error"]) == (status, error), response.text
    assert sentence in body["message"], body["message"]
    assert details.items() <= body.items(), body


@asynccontextmanager
async def opened_board(
    valkey_url: str, prefix: str, folder: Path, rules: OrchestratorRules | None = None, per_phone: int = 4
) -> AsyncIterator[Board]:
    async with AsyncExitStack() as stack:
        store = open_store(valkey_url, prefix, StoreRules(UTC, sessions=SessionRules(per_phone=per_phone)))
        stack.push_async_callback(store.close)
        client = connect(valkey_url)
        stack.push_async_callback(client.aclose)
        board = Board(store, client, prefix, folder, stack)
        board.whatsapp = await _listener(stack)
        runner = MemoryRunner(board.world, clock=board.clock)
        board.orchestrator = Orchestrator(store, runner, rules or rules_for(folder), board.clock, board.stopping)
        stack.push_async_callback(board.orchestrator.fleet.abandon)
        board.served = await stack.enter_async_context(
            serving(orchestrator_app(store, board.orchestrator, board.clock))
        )
        board.http = await stack.enter_async_context(
            httpx.AsyncClient(base_url=board.served.url, headers={"X-API-Key": OWN_KEY}, timeout=30, trust_env=False)
        )
        yield board
        await audit(client, prefix)


async def _listener(stack: AsyncExitStack) -> tuple[str, int]:
    """What the proxies lead to: it takes a connection, and ends it."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    stack.push_async_callback(server.wait_closed)
    stack.callback(server.close)
    host, port = server.sockets[0].getsockname()
    return host, port


@asynccontextmanager
async def running(*works: Awaitable[None]) -> AsyncIterator[None]:
    """What serves for as long as this lasts."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
