"""The workers' border over real HTTP: who may speak, what a claim hands out, and what each word about a message does.

Every answer is held against `protocol/`, and every golden example is sent to the real server.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from switchboard.domain.ids import whatsapp_id
from switchboard.orchestrator.link_events import LinkEvents, LinkRules
from switchboard.orchestrator.prober import Prober
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.orchestrator.settlement import Settlement
from switchboard.orchestrator.worker_api import worker_routes
from switchboard.orchestrator.worker_events import WorkerEvents
from switchboard.store import Store
from switchboard.store.client import connect
from switchboard.web.app import create_app
from switchboard.web.signatures import sign, worker_secret
from tests.support.driver import HOUR, MINUTE, UNHURRIED, Driver
from tests.support.protocol import examples, invalid_examples, load, validator
from tests.support.scripted_worker import Claimed, Nack, ScriptedWorker, now_ms
from tests.support.serving import Served, serving, until

pytestmark = pytest.mark.anyio

MASTER = "the master secret of these tests"
PHONE = "972500000001"
OTHER = "972500000002"
INSTANCE = "instance-one"
NOBODY = "0" * 18
MAX_BODY = 256 * 1024
ANSWERS = {"claim": "claim.response", "ack": "settle.response", "nack": "settle.response"}


class LiveDriver(Driver):
    """Its clock runs as the real one does, and can still be put forward."""

    _ahead = 0

    @property
    def now(self) -> int:
        return now_ms() + self._ahead

    @now.setter
    def now(self, moment: int) -> None:
        self._ahead = moment - now_ms()


class Looks:
    """Counts how often the store is asked for a session's message."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        ask = store.outbox.claim

        async def counted(session: str, instance: str, now: int) -> Any:
            answer = await ask(session, instance, now)
            self.count += 1
            return answer

        monkeypatch.setattr(store.outbox, "claim", counted)


