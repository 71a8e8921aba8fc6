"""Signing in and out: which secrets open the dashboard, how often one may try, and what ends a sign-in."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from argon2 import PasswordHasher

from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.catalogue import Catalogue
from switchboard.dashboard.rendering import Frame, Pages
from switchboard.dashboard.static import Static
from switchboard.domain.errors import InvalidRequest
from switchboard.store import Store
from switchboard.store.api_keys import digest
from tests.support.dashboard_gate import PASSWORD, QUICK, SECRET, Browser, Premises
from tests.support.driver import DAY, HOUR, MINUTE, Driver
from tests.support.gateway import OWN_KEY

pytestmark = pytest.mark.anyio
ALL = frozenset({"admin"})
NONE: frozenset[str] = frozenset()


@pytest.fixture
async def premises(store: Store) -> Premises:
    return Premises(store)


@pytest.fixture
async def browser(premises: Premises) -> AsyncIterator[Browser]:
    async with Browser(premises) as browser:
        yield browser


async def test_the_api_key_opens(browser: Browser) -> None:
    assert not await browser.is_in()
    answer = await browser.sign_in(OWN_KEY)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (await browser.get("/whoami")).json()["name"] == "API_KEY"


async def test_a_wrong_secret_does_not_and_is_not_repeated(browser: Browser) -> None:
    answer = await browser.sign_in("sk_wrong-but-telling")
    assert answer.status_code == 401
    assert "fault=wrong" in answer.text
    assert "telling" not in answer.text
    assert "set-cookie" not in answer.headers
    assert not await browser.is_in()


@pytest.mark.parametrize("secret", ["", " ", OWN_KEY[:-1], OWN_KEY + " ", digest(OWN_KEY), "nobody's password"])
async def test_almost_right_is_wrong(browser: Browser, secret: str) -> None:
    assert (await browser.sign_in(secret)).status_code == 401


async def test_a_stored_key_opens_if_it_may_do_everything(premises: Premises, browser: Browser) -> None:
    _, secret = await premises.store.api_keys.create("Dana", ALL, NONE, 10)
    await browser.sign_in(secret)
    assert (await browser.get("/whoami")).json()["name"] == "Dana"


@pytest.mark.parametrize(
    ("scopes", "sessions"), [({"send", "read"}, NONE), ({"read"}, NONE), ({"admin"}, frozenset({"worker_1"}))]
)
async def test_a_lesser_key_is_told_why_it_does_not(
    premises: Premises, browser: Browser, scopes: set[str], sessions: frozenset[str]
) -> None:
    _, secret = await premises.store.api_keys.create("shop", frozenset(scopes), sessions, 10)
    answer = await browser.sign_in(secret)
    assert answer.status_code == 403
    assert "fault=limited_key" in answer.text
    assert not await browser.is_in()


async def test_the_password_opens_once_it_is_set(premises: Premises, browser: Browser) -> None:
    assert (await browser.sign_in(PASSWORD)).status_code == 401
    await premises.passwords.change(PASSWORD)
    assert (await browser.sign_in(PASSWORD)).status_code == 303
    assert await browser.is_in()


async def test_without_a_password_as_much_is_hashed_as_with_one(premises: Premises, store: Store) -> None:
    class Counting(PasswordHasher):
        verified: list[str] = []  # noqa: RUF012 - of this test only

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002
            self.verified.append(str(hash))
            return super().verify(hash, password)

    hasher = Counting(time_cost=1, memory_cost=8, parallelism=1)
    passwords = Passwords(store.sign_ins, premises.clock, hasher)
    assert await passwords.verify("guess") is None
    await passwords.change(PASSWORD)
    assert await passwords.verify("guess") is None
    assert len(hasher.verified) == 2
    assert not any(hasher.check_needs_rehash(hashed) for hashed in hasher.verified), "and as hard"


async def test_a_password_is_the_same_however_the_keyboard_composes_it(premises: Premises) -> None:
    await premises.passwords.change("cafe\u0301 au lait")
    assert await premises.passwords.verify("caf\u00e9 au lait") is not None


@pytest.mark.parametrize("short", ["", "ninechars", "x" * 1001])
async def test_a_password_of_the_wrong_length_is_refused(premises: Premises, short: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await premises.passwords.change(short)
    assert not short or short not in refused.value.message
    assert not await premises.passwords.is_set()


async def test_a_password_is_hashed_anew_when_hashing_gets_harder(premises: Premises, store: Store) -> None:
    await premises.passwords.change(PASSWORD)
    before = await store.sign_ins.password_hash()
    harder = Passwords(store.sign_ins, premises.clock, PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    assert await harder.verify("something else") is None
    assert await store.sign_ins.password_hash() == before
    assert await harder.verify(PASSWORD) == before.turn
    after = await store.sign_ins.password_hash()
    assert after.hash is not None
    assert "m=16,t=2" in after.hash
    assert after.turn == before.turn, "nobody is signed out by it"
    assert await harder.verify(PASSWORD) is not None


async def test_hashing_anew_does_not_bring_an_old_password_back(premises: Premises, store: Store) -> None:
    await premises.passwords.change(PASSWORD)
    old = await store.sign_ins.password_hash()
    await premises.passwords.change("another password")
    await store.sign_ins.rehash(old, QUICK.hash(PASSWORD))
    assert await premises.passwords.verify(PASSWORD) is None
    assert await premises.passwords.verify("another password") is not None


async def test_the_store_learns_neither_the_password_nor_the_token(
    premises: Premises, browser: Browser, store: Store, driver: Driver
) -> None:
    await premises.passwords.change(PASSWORD)
    await browser.sign_in(PASSWORD)
    token = Signer(SECRET).open("cookie", browser.http.cookies["switchboard"])
    assert token
    kept = [str(key) for key in await driver.client.keys(f"{driver.prefix}*")]
    assert any(digest(token) in key for key in kept)
    assert not any(token in key for key in kept)
    hashed = (await store.sign_ins.password_hash()).hash
    assert hashed is not None
    assert hashed.startswith("$argon2id$")


async def test_five_wrong_secrets_a_minute_are_enough_for_one_address(premises: Premises, browser: Browser) -> None:
    await premises.passwords.change(PASSWORD)
    premises.now += 20_000
    for _ in range(5):
        assert (await browser.sign_in("wrong")).status_code == 401
    answer = await browser.sign_in(PASSWORD)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "40"
    assert "fault=wait wait=40" in answer.text
    premises.now += 40_000
    assert (await browser.sign_in(PASSWORD)).status_code == 303


async def test_whoever_has_a_key_is_not_locked_out_by_those_who_guess(browser: Browser) -> None:
    for _ in range(6):
        await browser.sign_in("wrong")
    assert (await browser.sign_in(OWN_KEY)).status_code == 303


async def test_another_address_is_not_held_for_it(premises: Premises, browser: Browser) -> None:
    await premises.passwords.change(PASSWORD)
    for _ in range(6):
        await browser.sign_in("wrong")
    async with Browser(premises, "192.0.2.2") as other:
        assert (await other.sign_in(PASSWORD)).status_code == 303


async def test_one_ipv6_network_is_one_address(premises: Premises) -> None:
    answers = []
    for host in range(6):
        async with Browser(premises, f"2001:db8:0:1::{host:x}") as browser:
            answers.append((await browser.sign_in("wrong")).status_code)
    assert answers == [401] * 5 + [429]
    async with Browser(premises, "2001:db8:0:2::1") as browser:
        assert (await browser.sign_in("wrong")).status_code == 401


async def test_guesses_made_at_the_same_moment_count_too(premises: Premises, browser: Browser) -> None:
    await premises.passwords.change(PASSWORD)
    guesses = await asyncio.gather(*(browser.post("/sign-in", data={"secret": f"guess {n}"}) for n in range(20)))
    assert sorted(guess.status_code for guess in guesses) == [401] * 5 + [429] * 15


async def test_right_secrets_do_not_count(browser: Browser) -> None:
    for _ in range(10):
        assert (await browser.sign_in(OWN_KEY)).status_code == 303
    for _ in range(5):
        assert (await browser.sign_in("wrong")).status_code == 401


async def test_many_addresses_use_up_the_passwords_attempts_and_not_the_keys(premises: Premises) -> None:
    await premises.passwords.change(PASSWORD)
    for place in range(12):
        async with Browser(premises, f"198.51.100.{place}") as stranger:
            for _ in range(5):
                assert (await stranger.sign_in("guess")).status_code == 401
    async with Browser(premises, "192.0.2.77") as honest:
        assert (await honest.sign_in(PASSWORD)).status_code == 429
        assert (await honest.sign_in(OWN_KEY)).status_code == 303
        premises.now += MINUTE
        assert (await honest.sign_in(PASSWORD)).status_code == 303


async def test_the_cookie_is_for_this_site_and_no_script(browser: Browser, premises: Premises) -> None:
    cookie = (await browser.sign_in()).headers["set-cookie"]
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert flags == {"httponly", "samesite=lax", "path=/", f"max-age={7 * DAY // 1000}"}
    async with Browser(premises, url="https://switchboard.test") as safe:
        assert "; Secure" in (await safe.sign_in()).headers["set-cookie"]


async def test_every_sign_in_has_a_cookie_of_its_own(browser: Browser) -> None:
    await browser.sign_in()
    first = browser.http.cookies["switchboard"]
    await browser.sign_in()
    assert browser.http.cookies["switchboard"] != first
    assert not await _opens(browser, first), "the one before ended with it"


async def test_forged_foreign_and_broken_cookies_open_nothing(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    good = browser.http.cookies["switchboard"]
    token = Signer(SECRET).open("cookie", good) or ""
    forged = Signer("a guess at the secret").sign("cookie", token)
    other_purpose = Signer(SECRET).sign("scan", token)
    unknown = Signer(SECRET).sign("cookie", "a token that was never given out")
    for cookie in (forged, other_purpose, unknown, good[:-1], good + "A", token, "", "."):
        assert not await _opens(browser, cookie), cookie
    assert await _opens(browser, good)


async def test_a_cookie_is_worth_nothing_after_the_sign_out_anywhere(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    cookie = browser.http.cookies["switchboard"]
    async with Browser(Premises(premises.store)) as elsewhere:
        assert await _opens(elsewhere, cookie)
        answer = await browser.post("/sign-out", data={"csrf": browser.csrf})
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "switchboard" not in browser.http.cookies
        assert not await _opens(browser, cookie)
        assert not await _opens(elsewhere, cookie)


async def test_a_sign_out_is_not_undone_by_a_cookie_that_was_due_to_be_renewed(
    premises: Premises, browser: Browser
) -> None:
    await browser.sign_in()
    premises.now += 2 * HOUR
    answer = await browser.post("/sign-out", data={"csrf": browser.csrf})
    assert len(answer.headers.get_list("set-cookie")) == 1
    assert "switchboard" not in browser.http.cookies


async def test_nobody_is_signed_out_by_another_site(browser: Browser) -> None:
    await browser.sign_in()
    assert (await browser.post("/sign-out")).status_code == 403
    assert await browser.is_in()


async def test_a_sign_in_ends_after_a_week_without_a_visit(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    cookie = browser.http.cookies["switchboard"]
    premises.now += 7 * DAY - 1
    async with Browser(premises) as watching:
        watching.http.cookies.set("switchboard", cookie)
        assert (await watching.get("/sign-in")).status_code == 303, "looking whether one is in does not renew it"
    premises.now += 1
    assert not await _opens(browser, cookie)


async def test_visits_keep_it_for_thirty_days_at_most(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    cookie = browser.http.cookies["switchboard"]
    lives: list[int] = []
    for _ in range(4):
        premises.now += 6 * DAY - HOUR
        answer = await browser.get("/whoami", Cookie=f"switchboard={cookie}")
        assert answer.status_code == 200
        found = re.search(r"switchboard=([^;]+);.*Max-Age=(\d+)", answer.headers["set-cookie"])
        assert found
        assert found[1] == cookie
        lives.append(int(found[2]) * 1000)
    assert lives == [7 * DAY] * 3 + [6 * DAY + 4 * HOUR]
    premises.now += 6 * DAY + 4 * HOUR - 1
    assert await _opens(browser, cookie)
    premises.now += 1
    assert not await _opens(browser, cookie)


async def test_the_cookie_is_not_renewed_at_every_request(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    premises.now += HOUR - 1
    assert "set-cookie" not in (await browser.get("/whoami")).headers
    premises.now += 1
    assert "set-cookie" in (await browser.get("/whoami")).headers


async def test_a_revoked_key_takes_its_sign_ins_with_it(premises: Premises, browser: Browser) -> None:
    key, secret = await premises.store.api_keys.create("Dana", ALL, NONE, 10)
    await browser.sign_in(secret)
    async with Browser(premises) as owner:
        await owner.sign_in(OWN_KEY)
        await premises.store.api_keys.revoke(key.id)
        assert not await browser.is_in()
        assert await owner.is_in()


async def test_so_does_a_changed_api_key_of_the_settings(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    async with Browser(Premises(premises.store, api_key="sk_the-next-key-of-these-tests")) as later:
        assert not await _opens(later, browser.http.cookies["switchboard"])


async def test_a_changed_dashboard_secret_ends_all(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    async with Browser(Premises(premises.store, secret="the-next-secret-of-these-tests")) as later:
        assert not await _opens(later, browser.http.cookies["switchboard"])


@pytest.mark.parametrize("by", [OWN_KEY, PASSWORD])
async def test_a_changed_password_ends_all_other_sign_ins(premises: Premises, by: str) -> None:
    await premises.passwords.change(PASSWORD)
    async with Browser(premises) as mine, Browser(premises) as other, Browser(premises) as by_key:
        await mine.sign_in(by)
        await other.sign_in(PASSWORD)
        await by_key.sign_in(OWN_KEY)
        token = Signer(SECRET).open("cookie", mine.http.cookies["switchboard"]) or ""
        await premises.passwords.change("the next password", stays=digest(token))
        assert await mine.is_in()
        assert not await other.is_in()
        assert not await by_key.is_in()
        assert (await other.sign_in(PASSWORD)).status_code == 401
        assert (await other.sign_in("the next password")).status_code == 303


async def test_a_password_that_was_right_while_it_was_changed_opens_nothing(premises: Premises, store: Store) -> None:
    await premises.passwords.change(PASSWORD)
    turn = await premises.passwords.verify(PASSWORD)
    await premises.passwords.change("the next password")
    assert turn is not None
    assert turn < (await store.sign_ins.password_hash()).turn


async def test_a_cleared_password_opens_nothing(premises: Premises, browser: Browser) -> None:
    await premises.passwords.change(PASSWORD)
    await browser.sign_in(PASSWORD)
    await premises.passwords.clear()
    assert not await premises.passwords.is_set()
    assert not await browser.is_in()
    assert (await browser.sign_in(PASSWORD)).status_code == 401


async def test_all_can_be_signed_out_at_once(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    await premises.store.sign_ins.remove_all()
    assert not await browser.is_in()
    await browser.sign_in()
    assert await browser.is_in()


async def test_a_sign_in_that_ended_is_not_revived_by_a_late_visit(premises: Premises, browser: Browser) -> None:
    await browser.sign_in()
    token = Signer(SECRET).open("cookie", browser.http.cookies["switchboard"]) or ""
    seen = await premises.store.sign_ins.get(digest(token), premises.now)
    assert seen is not None
    await premises.store.sign_ins.remove(digest(token))
    await premises.store.sign_ins.touch(digest(token), seen, premises.now)
    assert not await browser.is_in()


async def test_after_the_sign_in_comes_the_page_that_was_wanted(browser: Browser) -> None:
    asked = await browser.get("/whoami?a=1&b=%2F%2F")
    assert asked.status_code == 303
    form = await browser.get(asked.headers["location"])
    assert "then=/whoami?a=1&b=%2F%2F" in form.text
    answer = await browser.sign_in(then="/whoami?a=1&b=%2F%2F")
    assert answer.headers["location"] == "/whoami?a=1&b=%2F%2F"
    again = await browser.get("/sign-in?next=/whoami")
    assert (again.status_code, again.headers["location"]) == (303, "/whoami")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.test", "/\\evil.test", "\\\\evil.test", "https://evil.test", "javascript:alert(1)", "evil.test",
        "/\t/evil.test", "/\n/evil.test", "/\r\nSet-Cookie: a=b", " //evil.test", "/ok\\..\\evil", "/\x00", "/a b", "",
        "/\u2028/evil.test", "/" + "a" * 3000,
    ],
)  # fmt: skip
async def test_and_no_other_place(browser: Browser, elsewhere: str) -> None:
    answer = await browser.sign_in(then=elsewhere)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    known = await browser.http.get("/sign-in", params={"next": elsewhere})
    assert (known.status_code, known.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    ("language", "direction", "title", "wrong"),
    [("en", "ltr", "Sign in", "neither the API key nor the password"), ("he", "rtl", "כניסה", "לא מפתח ה־API וגם לא")],
)
async def test_the_page_itself(store: Store, language: str, direction: str, title: str, wrong: str) -> None:
    pages = Pages(
        Catalogue(), Static(), Signer(SECRET), ZoneInfo("UTC"), lambda: 0, Frame(secrets_file="data/secrets.json")
    )
    async with Browser(Premises(store, shown=pages)) as browser:
        browser.http.headers["Accept-Language"] = language
        page = (await browser.get('/sign-in?next=/"><script>')).text
        assert f'lang="{language}" dir="{direction}"' in page
        assert f"<h1>{title}</h1>" in page
        assert 'autocomplete="current-password"' in page
        assert "data/secrets.json" in page
        assert 'role="alert"' not in page
        assert '"><script>' not in page
        refused = (await browser.sign_in("wrong")).text
        assert re.search(f'role="alert"[^>]*>[^<]*{wrong}', refused)
        for _ in range(4):
            await browser.sign_in("wrong")
        assert re.search('role="alert"[^>]*>[^<]*60 ', (await browser.sign_in("wrong")).text)


async def _opens(browser: Browser, cookie: str) -> bool:
    browser.http.cookies.clear()
    answer = await browser.get("/whoami", Cookie=f"switchboard={cookie}")
    assert answer.status_code in {200, 303}
    return answer.status_code == 200
