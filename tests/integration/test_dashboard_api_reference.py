"""The page of the API: all of the document is on it, and nothing comes from anywhere else."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from switchboard.dashboard.api.document import HERE, reference_of
from switchboard.dashboard.dashboard import DashboardRules, dashboard_routers
from switchboard.gateway.gateway import gateway_routers
from switchboard.gateway.sending import SendRules
from switchboard.web.app import create_app
from switchboard.web.auth import Guard
from tests.support.board import POLICY, UTC, Board
from tests.support.dashboard import ORIGIN, SECRET, Desk, services_for
from tests.support.gateway import OWN_KEY, Document

pytestmark = pytest.mark.anyio

ARTICLE = re.compile(r'<article class="card operation" id="([^"]+)".*?</article>', re.DOTALL)


@pytest.fixture
def app(board: Board) -> FastAPI:
    """All that answers under `switchboard up`."""
    guard = Guard(board.store, OWN_KEY, 1_000_000, board.clock)
    gateway = gateway_routers(
        board.store, POLICY, SendRules(), api_key=OWN_KEY, per_minute=1_000_000, zone=UTC, clock=board.clock
    )
    pages = dashboard_routers(services_for(board), guard, DashboardRules(SECRET), board.stopping)
    return create_app(board.store, ["gateway"], [*gateway, *board.orchestrator.routers(guard), *pages])


@pytest.fixture
async def desk(board: Board, app: FastAPI) -> AsyncIterator[Desk]:
    """Nobody is signed in."""
    transport = httpx.ASGITransport(app, client=("192.0.2.1", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=30) as http:
        yield Desk(board, http)


def operations(app: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    paths = app.openapi()["paths"].items()
    return [(method.upper(), path, given) for path, by_method in paths for method, given in by_method.items()]


async def test_every_call_is_there_once_with_all_its_errors(app: FastAPI, desk: Desk) -> None:
    page = await desk.page("/docs")
    found = {match[1]: unescape(match[0]) for match in ARTICLE.finditer(page.html)}
    wanted = operations(app)
    assert len(wanted) > 40
    there = Counter(match[1] for match in ARTICLE.finditer(page.html))
    assert there == Counter(given["operationId"] for *_, given in wanted)
    for method, path, given in wanted:
        text = found[given["operationId"]]
        assert f">{method}</span>" in text
        assert f"<code>{path}</code>" in text
        assert given["summary"] in text
        for status, answer in given["responses"].items():
            assert f">{status}</span>" in text
            for code, example in answer.get("content", {}).get("application/json", {}).get("examples", {}).items():
                assert f"<code>{code}</code>" in text
                assert json.dumps(example["value"], indent=2, ensure_ascii=False) in text
        for parameter in given.get("parameters", ()):
            assert f">{parameter['name']}</code>" in text


async def test_what_the_contents_lead_to_is_there(desk: Desk) -> None:
    page = await desk.page("/docs")
    ids = Counter(found["id"] for found in page.attributes if "id" in found)
    assert max(ids.values()) == 1, "an anchor leads to one place"
    assert {link[1:] for link in page.links if link.startswith("#")} <= ids.keys()


async def test_every_call_says_which_scope_its_key_needs(app: FastAPI, desk: Desk) -> None:
    scopes = {(method, path): given.get("x-scope") for method, path, given in operations(app)}
    assert scopes["POST", "/api/v1/send"] == scopes["DELETE", "/api/v1/batches/{batchId}"] == "send"
    assert scopes["GET", "/api/v1/messages"] == "read"
    assert scopes["POST", "/api/proxies"] == "admin"
    assert scopes["GET", "/health"] is None
    assert all(given.get("x-scope") for *_, given in operations(app) if given.get("security"))
    found = {match[1]: match[0] for match in ARTICLE.finditer((await desk.page("/docs")).html)}
    for *_, given in operations(app):
        said = f'<code class="badge">{given["x-scope"]}</code>' if "x-scope" in given else "Needs no key."
        assert said in found[given["operationId"]]


@pytest.mark.parametrize("signed_in", [False, True])
async def test_nothing_is_loaded_from_elsewhere(desk: Desk, signed_in: bool) -> None:
    if signed_in:
        await desk.sign_in()
    page = await desk.page("/docs")
    for found in page.attributes:
        for name in ("src", "href", "action", "srcset", "data"):
            address = urlsplit(found.get(name) or "")
            assert not address.netloc or f"{address.scheme}://{address.netloc}" == ORIGIN
    assert "script-src 'self' 'nonce-" in page.response.headers["content-security-policy"]
    assert "default-src 'none'" in page.response.headers["content-security-policy"]
    assert not [found for found in page.attributes if any(name.startswith("on") or name == "style" for name in found)]


async def test_the_pages_that_loaded_scripts_from_elsewhere_are_gone(desk: Desk) -> None:
    for path in ("/redoc", "/docs/oauth2-redirect"):
        assert (await desk.http.get(path)).status_code == 404
    assert "cdn" not in (await desk.page("/docs")).html
    assert (await desk.http.get("/openapi.json")).json()["info"]["title"] == "Switchboard"


async def test_without_a_dashboard_there_is_no_page(board: Board) -> None:
    app = create_app(board.store, ["gateway"], [])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as http:
        answer = await http.get("/docs", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]) == (404, "NOT_FOUND")


async def test_the_frame_speaks_the_readers_language_and_the_document_its_own(desk: Desk) -> None:
    english, hebrew = await desk.page("/docs"), await desk.page("/docs", language="he")
    assert '<html lang="he" dir="rtl"' in hebrew.html
    assert "דרוש מפתח עם ההרשאה" in hebrew.text
    assert "גוף הבקשה" in hebrew.text
    assert '<span lang="en" dir="ltr">Queue one message</span>' in hebrew.html
    assert "Needs a key with the scope" in english.text, "each language is kept apart"


async def test_those_who_are_signed_in_have_their_menu_around_it(desk: Desk) -> None:
    outside = await desk.page("/docs")
    assert "/" in outside.links
    assert "/proxies" not in outside.links
    await desk.sign_in()
    inside = await desk.page("/docs")
    assert '<a href="/docs" aria-current="page">' in inside.html
    assert "/proxies" in inside.links
    assert outside.html.count("<h1>") == inside.html.count("<h1>") == 1


async def test_nobody_reads_what_was_made_for_another(desk: Desk) -> None:
    """The long part is rendered once: for whom must not show."""
    await desk.sign_in()
    assert desk.csrf in (await desk.page("/docs")).html
    desk.http.cookies.clear()
    assert desk.csrf not in (await desk.page("/docs")).html


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("board.example:8443", "http://board.example:8443/api/v1/send"),
        ("[::1]:3000", "http://[::1]:3000/api/v1/send"),
    ],
)
async def test_commands_lead_to_where_the_page_is(desk: Desk, host: str, said: str) -> None:
    for _ in range(2):  # what is kept is not what the first one saw
        answer = await desk.http.get("/docs", headers={"Host": host, "Accept": "text/html"})
        assert f'curl -s -X POST "{said}"' in unescape(answer.text)
        assert HERE not in answer.text


@pytest.mark.parametrize("host", ["x$(reboot)", "x`reboot`", '"><script>reboot', "x' reboot"])
async def test_a_host_that_is_none_gets_into_no_command(desk: Desk, host: str) -> None:
    answer = await desk.http.get("/docs", headers={"Host": host, "Accept": "text/html"})
    assert re.search(r'curl -s -X POST "http://[A-Za-z0-9.:]+/api/v1/send"', unescape(answer.text))
    assert "reboot" not in answer.text


async def test_an_example_that_was_made_up_fits_what_the_document_says(app: FastAPI) -> None:
    document = Document(app)
    given = {found["operationId"]: found for *_, found in operations(app)}
    seen = 0
    for group in reference_of(document.content).groups:
        for operation in group.operations:
            said = given[operation.id]
            if operation.body:
                schema = said["requestBody"]["content"]["application/json"]["schema"]
                document.validator(schema).validate(json.loads(operation.body.example))
            for answer in operation.answers:
                schema = said["responses"][answer.status].get("content", {}).get("application/json", {}).get("schema")
                for example in answer.examples:
                    document.validator(schema).validate(json.loads(example.value))
                    seen += 1
    assert seen > 200
