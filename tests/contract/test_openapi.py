"""The OpenAPI document: all that SPEC promises is in it, its examples are true, and the app behaves as it says."""

import asyncio
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from redis.asyncio import Redis
from schemathesis.checks import response_schema_conformance

from switchboard.domain.hours import ALWAYS
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, TrustTable
from switchboard.store import Store, open_store
from switchboard.store.intake import Entry, Row
from switchboard.store.store import StoreRules
from tests.support.driver import NOON, Driver
from tests.support.gateway import OWN_KEY, Api, check_error_shape, document, gateway_app
from tests.support.serving import serving

LINKED, PHONE, MESSAGE, BATCH = "worker_1", "972501234567", "a" * 18, "batch_" + "a" * 18
POLICY = Policy(TrustTable(STANDARD), RecipientRules(3, ALWAYS))
KNOWN = {"sessionId": LINKED, "phone": PHONE, "messageId": MESSAGE, "batchId": BATCH}
ALWAYS_POSSIBLE = {"UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "STORE_UNAVAILABLE"}
SENDING = {
    "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED", "DAILY_LIMIT_REACHED",
    "QUEUE_FULL", "IDEMPOTENCY_CONFLICT",
}  # fmt: skip
LIMITS = {"INVALID_REQUEST", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED"}
STATS = {"INVALID_REQUEST", "SESSION_NOT_FOUND"}
ERRORS: dict[tuple[str, str], set[str]] = {
    ("post", "/api/v1/send"): SENDING | {"RECIPIENT_OPTED_OUT"},
    ("post", "/api/send"): SENDING | {"RECIPIENT_OPTED_OUT"},
    ("post", "/api/v1/send/batch"): SENDING,
    ("get", "/api/v1/messages/{messageId}/status"): {"MESSAGE_NOT_FOUND"},
    ("get", "/api/v1/queue/{sessionId}"): {"INVALID_REQUEST", "SESSION_NOT_FOUND", "SESSION_NOT_LINKED"},
    ("delete", "/api/v1/queue/{sessionId}/{messageId}"): {
        "SESSION_NOT_FOUND", "SESSION_NOT_LINKED", "MESSAGE_NOT_FOUND", "MESSAGE_NOT_WAITING",
    },
    ("get", "/api/v1/stats"): STATS,
    ("get", "/api/v1/stats/{sessionId}"): STATS,
    ("get", "/api/v1/stats/accounts/{phone}"): STATS,
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
}  # fmt: skip
"""Every path of the public API and every error it can give, beside those that any of them can."""
STATUSES = {
    "INVALID_REQUEST": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "RECIPIENT_OPTED_OUT": 403, "SESSION_NOT_FOUND": 404,
    "MESSAGE_NOT_FOUND": 404, "BATCH_NOT_FOUND": 404, "SESSION_NOT_LINKED": 409, "IDEMPOTENCY_CONFLICT": 409,
    "MESSAGE_NOT_WAITING": 409, "PAYLOAD_TOO_LARGE": 413, "RATE_LIMITED": 429, "DAILY_LIMIT_REACHED": 429,
    "QUEUE_FULL": 429, "STORE_UNAVAILABLE": 503,
}  # fmt: skip


DOCUMENT = document()
OPERATIONS = {
    (method, path): operation
    for path, operations in DOCUMENT.content["paths"].items()
    for method, operation in operations.items()
    if not path.startswith("/health")
}


def test_every_path_is_there_and_no_other() -> None:
    assert set(OPERATIONS) == set(ERRORS)


@pytest.mark.parametrize("place", ERRORS, ids=" ".join)
def test_a_path_lists_every_error_it_can_give_under_its_status(place: tuple[str, str]) -> None:
    listed = {
        (code, int(status))
        for status, response in OPERATIONS[place]["responses"].items()
        if status != "200"
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
    assert {path for _, path in offered} == {"/api/v1/send", "/api/send", "/api/v1/send/batch"}


def test_the_older_name_is_marked_as_such() -> None:
    assert OPERATIONS["post", "/api/send"]["deprecated"] is True
    assert "deprecated" not in OPERATIONS["post", "/api/v1/send"]


def test_every_error_example_is_what_the_app_really_says() -> None:
    for operation in OPERATIONS.values():
        for status, response in operation["responses"].items():
            media = response["content"]["application/json"]
            for code, example in media.get("examples", {}).items():
                assert example["value"]["error"] == code
                assert STATUSES[code] == int(status)
                assert f"`{code}`" in response["description"]
                DOCUMENT.validator(media["schema"]).validate(example["value"])


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
    content = OPERATIONS[method, path]["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    return list(DOCUMENT.content["components"]["schemas"][name]["examples"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "place", [place for place, found in OPERATIONS.items() if "requestBody" in found], ids=" ".join
)
async def test_every_request_example_is_taken_as_it_stands(store: Store, prefix: str, place: tuple[str, str]) -> None:
    method, path = place
    api = Api(Driver(store, Redis(), prefix))
    await api.driver.link("worker_1", "972501234567", None)
    for example in request_examples(method, path):
        response = await api.ask(method.upper(), path.replace("{sessionId}", "worker_1"), json=example)
        assert response.status_code == 200, response.text
    await api.close()


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
        async with serving(gateway_app(store, POLICY, lambda: NOON)) as served:
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
schema = schemathesis.openapi.from_dict(DOCUMENT.content)


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
    codes = {code for response in listed for code in response["content"]["application/json"].get("examples", ())}
    return codes | {"NOT_FOUND", "METHOD_NOT_ALLOWED"}


@schema.parametrize()
@bounded
def test_whatever_is_asked_the_answer_is_one_that_the_document_lists(case: Case, url: str) -> None:
    answer = case.call(base_url=url, headers={"X-API-Key": OWN_KEY})
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        case.validate_response(answer, checks=[response_schema_conformance])
        return
    headers = [(name, value) for name, values in answer.headers.items() for value in values]
    response = httpx.Response(answer.status_code, content=answer.content, headers=headers)
    check_error_shape(response)
    assert response.json()["error"] in errors_of(case)


@schema.parametrize()
@settings(bounded, max_examples=3, phases=[Phase.generate])
def test_without_a_key_nothing_is_answered(case: Case, url: str) -> None:
    if case.path.startswith("/health"):
        return
    answer = case.call(base_url=url, headers={"X-API-Key": "", "Authorization": ""})
    if answer.status_code not in {404, 405}:  # a name with a slash in it is another path
        assert (answer.status_code, answer.json()["error"]) == (401, "UNAUTHORIZED")
