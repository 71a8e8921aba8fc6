"""The whole of it as real processes: `switchboard up`, a store, and workers that speak the protocol."""

import asyncio
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_IMODE
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from switchboard.store import Store, open_store
from switchboard.store.server import EmbeddedStore
from switchboard.store.store import StoreRules
from switchboard.web.signatures import worker_secret
from tests.support.process import Switchboard, running
from tests.support.scripted_worker import Ack, AckThenRead, Claimed, Outcome, ScriptedWorker
from tests.support.serving import free_port, until
from tests.support.valkey import start_valkey

pytestmark = pytest.mark.anyio

API_KEY = "sk_of-this-test"
MASTER = "the master secret of this test"
PHONES = {"worker_1": "972500000001", "worker_2": "972500000002"}
QUICK = {"daily": 1000, "perMinute": 120, "baseDelayMs": 20, "jitterMs": 10, "hours": "00:00-24:00"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="sb-") as made:
        yield Path(made)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url, "switchboard:", StoreRules(ZoneInfo("UTC")))
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def worker(url: str, session: str, outcome: Outcome) -> AsyncIterator[ScriptedWorker]:
    """Connected, and not at work yet."""

    def script(message: Claimed, attempt: int) -> Outcome:
        return outcome

    async with ScriptedWorker(url, session, worker_secret(MASTER, session), script) as scripted:
        await scripted.connect(PHONES[session])
        yield scripted


@asynccontextmanager
async def at_work(*workers: ScriptedWorker) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


# On its own.


def test_the_first_start_shows_a_key_once_and_everything_ends_with_it(folder: Path) -> None:
    port = free_port()
    with running(folder, port) as first:
        key = first.api_key
        assert key is not None
        assert f"http://localhost:{port}" in first.shown
        assert httpx.get(f"{first.url}/health").json() == {
            "status": "ok",
            "parts": ["dispatcher", "gateway", "orchestrator"],
            "store": "ok",
        }
        assert httpx.get(f"{first.url}/api/v1/stats").status_code == 401
        assert httpx.get(f"{first.url}/api/v1/stats", headers={"X-API-Key": key}).status_code == 200
        secrets = folder / "data" / "secrets.json"
        assert (S_IMODE(secrets.stat().st_mode), S_IMODE(secrets.parent.stat().st_mode)) == (0o600, 0o700)
        assert key not in first.log
        store = server_pid(folder)
        assert alive(store)
        assert first.stop() < 5
        assert not alive(store)
    with running(folder, port) as second:
        assert second.api_key is None
        assert key not in second.shown + second.log
        assert httpx.get(f"{second.url}/api/v1/stats", headers={"X-API-Key": key}).status_code == 200


def server_pid(folder: Path) -> int:
    import redis

    url = EmbeddedStore(folder / "data").url
    return int(redis.Redis(unix_socket_path=url.removeprefix("unix://")).info("server")["process_id"])


