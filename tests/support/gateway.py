"""The gateway as its callers see it: the real app over the real store, on the driver's clock.

Every answer is held against the app's own OpenAPI document, so each test is also a test of what is promised there.
"""

import json
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from fastapi import FastAPI
from jsonschema import Draft202012Validator, FormatChecker
from starlette.routing import compile_path

from switchboard.domain.clock import Clock
from switchboard.domain.pacing import Policy
from switchboard.domain.trust import STANDARD, TrustTable
from switchboard.gateway.gateway import gateway_routers
from switchboard.gateway.sending import SendRules
from switchboard.store import Store, open_store
from switchboard.store.store import StoreRules
from switchboard.web.app import create_app
from tests.support.driver import Driver

OWN_KEY = "sk_the-owner's-own-key-of-these-tests"
SECRET_TEXT = "zanzibar-is-what-the-message-says"
"""What tests send. No error may ever repeat it."""
UTC = ZoneInfo("UTC")


def gateway_app(
    store: Store, policy: Policy, clock: Clock, rules: SendRules | None = None, *, per_minute: int = 1_000_000
) -> FastAPI:
    routers = gateway_routers(
        store, policy, rules or SendRules(), api_key=OWN_KEY, per_minute=per_minute, zone=UTC, clock=clock
    )
    return create_app(store, ["gateway"], routers)


class Document:
    """An app's OpenAPI document, to hold answers against."""

    def __init__(self, app: FastAPI) -> None:
        self.content: dict[str, Any] = app.openapi()

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        found = (item for item in self._by_path if item[0].match(path))
        return next((item[1][method.lower()] for item in found if method.lower() in item[1]), None)

    @cached_property
    def _by_path(self) -> list[tuple[Any, dict[str, Any]]]:
        """Those without parameters first, as `accounts` must not be taken for a session."""
        paths = sorted(self.content["paths"].items(), key=lambda item: (item[0].count("{"), item[0]))
        return [(compile_path(path)[0], operations) for path, operations in paths]

    def validator(self, schema: Mapping[str, Any]) -> Draft202012Validator:
        whole = {"components": self.content["components"], **schema}
        return Draft202012Validator(whole, format_checker=FormatChecker())

    def check(self, response: httpx.Response) -> None:
        """The answer is one that the document lists, in the shape it says."""
        assert SECRET_TEXT not in response.text
        operation = self.operation(response.request.method, response.request.url.path)
        if operation is None:
            assert response.status_code in {404, 405}
            check_error_shape(response)
            return
        status = str(response.status_code)
        assert status in operation["responses"], f"{status} is not documented: {response.text}"
        media = operation["responses"][status]["content"]["application/json"]
        body = response.json()
        self.validator(media["schema"]).validate(body)
        if response.status_code >= 400:
            check_error_shape(response)
            assert body["error"] in media["examples"], f"{body['error']} is not documented for {status}"


@cache
def document() -> Document:
    """It is the same for every app, and is made without asking a store."""
    nowhere = open_store("unix:///nowhere/s", "", StoreRules(UTC))
    return Document(gateway_app(nowhere, Policy(TrustTable(STANDARD)), lambda: 0))


def check_error_shape(response: httpx.Response) -> None:
    """`{ "error": "CODE", "message": "a sentence", …details }`, and the headers its code asks for."""
    body = response.json()
    assert isinstance(body, dict)
    assert body["error"] == body["error"].upper()
    assert body["message"]
    assert isinstance(body["message"], str)
    assert ("Retry-After" in response.headers) == (body["error"] in {"RATE_LIMITED", "STORE_UNAVAILABLE"})
    assert ("WWW-Authenticate" in response.headers) == (response.status_code == 401)


class Api:
    """A caller with the owner's key."""

    def __init__(self, driver: Driver, rules: SendRules | None = None, *, per_minute: int = 1_000_000) -> None:
        self.driver = driver
        self.app = gateway_app(driver.store, driver.policy, lambda: driver.now, rules, per_minute=per_minute)
        self.document = document()
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://switchboard", headers={"X-API-Key": OWN_KEY}
        )

    async def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Any request; `key` for another API key than the owner's, None for no key at all."""
        if "key" in given:
            key = given.pop("key")
            given["headers"] = {"X-API-Key": key or "", **given.get("headers", {})}
        response = await self._http.request(method, path, **given)
        self.document.check(response)
        return response

    async def get(self, path: str, **given: Any) -> Any:
        """The body of a good answer."""
        return good(await self.ask("GET", path, **given))

    async def put(self, path: str, body: object, **given: Any) -> Any:
        return good(await self.ask("PUT", path, json=body, **given))

    async def delete(self, path: str, **given: Any) -> Any:
        return good(await self.ask("DELETE", path, **given))

    async def post(self, path: str, body: object = None, **given: Any) -> Any:
        return good(await self.ask("POST", path, json=body, **given))

    async def try_send(self, fields: Mapping[str, object] | None = None, /, **given: Any) -> httpx.Response:
        """One message from session `a` to somebody new; a field given as ... is left out."""
        body = {"to": self.driver.someone(), "message": SECRET_TEXT, "sessionId": "a", **(fields or {})}
        present = {name: value for name, value in body.items() if value is not ...}
        return await self.ask("POST", "/api/v1/send", json=present, **given)

    async def send(self, fields: Mapping[str, object] | None = None, /, **given: Any) -> dict[str, Any]:
        answer = good(await self.try_send(fields, **given))
        assert set(answer) == {"queued", "messageId", "position", "estimatedDelivery"}
        assert answer["queued"] is True
        return dict(answer)

    async def try_batch(self, rows: object, **fields: object) -> httpx.Response:
        body = {"messages": rows, "sessionId": "a", **fields}
        present = {name: value for name, value in body.items() if value is not ...}
        return await self.ask("POST", "/api/v1/send/batch", json=present)

    async def batch(self, count: int, **fields: object) -> dict[str, Any]:
        rows = [{"to": self.driver.someone(), "text": SECRET_TEXT} for _ in range(count)]
        return dict(good(await self.try_batch(rows, **fields)))

    async def status(self, message_id: str) -> dict[str, Any]:
        return dict(await self.get(f"/api/v1/messages/{message_id}/status"))

    async def queue(self, session: str = "a") -> list[str]:
        """The ids of all that waits, page by page."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await self.get(f"/api/v1/queue/{session}", params={"limit": 200} | cursor_of(cursor))
            found += [item["messageId"] for item in page["items"]]
            cursor = page["nextCursor"]
            if cursor is None:
                return found

    async def close(self) -> None:
        await self._http.aclose()


def cursor_of(cursor: str | None) -> dict[str, str]:
    return {} if cursor is None else {"cursor": cursor}


def good(response: httpx.Response) -> Any:
    assert response.status_code == 200, f"{response.status_code} {response.text}"
    return response.json()


def refused(response: httpx.Response, status: int, error: str, /, **details: object) -> dict[str, Any]:
    """The body of an answer that must be this error with at least these details."""
    body = response.json()
    assert (response.status_code, body["error"]) == (status, error), response.text
    assert json.loads(json.dumps(details)).items() <= body.items(), body
    return dict(body)
