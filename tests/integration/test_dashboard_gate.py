"""What a request must bring to reach a page, and what every answer tells the browser."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import Request

from switchboard.domain.errors import StoreUnavailable
from switchboard.store import Store
from tests.support.dashboard_gate import OWN_ORIGIN, Browser, Premises

pytestmark = pytest.mark.anyio
HOST = "switchboard.test"


@pytest.fixture
async def premises(store: Store) -> Premises:
    return Premises(store)


@pytest.fixture
async def stranger(premises: Premises) -> AsyncIterator[Browser]:
    async with Browser(premises) as browser:
        yield browser


@pytest.fixture
async def browser(stranger: Browser) -> Browser:
    await stranger.sign_in()
    return stranger


async def test_a_page_leads_a_stranger_to_the_sign_in(stranger: Browser) -> None:
    answer = await stranger.get("/whoami?tab=queue&x=a%20b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=/whoami%3Ftab%3Dqueue%26x%3Da%2520b"


async def test_a_part_of_a_page_takes_nobody_away_from_what_they_type(stranger: Browser) -> None:
    for answer in (
        await stranger.get("/whoami", **{"HX-Request": "true"}),
        await stranger.post("/deed", OWN_ORIGIN | {"HX-Request": "true"}, data={"what": "it"}),
    ):
        assert (answer.status_code, answer.text) == (401, "")
        assert answer.headers["hx-reswap"] == "none"
        assert "hx-redirect" not in answer.headers


@pytest.mark.parametrize("elsewhere", ["http://evil.test/x", f"http://{HOST}//evil.test", "//", "%", "http://[", ""])
async def test_it_does_not_lead_back_to_another_site(stranger: Browser, elsewhere: str) -> None:
    answer = await stranger.post("/deed", OWN_ORIGIN | {"Referer": elsewhere}, data={"what": "it"})
    assert answer.headers["location"] == "/sign-in"


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*"])
async def test_a_script_gets_a_plain_refusal(stranger: Browser, accept: str) -> None:
    answer = await stranger.http.get("/whoami", headers={"Accept": accept})
    assert answer.status_code == 401
    assert answer.json()["error"] == "UNAUTHORIZED"


async def test_a_form_of_a_page_that_was_left_open_leads_there_and_back(stranger: Browser) -> None:
    headers = OWN_ORIGIN | {"Referer": f"http://{HOST}/proxies?page=2"}
    answer = await stranger.post("/deed", headers, data={"what": "it"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/proxies%3Fpage%3D2")


async def test_a_form_with_its_token_is_accepted(browser: Browser) -> None:
    answer = await browser.deed()
    assert (answer.status_code, answer.json()) == (200, "it")


async def test_so_is_a_request_with_the_token_in_its_header(browser: Browser) -> None:
    answer = await browser.post("/deed", OWN_ORIGIN | {"X-CSRF-Token": browser.csrf}, data={"what": "it"})
    assert answer.status_code == 200


async def test_so_is_a_form_with_a_file_of_25_mb(browser: Browser) -> None:
    file = {"file": ("people.csv", b"x" * 25 * 1024 * 1024)}
    answer = await browser.post("/upload", data={"csrf": browser.csrf}, files=file)
    assert (answer.status_code, answer.json()) == (200, 25 * 1024 * 1024)


async def test_a_larger_one_is_not_even_read(browser: Browser) -> None:
    file = {"file": ("people.csv", b"x" * 27 * 1024 * 1024)}
    answer = await browser.post("/upload", data={"csrf": browser.csrf}, files=file)
    assert (answer.status_code, answer.text) == (413, "413 PAYLOAD_TOO_LARGE")


async def test_nor_one_that_does_not_say_how_large_it_is(browser: Browser) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024 * 1024

    answer = await browser.post("/upload", OWN_ORIGIN | {"X-CSRF-Token": browser.csrf}, content=endless())
    assert answer.status_code == 413
    answer = await browser.post("/sign-in", content=endless())
    assert answer.status_code == 413


@pytest.mark.parametrize("token", ["", "wrong", "é", None])
async def test_without_the_right_token_nothing_is_done(browser: Browser, token: str | None) -> None:
    assert browser.csrf
    data = {"what": "it"} | ({} if token is None else {"csrf": token})
    for given in ({"data": data}, {"data": data, "files": {"file": b"x"}}, {"json": data}):
        answer = await browser.post("/deed", **given)
        assert (answer.status_code, answer.text) == (403, "403 FORBIDDEN")
    if token and token.isascii():
        answer = await browser.post("/deed", OWN_ORIGIN | {"X-CSRF-Token": token}, data=data | {"csrf": browser.csrf})
        assert answer.status_code == 403


async def test_a_file_is_no_token(browser: Browser) -> None:
    answer = await browser.post("/deed", data={"what": "it"}, files={"csrf": browser.csrf.encode()})
    assert answer.status_code == 403


async def test_the_token_of_another_sign_in_is_wrong(premises: Premises, browser: Browser) -> None:
    async with Browser(premises) as other:
        await other.sign_in()
        assert other.csrf != browser.csrf
        answer = await browser.post("/deed", data={"what": "it", "csrf": other.csrf})
    assert answer.status_code == 403


async def test_a_form_that_is_none_is_refused(browser: Browser) -> None:
    headers = OWN_ORIGIN | {"Content-Type": "multipart/form-data"}
    assert (await browser.post("/deed", headers, content=b"--nonsense")).status_code == 400


@pytest.mark.parametrize("charset", ["punycode", "unicode_escape", "utf-16", '"punycode"', "idna"])
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
async def test_a_form_in_an_odd_encoding_is_not_even_read(browser: Browser, kind: str, charset: str) -> None:
    headers = OWN_ORIGIN | {"Content-Type": f"{kind}; charset={charset}"}
    body = b'--x\r\nContent-Disposition: form-data; name="secret"\r\n\r\n\\ud800abc\r\n--x--\r\n'
    for path in ("/deed", "/sign-in"):
        assert (await browser.post(path, headers, content=body)).status_code == 400
    plain = {"Content-Type": f"{kind}; charset=UTF-8", "X-CSRF-Token": browser.csrf}
    assert (await browser.post("/deed", OWN_ORIGIN | plain, content=b"what=it")).status_code != 500


OURS: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": f"http://{HOST}"},
    {"Origin": f"https://{HOST}"},  # a proxy before us speaks https
    {"Origin": f"http://{HOST.upper()}:80"},
    {"Referer": f"http://{HOST}/sessions"},
]
THEIRS: list[dict[str, str]] = [
    {},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{HOST}"},
    {"Sec-Fetch-Site": "", "Origin": f"http://{HOST}"},
    {"Origin": "http://evil.test"},
    {"Origin": "null"},
    {"Origin": f"http://{HOST}:8080"},
    {"Origin": f"http://{HOST}.evil.test"},
    {"Origin": f"http://evil.test/{HOST}"},
    {"Origin": f"ftp://{HOST}"},
    {"Origin": f"http://{HOST}@evil.test"},
    {"Origin": "http://evil.test", "Referer": f"http://{HOST}/"},
    {"Referer": f"http://evil.test/?http://{HOST}/"},
    {"Origin": "http://["},
]


@pytest.mark.parametrize("headers", OURS)
async def test_what_comes_from_our_own_pages_is_done(browser: Browser, headers: dict[str, str]) -> None:
    assert (await browser.deed(headers=headers)).status_code == 200
    assert (await browser.post("/open", headers)).status_code == 200


@pytest.mark.parametrize("headers", THEIRS)
async def test_what_comes_from_elsewhere_is_not(browser: Browser, headers: dict[str, str]) -> None:
    assert (await browser.deed(headers=headers)).status_code == 403
    assert (await browser.post("/open", headers)).status_code == 403
    assert (await browser.post("/sign-in", headers, data={"secret": "x"})).status_code == 403


async def test_a_link_from_elsewhere_may_lead_here(browser: Browser) -> None:
    assert (await browser.get("/whoami", **{"Sec-Fetch-Site": "cross-site"})).status_code == 200


def check_headers(answer: httpx.Response) -> str:
    """All that protects, and the nonce."""
    policy = answer.headers["content-security-policy"]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    nonce = re.search(r"'nonce-([\w-]{20,})'", policy)
    assert nonce
    assert directives["default-src"] == directives["base-uri"] == directives["object-src"] == "'none'"
    assert directives["frame-ancestors"] == "'none'"
    assert directives["script-src"] == directives["style-src"] == f"'self' 'nonce-{nonce[1]}'"
    assert directives["form-action"] == directives["connect-src"] == directives["font-src"] == "'self'"
    assert directives["img-src"] == "'self' data:"
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "camera=()" in answer.headers["permissions-policy"]
    assert answer.headers["referrer-policy"] in {"same-origin", "no-referrer"}
    return nonce[1]


async def test_every_answer_is_protected(browser: Browser, premises: Premises) -> None:
    paths = ["/whoami", "/open", "/sign-in", "/goes-wrong/refused", "/goes-wrong/unexpected", "/goes-wrong/x?number=y"]
    nonces = [check_headers(await browser.get(path)) for path in paths]
    nonces.append(check_headers(await browser.deed()))
    nonces.append(check_headers(await browser.deed(headers={})))
    async with Browser(premises) as stranger:
        nonces.append(check_headers(await stranger.get("/whoami")))
        nonces.append(check_headers(await stranger.get("/sign-in")))
        nonces.append(check_headers(await stranger.http.get("/whoami")))
        nonces.append(check_headers(await stranger.get("/whoami", **{"HX-Request": "true"})))
    assert len(set(nonces)) == len(nonces), "each has a nonce of its own"


async def test_the_page_knows_the_nonce_of_its_answer(browser: Browser) -> None:
    answer = await browser.get("/whoami")
    assert answer.json()["nonce"] == check_headers(answer)


async def test_a_page_may_be_stricter_about_where_it_was_visited_from(browser: Browser) -> None:
    assert (await browser.get("/open")).headers["referrer-policy"] == "no-referrer"
    assert (await browser.get("/whoami")).headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/goes-wrong/refused", "409 INVALID_TRANSITION"),
        ("/goes-wrong/x?number=many", "400 INVALID_REQUEST"),
        ("/goes-wrong/missing", "404 HTTPException"),
        ("/goes-wrong/store", "503 STORE_UNAVAILABLE"),
        ("/goes-wrong/unexpected", "500 RuntimeError"),
    ],
)
async def test_what_goes_wrong_is_shown_as_a_page(browser: Browser, path: str, shown: str) -> None:
    answer = await browser.get(path)
    assert (str(answer.status_code), answer.text) == (shown[:3], shown)


async def test_a_store_that_is_away_signs_nobody_out(
    premises: Premises, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(premises.store.sign_ins, "get", away)
        answer = await browser.get("/whoami")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "set-cookie" not in answer.headers
    assert await browser.is_in()


async def test_the_dashboard_is_no_part_of_the_documented_api(premises: Premises) -> None:
    assert not [path for path in premises.app.openapi()["paths"] if "sign" in path]


async def test_a_long_answer_can_ask_whether_its_visitor_is_still_in(premises: Premises, browser: Browser) -> None:
    cookie = f"switchboard={browser.http.cookies['switchboard']}"
    scope = {"type": "http", "method": "GET", "headers": [(b"cookie", cookie.encode())], "path": "/"}
    assert await premises.gate.still_signed_in(Request(scope))
    await browser.post("/sign-out", data={"csrf": browser.csrf})
    assert not await premises.gate.still_signed_in(Request(scope))