def test_a_port_in_use_is_told_in_one_sentence_and_costs_no_key(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = Switchboard(folder, port)
        assert refused.process.wait(20) == 2
    assert refused.shown == ""
    [line] = refused.log.splitlines()
    assert line.startswith(f"switchboard: ORCH_PORT: can't listen on 127.0.0.1:{port}")
    assert re.search(r"is Switchboard or the demo running\? Choose another one: ORCH_PORT=\d+ make run$", line)
    with running(folder, free_port()) as switchboard:
        assert switchboard.api_key is not None


def test_a_store_that_can_not_start_is_told_too_and_costs_no_key(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "store").write_text("in the way")
    refused = Switchboard(folder, free_port())
    assert refused.process.wait(20) == 2
    assert refused.shown == ""
    assert "switchboard: The store can't use" in refused.log
    (folder / "data" / "store").unlink()
    with running(folder, free_port()) as switchboard:
        assert switchboard.api_key is not None


async def test_a_worker_that_waits_for_a_message_does_not_hold_up_the_end(folder: Path) -> None:
    with running(folder, free_port(), API_KEY=API_KEY, WEBHOOK_SECRET=MASTER) as switchboard:
        assert switchboard.api_key is None
        async with opened(EmbeddedStore(folder / "data").url) as store:
            await store.sessions.register("worker_1", 1)
        async with worker(switchboard.url, "worker_1", Ack()) as waiting:
            claim = asyncio.create_task(waiting.claim())
            done, _ = await asyncio.wait({claim}, timeout=0.3)
            assert not done
            assert await asyncio.to_thread(switchboard.stop) < 2
            claim.cancel()
        assert "Traceback" not in switchboard.log


# With an external store and two workers.


class External:
    """A Valkey of one's own, that keeps what it was given."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/s"
        self.start()

    def start(self) -> None:
        self._server = start_valkey(self._folder, "--appendonly", "yes", "--appendfsync", "always")

    def kill(self) -> None:
        self._server.kill()
        self._server.wait()


@pytest.fixture
def external(folder: Path) -> Iterator[External]:
    (folder / "valkey").mkdir()
    server = External(folder / "valkey")
    yield server
    server.kill()


class Customer:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def send(self, session: str, to: str, **more: object) -> str:
        body = {"to": to, "message": f"hello {to}", "sessionId": session, **more}
        return str((await self._good("POST", "/api/v1/send", json=body))["messageId"])

    async def limit(self, session: str, **figures: object) -> None:
        await self._good("PUT", f"/api/anti-ban/sessions/{session}/limits", json=QUICK | figures)

    async def status(self, message: str) -> str:
        return str((await self._good("GET", f"/api/v1/messages/{message}/status"))["status"])

    async def becomes(self, status: str, *messages: str) -> None:
        for message in messages:

            async def there(message: str = message) -> bool:
                return await self.status(message) == status

            await until(there)

    async def figures(self, path: str) -> dict[str, int]:
        """Summed over three days, so that midnight may fall into the test."""
        today = datetime.now(UTC).date()
        span = {"from": str(today - timedelta(days=1)), "to": str(today + timedelta(days=1))}
        days = (await self._good("GET", path, params=span))["items"]
        return {name: sum(day[name] for day in days) for name in ("sent", "failed", "delivered", "read")}

    async def _good(self, method: str, path: str, **given: Any) -> Any:
        response = await self._http.request(method, path, **given)
        assert response.status_code == 200, response.text
        return response.json()


@asynccontextmanager
async def ready(folder: Path, external: External) -> AsyncIterator[tuple[Switchboard, httpx.AsyncClient]]:
    """Everything runs, and both sessions are known."""
    settings = {
        "REDIS_URL": external.url,
        "API_KEY": API_KEY,
        "WEBHOOK_SECRET": MASTER,
        "RECIPIENT_HOURS": "00:00-24:00",
    }
    async with opened(external.url) as store:
        for session in PHONES:
            await store.sessions.register(session, round(time.time() * 1000))
    with running(folder, free_port(), **settings) as switchboard:
        headers = {"X-API-Key": API_KEY}
        async with httpx.AsyncClient(base_url=switchboard.url, headers=headers, trust_env=False) as http:
            yield switchboard, http


async def test_messages_go_all_the_way_and_the_figures_agree(folder: Path, external: External) -> None:
    async with (
        ready(folder, external) as (switchboard, http),
        worker(switchboard.url, "worker_1", AckThenRead()) as one,
        worker(switchboard.url, "worker_2", AckThenRead()) as two,
    ):
        customer = Customer(http)
        for session in PHONES:
            await customer.limit(session)

        due = time.time() + 1
        moment = datetime.fromtimestamp(due, UTC).isoformat()
        first = await customer.send("worker_1", "972509876500", scheduledFor=moment)
        assert await customer.status(first) == "scheduled"
        claimed = await one.claim()
        assert 0 <= time.time() - due < 1  # released to within a second
        assert claimed is not None
        assert claimed.message_id == first
        assert await customer.status(first) == "sending"
        assert await one.ack(claimed) == {"settled": True, "status": "sent"}
        assert await customer.status(first) == "sent"
        for kind, status in (("MESSAGE_DELIVERED", "delivered"), ("MESSAGE_READ", "read")):
            await one.event(kind, {"whatsappId": claimed.whatsapp_id, "timestamp": round(time.time() * 1000)})
            assert await customer.status(first) == status

        sent = {session: [await customer.send(session, f"9725098766{n:02}") for n in range(10)] for session in PHONES}
        assert {await customer.status(message) for message in sent["worker_2"]} == {"queued"}
        async with at_work(one, two):
            await customer.becomes("read", *sent["worker_1"], *sent["worker_2"])
        assert [message.message_id for message in one.claimed] == [first, *sent["worker_1"]]
        assert [message.message_id for message in two.claimed] == sent["worker_2"]

        def all_of(count: int) -> dict[str, int]:
            return {"sent": count, "failed": 0, "delivered": count, "read": count}

        assert await customer.figures("/api/v1/stats/worker_1") == all_of(11)
        assert await customer.figures(f"/api/v1/stats/accounts/{PHONES['worker_2']}") == all_of(10)
        assert await customer.figures("/api/v1/stats") == all_of(21)
        assert "hello" not in switchboard.log


async def test_while_the_store_is_away_callers_are_told_and_nothing_is_lost(folder: Path, external: External) -> None:
    async with (
        ready(folder, external) as (switchboard, http),
        worker(switchboard.url, "worker_1", Ack()) as one,
    ):
        customer = Customer(http)
        await customer.limit("worker_1", baseDelayMs=40)
        sent = [await customer.send("worker_1", f"9725098766{n:02}") for n in range(20)]
        once = {"Idempotency-Key": "once"}
        body = {"to": "972509876599", "message": "hello", "sessionId": "worker_1"}
        async with at_work(one):
            await customer.becomes("sent", sent[3])
            external.kill()
            for method, path in [("POST", "/api/v1/send"), ("GET", "/api/v1/queue/worker_1"), ("GET", "/api/v1/stats")]:
                response = await http.request(method, path, json=body if method == "POST" else None, headers=once)
                assert (response.status_code, response.json()["error"]) == (503, "STORE_UNAVAILABLE")
                assert response.headers["Retry-After"] == "2"
            health = await http.get("/health")
            assert (health.status_code, health.json()["store"], health.headers["Retry-After"]) == (503, "away", "2")
            assert (await http.get("/health/live")).status_code == 200
            external.start()

            async def taken() -> bool:
                return (await http.post("/api/v1/send", json=body, headers=once)).status_code == 200

            await until(taken)
            late = (await http.post("/api/v1/send", json=body, headers=once)).json()["messageId"]
            await customer.becomes("sent", *sent, late)
        assert {message.message_id for message in one.claimed} == {*sent, late}
        assert len({message.whatsapp_id for message in one.claimed}) == 21
        figures = await customer.figures("/api/v1/stats/worker_1")
        assert (figures["sent"], figures["failed"]) == (21, 0)
        assert switchboard.process.poll() is None
        switchboard.process.send_signal(signal.SIGINT)  # Ctrl-C is as good as a stop
        assert await asyncio.to_thread(switchboard.process.wait, 10) == 0