@dataclass
class Border:
    """A worker's view of the server, one signed call at a time."""

    driver: LiveDriver
    served: Served
    http: httpx.AsyncClient
    looks: Looks

    async def send(self, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        response = await self.http.post(path, content=content, headers=headers)
        if response.status_code == 200:
            kind = path.rpartition("/")[2]
            if kind in ANSWERS:
                validator(ANSWERS[kind]).validate(response.json())
            else:
                assert response.json() == {"accepted": True}
        else:
            validator("error").validate(response.json())
        return response

    async def call(
        self, path: str, body: object, session: str = "a", *, secret: str | None = None, age_s: int = 0
    ) -> httpx.Response:
        content = json.dumps(body).encode()
        return await self.send(path, content, signed(content, secret or worker_secret(MASTER, session), age_s))

    async def claim(self, session: str = "a", instance: str = INSTANCE, wait_ms: int = 0) -> dict[str, Any] | None:
        body = {"sessionId": session, "instance": instance, "waitMs": wait_ms}
        response = await self.call(outbox("claim", session), body, session)
        assert response.status_code == 200, response.text
        message: dict[str, Any] | None = response.json()["message"]
        return message

    async def claimed(self, session: str = "a", instance: str = INSTANCE, wait_ms: int = 0) -> dict[str, Any]:
        message = await self.claim(session, instance, wait_ms)
        assert message is not None
        return message

    async def attempt(self, session: str = "a") -> dict[str, Any]:
        await self.driver.settle_down()
        return await self.claimed(session)

    async def ack(self, message: dict[str, Any], session: str = "a") -> dict[str, Any]:
        return dict(ok(await self.call(outbox("ack", session), self.attempt_of(message, session), session)))

    async def nack(self, message: dict[str, Any], kind: str, until_: int | None = None) -> dict[str, Any]:
        body = self.attempt_of(message) | {"class": kind, "error": f"scripted_{kind}", "until": until_}
        return dict(ok(await self.call(outbox("nack"), body)))

    async def event(self, kind: str, data: dict[str, Any], session: str = "a", path: str = "/api/webhook") -> None:
        body = {"sessionId": session, "type": kind, "timestamp": self.driver.now, "data": data}
        ok(await self.call(path, body, session))

    def attempt_of(self, message: dict[str, Any], session: str = "a") -> dict[str, Any]:
        return {
            "sessionId": session,
            "messageId": message["messageId"],
            "attempt": message["attempt"],
            "timestamp": self.driver.now,
        }

    async def status(self, message_id: str) -> str:
        return (await self.driver.message(message_id)).status.value


def ok(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx.Response, status: int, error: str) -> None:
    assert (response.status_code, response.json()["error"]) == (status, error), response.text


def outbox(call: str, session: str = "a") -> str:
    return f"/api/worker/sessions/{session}/outbox/{call}"


def signed(content: bytes, secret: str, age_s: int = 0) -> dict[str, str]:
    return sign(secret, content, message_id=f"msg_{secrets.token_hex(8)}", timestamp=int(time.time()) - age_s)


@pytest.fixture
async def driver(store: Store, valkey_url: str, prefix: str) -> AsyncIterator[LiveDriver]:
    client = connect(valkey_url)
    driver = LiveDriver(store, client, prefix)
    driver.now = now_ms()
    yield driver
    await driver.audit()
    await client.aclose()


@pytest.fixture
async def border(driver: LiveDriver, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Border]:
    async with opened(driver, Looks(driver.store, monkeypatch)) as border:
        yield border


@asynccontextmanager
async def opened(driver: LiveDriver, looks: Looks, longest_wait_ms: int = 25_000) -> AsyncIterator[Border]:
    def clock() -> int:
        return driver.now

    settlement = Settlement(driver.store, driver.retry, clock)
    care = ProxyCare(driver.store, Prober(timeout_s=1), 60_000, 0, clock)
    events = WorkerEvents(driver.store, settlement, LinkEvents(driver.store, care, LinkRules(), clock), clock)
    routes = worker_routes(driver.store, settlement, events, master_secret=MASTER, wait_ms=longest_wait_ms, clock=clock)
    app = create_app(driver.store, ["orchestrator"], [routes])
    async with (
        serving(app) as served,
        woken(driver.store),
        httpx.AsyncClient(base_url=served.url, timeout=30, trust_env=False) as http,
    ):
        yield Border(driver, served, http, looks)


@asynccontextmanager
async def woken(store: Store) -> AsyncIterator[None]:
    """The process's one subscription, up and running."""
    task = asyncio.create_task(store.wakeups.run())
    async with store.wakeups.listen("probe") as event:
        await asyncio.wait_for(event.wait(), 10)
    try:
        yield
    finally:
        task.cancel()


# Who speaks.


def bodies(session: str = "a") -> Iterator[tuple[str, dict[str, Any]]]:
    attempt = {"messageId": NOBODY, "attempt": 1, "timestamp": now_ms()}
    yield outbox("claim"), {"sessionId": session, "instance": INSTANCE, "waitMs": 0}
    yield outbox("ack"), {"sessionId": session, **attempt}
    yield outbox("nack"), {"sessionId": session, **attempt, "class": "retryable", "error": "x", "until": None}
    yield "/api/webhook", {"sessionId": session, "type": "X", "timestamp": now_ms(), "data": {}}
    yield "/webhook", {"sessionId": session, "type": "X", "timestamp": now_ms(), "data": {}}


async def test_only_the_worker_of_that_session_is_believed(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.link("b", OTHER)
    message = await border.driver.send()
    await border.driver.settle_down()
    own = worker_secret(MASTER, "a")
    for path, body in bodies():
        content = json.dumps(body).encode()
        good = signed(content, own)
        refusals = [
            await border.call(path, body, secret=worker_secret("another master", "a")),
            await border.call(path, body, secret=worker_secret(MASTER, "b")),
            await border.call(path, body, age_s=310),
            await border.call(path, body, age_s=-310),
            await border.send(path, content + b" ", good),
            await border.send(path, content, good | {"webhook-id": "msg_2"}),
            await border.send(path, content, {}),
            *[
                await border.send(path, content, {name: value for name, value in good.items() if name != missing})
                for missing in good
            ],
        ]
        for response in refusals:
            refused(response, 401, "UNAUTHORIZED")
            assert response.headers["www-authenticate"] == "Bearer"
    assert await border.status(message) == "queued"
    assert (await border.claimed())["messageId"] == message


async def test_a_call_may_be_some_minutes_late(border: Border) -> None:
    await border.driver.link("a", PHONE)
    for age_s in (290, -290):
        ok(await border.call(*next(bodies()), age_s=age_s))


async def test_a_worker_speaks_for_its_own_session_only(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.link("b", OTHER)
    for path, body in bodies("b"):
        if "/sessions/" in path:
            refused(await border.call(path, body), 403, "FORBIDDEN")


@pytest.mark.parametrize("session", ["a:b", "-", "outbox:a", "a b", "s" * 65])
async def test_a_session_id_that_can_not_be_one_is_nobody(border: Border, session: str) -> None:
    path, body = list(bodies(session))[3]
    refused(await border.call(path, body, session), 401, "UNAUTHORIZED")
    path = outbox("claim", session.replace(" ", "%20"))
    refused(await border.call(path, body, session), 401, "UNAUTHORIZED")


async def test_a_session_that_was_removed_is_told_so(border: Border) -> None:
    for path, body in bodies():
        refused(await border.call(path, body), 404, "SESSION_NOT_FOUND")


# What is said.


@pytest.mark.parametrize("kind", ["claim", "ack", "nack", "event"])
async def test_every_golden_example_is_understood(border: Border, kind: str) -> None:
    schema = "event" if kind == "event" else f"{kind}.request"
    assert examples(schema)
    for example in examples(schema):
        body = load(example) | ({"waitMs": 0} if kind == "claim" else {})
        session = body["sessionId"]
        await border.driver.store.sessions.register(session, border.driver.now)
        path = "/api/webhook" if kind == "event" else outbox(kind, session)
        response = await border.call(path, body, session)
        if kind in {"ack", "nack"}:
            refused(response, 404, "MESSAGE_NOT_FOUND")
        else:
            assert response.status_code == 200, f"{example.name}: {response.text}"


@pytest.mark.parametrize(
    "example", [path for kind in ("*.request", "event") for path in invalid_examples(kind)], ids=lambda path: path.stem
)
async def test_every_invalid_example_is_refused(border: Border, example: Path) -> None:
    await border.driver.store.sessions.register("worker_1", border.driver.now)
    kind, _, rest = example.stem.partition(".")
    path = outbox(kind, "worker_1") if rest.startswith("request") else "/api/webhook"
    response = await border.call(path, load(example)["document"], "worker_1")
    expected = (403, "FORBIDDEN") if "session-with-a-slash" in example.name else (400, "INVALID_REQUEST")
    refused(response, *expected)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"sessionId": 1}'])
async def test_a_body_that_is_no_json_object_is_refused(border: Border, content: bytes) -> None:
    await border.driver.link("a", PHONE)
    secret = worker_secret(MASTER, "a")
    for path in ("/api/webhook", outbox("ack")):
        response = await border.send(
            path, content, signed(b"", secret) if content == b"\xff" else signed(content, secret)
        )
        assert response.status_code in {400, 401}


async def test_a_body_has_256_kib_at_most(border: Border) -> None:
    await border.driver.link("a", PHONE)
    body = {"sessionId": "a", "type": "X", "timestamp": now_ms(), "data": {"pad": ""}}
    pad = MAX_BODY - len(json.dumps(body))
    body["data"] = {"pad": "x" * pad}
    ok(await border.call("/api/webhook", body))
    body["data"] = {"pad": "x" * (pad + 1)}
    for path in ("/api/webhook", outbox("claim"), outbox("ack"), outbox("nack")):
        refused(await border.call(path, body), 413, "PAYLOAD_TOO_LARGE")


async def test_a_body_of_unknown_length_is_read_no_further_than_that(border: Border) -> None:
    await border.driver.link("a", PHONE)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 64 * 1024

    headers = signed(b"", worker_secret(MASTER, "a"))
    response = await border.http.post(outbox("claim"), content=endless(), headers=headers)
    refused(response, 413, "PAYLOAD_TOO_LARGE")


async def test_a_body_of_unknown_length_is_understood(border: Border) -> None:
    await border.driver.link("a", PHONE)
    message = await border.driver.send()
    await border.driver.settle_down()
    _, body = next(bodies())
    content = json.dumps(body).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield content[:10]
        yield content[10:]

    response = await border.http.post(
        outbox("claim"), content=pieces(), headers=signed(content, worker_secret(MASTER, "a"))
    )
    assert ok(response)["message"]["messageId"] == message


# Claiming.


async def test_a_claim_brings_what_the_worker_needs_and_no_more(border: Border) -> None:
    await border.driver.link("a", PHONE)
    message = await border.driver.send(to="972509876543")
    await border.driver.settle_down()
    before = border.driver.now
    claimed = await border.claimed()
    assert before + MINUTE <= claimed.pop("leaseUntil") <= border.driver.now + MINUTE
    assert claimed == {
        "messageId": message,
        "whatsappId": whatsapp_id(message),
        "to": "972509876543",
        "text": "hello",
        "attempt": 1,
    }
    assert await border.status(message) == "sending"


async def test_nothing_to_send_is_null(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    assert await border.claim() is None  # it waits, and was not handed over


async def test_a_claim_is_held_back_for_as_long_as_it_says(border: Border) -> None:
    await border.driver.link("a", PHONE)
    began = time.monotonic()
    assert await border.claim(wait_ms=300) is None
    assert 0.3 <= time.monotonic() - began < 3


async def test_and_no_longer_than_the_server_likes(driver: LiveDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    await driver.link("a", PHONE)
    async with opened(driver, Looks(driver.store, monkeypatch), longest_wait_ms=200) as border:
        began = time.monotonic()
        assert await border.claim(wait_ms=60_000) is None
        assert 0.2 <= time.monotonic() - began < 3


async def test_a_waiting_claim_gets_its_message_the_moment_it_is_handed_over(border: Border) -> None:
    """By a wake-up, not by looking again and again."""
    await border.driver.link("a", PHONE)
    await border.driver.link("b", OTHER)
    claim = asyncio.create_task(border.claimed(wait_ms=4_000))
    await until(lambda: border.looks.count == 1)
    other = await border.driver.send("b")
    assert [handed.message_id for handed in await border.driver.settle_down()] == [other]  # not a's business
    done, _ = await asyncio.wait({claim}, timeout=0.3)
    assert not done
    assert border.looks.count == 1
    message = await border.driver.send()
    began = time.monotonic()
    await border.driver.settle_down()
    assert (await claim)["messageId"] == message
    assert time.monotonic() - began < 0.5
    assert border.looks.count == 2


async def test_a_worker_that_hung_up_takes_no_message_with_it(border: Border) -> None:
    await border.driver.link("a", PHONE)
    async with httpx.AsyncClient(base_url=border.served.url) as doomed:
        content = json.dumps({"sessionId": "a", "instance": "doomed-one", "waitMs": 4_000}).encode()
        headers = signed(content, worker_secret(MASTER, "a"))
        claim = asyncio.create_task(doomed.post(outbox("claim"), content=content, headers=headers))
        await until(lambda: border.looks.count == 1)
        claim.cancel()
    await until(lambda: border.served.connections() == 0)
    message = await border.driver.send()
    await border.driver.settle_down()
    claimed = await border.claimed(instance="a-new-one")
    assert (claimed["messageId"], claimed["attempt"]) == (message, 1)


async def test_of_two_waiting_workers_of_one_session_one_gets_it(border: Border) -> None:
    await border.driver.link("a", PHONE)
    claims = [asyncio.create_task(border.claim(instance=f"instance-{n}", wait_ms=1_000)) for n in range(2)]
    await until(lambda: border.looks.count == 2)
    message = await border.driver.send()
    await border.driver.settle_down()
    answers = await asyncio.gather(*claims)
    assert [answer["messageId"] for answer in answers if answer] == [message]


async def test_the_same_worker_asking_again_gets_the_same_message_and_a_new_one_nothing(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    first = await border.attempt()
    assert await border.claimed() == first
    assert await border.claim(instance="started-again") is None
    border.driver.now += MINUTE
    assert await border.claim() is None  # the lease is over


async def test_a_message_whose_worker_died_is_tried_again_under_the_same_id(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    first = await border.attempt()
    border.driver.now += MINUTE
    await border.driver.settle_down()
    assert await border.status(first["messageId"]) == "failed"
    border.driver.now += MINUTE
    second = await border.attempt()
    assert (second["messageId"], second["whatsappId"], second["attempt"]) == (
        first["messageId"],
        first["whatsappId"],
        2,
    )


# Settling.


async def test_an_ack_settles_once_and_may_be_repeated(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    message = await border.attempt()
    assert await border.ack(message) == {"settled": True, "status": "sent"}
    assert await border.ack(message) == {"settled": False, "status": "sent"}
    await border.event("MESSAGE_READ", {"messageId": message["messageId"], "timestamp": border.driver.now})
    assert await border.ack(message) == {"settled": False, "status": "read"}


async def test_a_late_ack_still_settles(border: Border) -> None:
    """WhatsApp has it, whatever was believed meanwhile: waiting for a retry, or under way once more."""
    await border.driver.link("a", PHONE)
    for again in (False, True):
        await border.driver.send()
        first = await border.attempt()
        border.driver.now += MINUTE
        await border.driver.settle_down()
        if again:
            border.driver.now += MINUTE
            await border.attempt()
        assert await border.ack(first) == {"settled": True, "status": "sent"}
        assert not await border.driver.settle_down()
        assert await border.claim() is None


async def test_an_ack_tells_when_it_was_sent_but_not_in_the_future(border: Border) -> None:
    await border.driver.link("a", PHONE)
    for shift in (-5_000, HOUR):
        await border.driver.send()
        message = await border.attempt()
        body = border.attempt_of(message)
        body["timestamp"] += shift
        ok(await border.call(outbox("ack"), body))
        sent_at = (await border.driver.message(message["messageId"])).sent_at
        assert sent_at is not None
        assert sent_at == body["timestamp"] if shift < 0 else sent_at <= border.driver.now


async def test_nobody_settles_what_they_never_had(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.link("b", OTHER)
    waiting = await border.driver.send()
    unknown = {"messageId": NOBODY, "attempt": 1}
    for message in (unknown, {"messageId": waiting, "attempt": 1}):
        refused(await border.call(outbox("ack"), border.attempt_of(message)), 404, "MESSAGE_NOT_FOUND")
    claimed = await border.attempt()
    body = border.attempt_of(claimed, "b")
    refused(await border.call(outbox("ack", "b"), body, "b"), 404, "MESSAGE_NOT_FOUND")
    failure = body | {"class": "refused", "error": "no", "until": None}
    refused(await border.call(outbox("nack", "b"), failure, "b"), 404, "MESSAGE_NOT_FOUND")
    receipt = {"messageId": claimed["messageId"], "timestamp": border.driver.now}
    await border.event("MESSAGE_READ", receipt, "b")
    assert await border.status(claimed["messageId"]) == "sending"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("retryable", "failed"),
        ("unconfirmed", "failed"),
        ("not_on_whatsapp", "dead"),
        ("refused", "dead"),
        ("rate_limited", "queued"),
        ("restricted", "queued"),
    ],
)
async def test_each_class_of_failure_has_its_consequence(border: Border, kind: str, status: str) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    message = await border.attempt()
    until_ = border.driver.now + HOUR if kind == "restricted" else None
    before = border.driver.now
    assert await border.nack(message, kind, until_) == {"settled": True, "status": status}
    assert await border.nack(message, kind, until_) == {"settled": False, "status": status}
    assert (await border.driver.message(message["messageId"])).error == f"scripted_{kind}"
    account = (await border.driver.view(PHONE)).account
    assert account.restricted_until == (until_ or 0)
    if kind == "rate_limited":
        assert before + 30 * MINUTE <= account.paused_until <= border.driver.now + 30 * MINUTE
    else:
        assert account.paused_until == 0


@pytest.mark.parametrize(("kind", "end"), [("retryable", "dead"), ("unconfirmed", "unconfirmed")])
async def test_after_three_attempts_it_is_given_up(border: Border, kind: str, end: str) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    answers = []
    for _ in range(3):
        answers.append((await border.nack(await border.attempt(), kind))["status"])
        border.driver.now += HOUR
    assert answers == ["failed", "failed", end]


async def test_a_late_nack_is_ignored(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    first = await border.attempt()
    border.driver.now += MINUTE
    await border.driver.settle_down()
    border.driver.now += MINUTE
    second = await border.attempt()
    assert await border.nack(first, "refused") == {"settled": False, "status": "sending"}
    await border.ack(second)
    assert await border.nack(second, "refused") == {"settled": False, "status": "sent"}


# Events.


@pytest.mark.parametrize("path", ["/api/webhook", "/webhook"])
async def test_a_message_can_be_followed_by_events_alone(border: Border, path: str) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    message = await border.attempt()
    name, now = message["messageId"], border.driver.now
    seen = []
    for kind, data in [
        ("MESSAGE_SENT", {"messageId": name}),
        ("MESSAGE_DELIVERED", {"whatsappId": message["whatsappId"], "timestamp": now}),
        ("MESSAGE_READ", {"messageId": name, "timestamp": now}),
        ("MESSAGE_DELIVERED", {"messageId": name, "timestamp": now}),
        ("MESSAGE_SENT", {"messageId": name}),
    ]:
        await border.event(kind, data, path=path)
        seen.append(await border.status(name))
    assert seen == ["sent", "delivered", "read", "read", "read"]
    kept = await border.driver.message(name)
    assert kept.sent_at is not None
    assert (kept.delivered_at, kept.read_at) == (now, now)


async def test_an_attempt_can_fail_by_an_event(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    message = await border.attempt()
    failure = {"messageId": message["messageId"], "attempt": 1, "class": "refused", "error": "status_406"}
    for _ in range(2):
        await border.event("MESSAGE_FAILED", failure)
        assert await border.status(message["messageId"]) == "dead"
    assert (await border.driver.message(message["messageId"])).error == "status_406"


async def test_a_receipt_overtakes_its_ack(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.driver.send()
    message = await border.attempt()
    await border.event("MESSAGE_READ", {"whatsappId": message["whatsappId"], "timestamp": border.driver.now})
    assert await border.ack(message) == {"settled": False, "status": "read"}
    assert (await border.driver.message(message["messageId"])).sent_at is not None


async def test_receipts_of_what_is_not_ours_are_no_error(border: Border) -> None:
    await border.driver.link("a", PHONE)
    for data in ({"whatsappId": "3A9C8B7A6D5E4F302112"}, {"messageId": NOBODY}, {"whatsappId": "3EB0" + "A" * 18}):
        await border.event("MESSAGE_DELIVERED", data | {"timestamp": border.driver.now})


async def test_a_session_comes_and_goes_by_its_events(border: Border) -> None:
    await border.driver.store.sessions.register("a", border.driver.now)
    device = {"phoneNumber": PHONE, "jid": f"{PHONE}:1@s.whatsapp.net", "fingerprint": "Chrome"}
    for _ in range(2):
        await border.event("CONNECTED", device)
        assert (await border.driver.view(PHONE)).account.connected == ("a",)
    await border.driver.store.accounts.override(PHONE, UNHURRIED, None, border.driver.now)
    await border.driver.send()
    assert len(await border.driver.settle_down()) == 1
    await border.event("DISCONNECTED", {"reason": "connection_lost"})
    assert (await border.driver.view(PHONE)).account.connected == ()
    assert await border.claim() is None  # it went back to the queue, uncounted
    assert (await border.driver.view(PHONE)).account.day_count == 0
    await border.event("CONNECTED", device)
    await border.attempt()


async def test_a_ping_is_noted(border: Border, prefix: str) -> None:
    await border.driver.link("a", PHONE)
    border.driver.now += HOUR
    await border.event("PING", {"socketOpen": True, "lastInboundAt": border.driver.now})
    noted = int(await border.driver.client.hget(f"{prefix}session:a", "lastPing") or 0)
    assert abs(border.driver.now - noted) < 5_000


async def test_an_event_nobody_knows_yet_is_accepted(border: Border) -> None:
    await border.driver.link("a", PHONE)
    await border.event("BATTERY_LOW", {"percent": 7, "nested": [None, {"x": 1.5}]})


async def test_a_scripted_worker_lives_through_it_all(border: Border) -> None:
    """The double that other suites rely on speaks this very protocol."""
    await border.driver.store.sessions.register("a", border.driver.now)

    def script(message: Claimed, attempt: int) -> Nack:
        return Nack("refused", "status_406")

    async with ScriptedWorker(border.served.url, "a", worker_secret(MASTER, "a"), script, wait_ms=1_000) as worker:
        await worker.connect(PHONE)
        await border.driver.store.accounts.override(PHONE, UNHURRIED, None, border.driver.now)
        message = await border.driver.send()
        await border.driver.settle_down()
        assert await worker.step() is not None
        assert await border.status(message) == "dead"
        await worker.disconnect("logged_out")
