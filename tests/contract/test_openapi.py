"""The OpenAPI document: all that SPEC promises is in it, its examples are true, and the app behaves as it says."""

import asyncio
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from redis.asyncio import Redis
from schemathesis.checks import response_schema_conformance

from switchboard.domain.hours import ALWAYS
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, TrustTable
from switchboard.gateway.gateway import gateway_routers
from switchboard.gateway.sending import SendRules
from switchboard.orchestrator.orchestrator import Orchestrator
from switchboard.runners.memory import MemoryRunner, MemoryWorld
from switchboard.store import Store, open_store
from switchboard.store.intake import Entry, Row
from switchboard.store.store import StoreRules
from switchboard.web.app import create_app
from switchboard.web.auth import Guard
from tests.support.board import direct_rules, opened_board
from tests.support.driver import NOON, Driver
from tests.support.gateway import OWN_KEY, Api, Document, check_error_shape
from tests.support.serving import serving

LINKED, PHONE, MESSAGE, BATCH = "worker_1", "972501234567", "a" * 18, "batch_" + "a" * 18
POLICY = Policy(TrustTable(STANDARD), RecipientRules(3, ALWAYS))
KNOWN = {"sessionId": LINKED, "phone": PHONE, "messageId": MESSAGE, "batchId": BATCH, "proxyId": "proxy_1"}
ALWAYS_POSSIBLE = {"UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "STORE_UNAVAILABLE"}
SENDING = {
    "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED", "DAILY_LIMIT_REACHED",
    "QUEUE_FULL", "IDEMPOTENCY_CONFLICT",
}  # fmt: skip
LIMITS = {"INVALID_REQUEST", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED"}
STATS = {"INVALID_REQUEST", "SESSION_NOT_FOUND"}
MAKING = {
    "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "PROXY_NOT_FOUND", "NO_PROXY_AVAILABLE", "TOO_MANY_SESSIONS",
}  # fmt: skip
COMMAND = {"SESSION_NOT_FOUND", "INVALID_TRANSITION"}
ERRORS: dict[tuple[str, str], set[str]] = {
    ("post", "/api/v1/send"): SENDING | {"RECIPIENT_OPTED_OUT"},
    ("post", "/api/send"): SENDING | {"RECIPIENT_OPTED_OUT"},
    ("post", "/api/v1/send/batch"): SENDING,
    ("get", "/api/v1/messages"): {"INVALID_REQUEST"},
    ("get", "/api/v1/messages/{messageId}/status"): {"MESSAGE_NOT_FOUND"},
    ("get", "/api/v1/queue/{sessionId}"): {"INVALID_REQUEST", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED"},
    ("delete", "/api/v1/queue/{sessionId}/{messageId}"): {
        "SESSION_NOT_FOUND", "SESSION_NOT_LINKED", "MESSAGE_NOT_FOUND", "MESSAGE_NOT_WAITING",
    },
    ("get", "/api/v1/stats"): STATS,
    ("get", "/api/v1/stats/{sessionId}"): STATS,
    ("get", "/api/v1/stats/accounts/{phone}"): STATS,
    ("get", "/api/v1/batches"): {"INVALID_REQUEST"},
    ("get", "/api/v1/batches/{batchId}"): {"BATCH_NOT_FOUND"},
    ("delete", "/api/v1/batches/{batchId}"): {"BATCH_NOT_FOUND"},
    ("get", "/api/v1/dead-letters"): {"INVALID_REQUEST"},
    ("post", "/api/v1/dead-letters/{messageId}/retry"): {
        "MESSAGE_NOT_FOUND", "MESSAGE_NOT_WAITING", "RECIPIENT_OPTED_OUT", "QUEUE_FULL",
    },
    ("delete", "/api/v1/messages/{messageId}"): {"MESSAGE_NOT_FOUND", "MESSAGE_NOT_WAITING"},
    ("delete", "/api/v1/dead-letters/{messageId}"): {"MESSAGE_NOT_FOUND", "MESSAGE_NOT_WAITING"},
    ("get", "/api/anti-ban/sessions/{sessionId}/limits"): {"SESSION_NOT_FOUND", "SESSION_NOT_LINKED"},
    ("put", "/api/anti-ban/sessions/{sessionId}/limits"): LIMITS | {"PAYLOAD_TOO_LARGE"},
    ("delete", "/api/anti-ban/sessions/{sessionId}/limits"): {"SESSION_NOT_FOUND", "SESSION_NOT_LINKED"},
    ("post", "/api/sessions/provision"): MAKING | {"IDEMPOTENCY_CONFLICT", "SESSION_NOT_FOUND"},
    ("post", "/api/sessions"): MAKING | {"SESSION_EXISTS"},
    ("get", "/api/sessions"): {"INVALID_REQUEST"},
    ("get", "/api/sessions/{sessionId}"): {"SESSION_NOT_FOUND"},
    ("delete", "/api/sessions/{sessionId}"): COMMAND,
    ("get", "/api/sessions/{sessionId}/events"): {"SESSION_NOT_FOUND", "INVALID_REQUEST"},
    ("get", "/api/sessions/{sessionId}/qr"): {"SESSION_NOT_FOUND", "QR_NOT_READY"},
    ("post", "/api/sessions/{sessionId}/pairing-code"): COMMAND | {
        "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "QR_NOT_READY",
    },
    ("post", "/api/sessions/{sessionId}/start"): COMMAND | {"TOO_MANY_SESSIONS"},
    ("post", "/api/sessions/{sessionId}/restart"): COMMAND | {"TOO_MANY_SESSIONS"},
    ("post", "/api/sessions/{sessionId}/stop"): COMMAND,
    ("post", "/api/sessions/{sessionId}/logout"): COMMAND,
    ("post", "/api/sessions/{sessionId}/pause"): COMMAND | {"INVALID_REQUEST", "PAYLOAD_TOO_LARGE"},
    ("post", "/api/sessions/{sessionId}/resume"): COMMAND,
    ("get", "/api/proxies"): set(),
    ("post", "/api/proxies"): {"INVALID_REQUEST", "PAYLOAD_TOO_LARGE"},
    ("delete", "/api/proxies/{proxyId}"): {"INVALID_REQUEST", "PROXY_NOT_FOUND", "PROXY_IN_USE"},
    ("post", "/api/proxies/{proxyId}/probe"): {"PROXY_NOT_FOUND"},
    ("get", "/api/inventory"): set(),
    ("get", "/api/fleet"): set(),
    ("get", "/api/events"): {"INVALID_REQUEST"},
}  # fmt: skip
"""Every path of the API and every error it can give, beside those that any of them can."""
STATUSES = {
    "INVALID_REQUEST": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "RECIPIENT_OPTED_OUT": 403, "SESSION_NOT_FOUND": 404,
    "MESSAGE_NOT_FOUND": 404, "BATCH_NOT_FOUND": 404, "SESSION_NOT_LINKED": 409, "IDEMPOTENCY_CONFLICT": 409,
    "MESSAGE_NOT_WAITING": 409, "PAYLOAD_TOO_LARGE": 413, "RATE_LIMITED": 429, "DAILY_LIMIT_REACHED": 429,
    "QUEUE_FULL": 429, "STORE_UNAVAILABLE": 503, "PROXY_NOT_FOUND": 404, "QR_NOT_READY": 404, "SESSION_EXISTS": 409,
    "INVALID_TRANSITION": 409, "TOO_MANY_SESSIONS": 409, "NO_PROXY_AVAILABLE": 409, "PROXY_IN_USE": 409,
}  # fmt: skip
OPEN = ("/health", "/metrics")
"""For load balancers and Prometheus, without a key."""


def whole_app(store: Store, folder: Path = Path("/nowhere")) -> FastAPI:
    """All that answers under `switchboard up`. An empty pool, and leave to go without one."""

    def clock() -> int:
        return NOON

    runner = MemoryRunner(MemoryWorld(), clock=clock)
    rules = direct_rules(folder, probe_timeout_s=0.2)
    orchestrator = Orchestrator(store, runner, rules, clock, asyncio.Event())
    gateway = gateway_routers(
        store, POLICY, SendRules(), api_key=OWN_KEY, per_minute=1_000_000, zone=rules.zone, clock=clock
    )
    guard = Guard(store, OWN_KEY, 1_000_000, clock)
    return create_app(store, ["gateway", "orchestrator"], [*gateway, *orchestrator.routers(guard)])


DOCUMENT = Document(whole_app(open_store("unix:///nowhere/s", "", StoreRules(ZoneInfo("UTC")))))
OPERATIONS = {
    (method, path): operation
    for path, operations in DOCUMENT.content["paths"].items()
    for method, operation in operations.items()
    if not path.startswith(OPEN)
}


def examples_of(response: dict[str, Any]) -> dict[str, Any]:
    return dict(response.get("content", {}).get("application/json", {}).get("examples", {}))


def test_every_path_is_there_and_no_other() -> None:
    assert set(OPERATIONS) == set(ERRORS)


@pytest.mark.parametrize("place", ERRORS, ids=" ".join)
def test_a_path_lists_every_error_it_can_give_under_its_status(place: tuple[str, str]) -> None:
    listed = {
        (code, int(status))
        for status, response in OPERATIONS[place]["responses"].items()
        if int(status) >= 400
        for code in response["content"]["application/json"]["examples"]
    }
    assert listed == {(code, STATUSES[code]) for code in ERRORS[place] | ALWAYS_POSSIBLE}


@pytest.mark.parametrize("place", ERRORS, ids=" ".join)
def test_a_path_takes_a_key_in_either_header(place: tuple[str, str]) -> None:
    assert OPERATIONS[place]["security"] == [{"apiKey": []}, {"bearer": []}]
    schemes = DOCUMENT.content["components"]["securitySchemes"]
    assert schemes["apiKey"] == {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}


def test_an_idempotency_key_is_offered_where_it_means_something() -> None:
    offered = {
        place
        for place, operation in OPERATIONS.items()
        if any(parameter["name"].lower() == "idempotency-key" for parameter in operation.get("parameters", ()))
    }
    taking = {"/api/v1/send", "/api/send", "/api/v1/send/batch", "/api/sessions/provision"}
    assert {path for _, path in offered} == taking


def test_the_older_name_is_marked_as_such() -> None:
    assert OPERATIONS["post", "/api/send"]["deprecated"] is True
    assert "deprecated" not in OPERATIONS["post", "/api/v1/send"]


def test_every_error_example_is_what_the_app_really_says() -> None:
    for operation in OPERATIONS.values():
        for status, response in operation["responses"].items():
            for code, example in examples_of(response).items():
                assert example["value"]["error"] == code
                assert STATUSES[code] == int(status)
                assert f"`{code}`" in response["description"]
                DOCUMENT.validator(response["content"]["application/json"]["schema"]).validate(example["value"])


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(child)


def test_every_schema_is_valid_and_every_reference_leads_somewhere() -> None:
    for schema in DOCUMENT.content["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for node in nodes(DOCUMENT.content):
        if isinstance(node.get("$ref"), str):
            _, _, name = node["$ref"].rpartition("/")
            assert name in DOCUMENT.content["components"]["schemas"]


def test_every_example_within_a_schema_fits_it() -> None:
    seen = 0
    for node in nodes(DOCUMENT.content["components"]["schemas"]):
        if isinstance(node.get("examples"), list):
            for example in node["examples"]:
                DOCUMENT.validator(node).validate(example)
                seen += 1
    assert seen > 5


def request_examples(method: str, path: str) -> list[Any]:
    """Of the body as a whole; a body that may be left out is one of two."""
    schema = OPERATIONS[method, path]["requestBody"]["content"]["application/json"]["schema"]
    [reference] = [one["$ref"] for one in (schema, *schema.get("anyOf", ())) if "$ref" in one]
    name = reference.rpartition("/")[2]
    return list(DOCUMENT.content["components"]["schemas"][name].get("examples", ()))


def with_examples(*, sending: bool) -> list[tuple[str, str]]:
    bodies = [place for place, found in OPERATIONS.items() if "requestBody" in found and request_examples(*place)]
    return [place for place in bodies if place[1].startswith(("/api/sessions", "/api/proxies")) is not sending]


@pytest.mark.anyio
@pytest.mark.parametrize("place", with_examples(sending=True), ids=" ".join)
async def test_every_request_example_is_taken_as_it_stands(store: Store, prefix: str, place: tuple[str, str]) -> None:
    method, path = place
    api = Api(Driver(store, Redis(), prefix))
    await api.driver.link("worker_1", "972501234567", None)
    for example in request_examples(method, path):
        response = await api.ask(method.upper(), path.replace("{sessionId}", "worker_1"), json=example)
        assert response.status_code == 200, response.text
    await api.close()


@pytest.mark.anyio
@pytest.mark.parametrize("place", with_examples(sending=False), ids=" ".join)
async def test_so_is_every_one_about_sessions_and_proxies(
    valkey_url: str, prefix: str, tmp_path: Path, place: tuple[str, str]
) -> None:
    method, path = place
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path, probe_timeout_s=0.2)) as board:
        for example in request_examples(method, path):
            response = await board.ask(method.upper(), path, json=example)
            assert response.status_code == 201, response.text


@pytest.mark.parametrize("body", [{}, {"message": "x", "text": "x"}])
def test_the_text_comes_under_exactly_one_of_its_two_names(body: dict[str, str]) -> None:
    schemas = DOCUMENT.content["components"]["schemas"]
    row = schemas["BatchRequest"]["properties"]["messages"]["items"]
    for schema in (schemas["SendRequest"], row):
        for name in ("message", "text"):
            assert DOCUMENT.validator(schema).is_valid({"to": "972509876543", name: "x"})
        assert not DOCUMENT.validator(schema).is_valid({"to": "972509876543"} | body)


# The app behind it, asked whatever can be thought up from the document.


@contextmanager
def live(valkey_url: str) -> Iterator[str]:
    """The real app over the real store, on a loop of its own: the fuzzer is not async."""
    ready: queue.Queue[tuple[str, Callable[[], object]]] = queue.Queue()

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        store = open_store(valkey_url, f"fuzz-{uuid.uuid4().hex[:8]}:", StoreRules(ZoneInfo("UTC")))
        await furnish(store)
        async with serving(whole_app(store)) as served:
            ready.put((served.url, lambda: loop.call_soon_threadsafe(stop.set)))
            await stop.wait()
        await store.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    url, stop = ready.get(timeout=20)
    try:
        yield url
    finally:
        stop()
        thread.join(20)


async def furnish(store: Store) -> None:
    """Things to be found: a linked session, one that never was, a message of each kind, a batch."""
    await store.sessions.register(LINKED, NOON)
    await store.sessions.connect(LINKED, PHONE, NOON)
    await store.sessions.register("never_linked", NOON)
    rows = [Row(message, "972509876543", "hello", due=due) for message, due in ((MESSAGE, 0), ("b" * 18, NOON + 1))]
    revision = (await store.accounts.look(now=NOON, phone=PHONE)).account.profile.revision
    for row in rows:
        await store.intake.enqueue([Entry([row], session=LINKED, revision=revision, daily=20)], NOON)
    batch = Entry([Row("c" * 18, PHONE, "hello")], session=LINKED, revision=revision, daily=20, batch=(BATCH, 0))
    await store.intake.enqueue([batch], NOON)


@pytest.fixture(scope="module")
def url(valkey_url: str) -> Iterator[str]:
    with live(valkey_url) as url:
        yield url


Case = schemathesis.Case[Any]
schema = schemathesis.openapi.from_dict(DOCUMENT.content).exclude(path="/api/events")  # it never ends


@schema.hook
def map_path_parameters(_: schemathesis.HookContext, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Now and then a name that does exist, so that not all ends with a 404."""
    if not given:
        return given
    return {name: KNOWN[name] if len(str(value)) % 2 == 0 else value for name, value in given.items()}


bounded = settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def errors_of(case: Case) -> set[str]:
    """What may be said to it: a method or a path that does not exist is no entry of the document."""
    listed = OPERATIONS.get((case.method.lower(), case.path), {"responses": {}})["responses"].values()
    codes = {code for response in listed for code in examples_of(response)}
    return codes | {"NOT_FOUND", "METHOD_NOT_ALLOWED"}


@schema.parametrize()
@bounded
def test_whatever_is_asked_the_answer_is_one_that_the_document_lists(case: Case, url: str) -> None:
    answer = case.call(base_url=url, headers={"X-API-Key": OWN_KEY})
    assert answer.status_code < 500, answer.text
    if answer.status_code < 300:
        case.validate_response(answer, checks=[response_schema_conformance])
        return
    headers = [(name, value) for name, values in answer.headers.items() for value in values]
    response = httpx.Response(answer.status_code, content=answer.content, headers=headers)
    check_error_shape(response)
    assert response.json()["error"] in errors_of(case)


@schema.parametrize()
@settings(bounded, max_examples=3, phases=[Phase.generate])
def test_without_a_key_nothing_is_answered(case: Case, url: str) -> None:
    if case.path.startswith(OPEN):
        return
    answer = case.call(base_url=url, headers={"X-API-Key": "", "Authorization": ""})
    if answer.status_code not in {404, 405}:  # a name with a slash in it is another path
        assert (answer.status_code, answer.json()["error"]) == (401, "UNAUTHORIZED")
