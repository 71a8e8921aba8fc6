"""The page of settings: what is in force, the password, API keys and sign-ins; and who is let in afterwards."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from switchboard.dashboard.access.one_time_links import one_time_url
from switchboard.settings import Settings
from tests.support.board import UTC, Board
from tests.support.dashboard import ORIGIN, SECRET, Desk, Shown, opened_desk

pytestmark = pytest.mark.anyio
PASSWORD = "correct horse battery"


async def submit(desk: Desk, path: str, status: int = 200, language: str = "en", **fields: Any) -> Shown:
    """As a browser sends a plain form: the answer is a page, or leads to one."""
    headers = {"Accept": "text/html", "Accept-Language": language, "Origin": ORIGIN}
    answer = await desk.http.post(path, data={"csrf": desk.csrf, **fields}, headers=headers)
    assert answer.status_code == status, answer.text[-2000:]
    return Shown(answer)


async def sign_in(desk: Desk, secret: str) -> httpx.Response:
    desk.http.cookies.clear()
    return await desk.http.post("/sign-in", data={"secret": secret}, headers={"Origin": ORIGIN})


# --- the configuration -------------------------------------------------------------------------------------------


async def test_every_variable_is_shown_with_its_value_and_meaning(desk: Desk) -> None:
    page = await desk.page("/settings")
    settings = Settings(_env_file=None, data_dir=Path("data"), timezone=UTC)
    assert [name for name in settings.effective() if name not in page.text] == []
    assert "How many characters a message may have." in page.text
    assert "into the file .env" in page.text
    assert page.text.count("made at the first start, kept in secrets.json") == 3


async def test_what_was_changed_is_marked_and_secrets_stay_hidden(board: Board) -> None:
    settings = Settings(
        _env_file=None,
        timezone=UTC,
        max_text=77,
        api_key="sk_never_to_be_shown",
        redis_url="redis://someone:never-to-be-shown@198.51.100.9/0",
    )
    async with opened_desk(board, configuration=settings.effective(), defaults=settings.defaults()) as desk:
        page = await desk.page("/settings")
    assert "77 changed Otherwise: 4095" in page.text
    assert "redis://********@198.51.100.9/0" in page.text
    assert "to-be-shown" not in page.html.replace("_", "-")


async def test_names_are_shown_as_they_are_and_do_nothing(board: Board, desk: Desk) -> None:
    await board.store.api_keys.create("<b>x</b>", frozenset({"send"}), frozenset(), 60)
    page = await desk.page("/settings")
    assert "<b>x</b>" in page.text
    assert "<b>x</b>" not in page.html


async def test_in_hebrew(board: Board, desk: Desk) -> None:
    await board.store.api_keys.create("shop", frozenset({"send", "read", "admin"}), frozenset(), 60)
    page = await desk.page("/settings", language="he")
    assert 'dir="rtl"' in page.html
    assert "מפתחות API" in page.text
    assert "כמה תווים מותרים בהודעה." in page.text


# --- the password ------------------------------------------------------------------------------------------------


async def test_a_password_opens_once_it_is_set_and_others_are_signed_out(board: Board, desk: Desk) -> None:
    async with opened_desk(board) as other:
        done = await submit(desk, "/settings/password", 303, new=PASSWORD, again=PASSWORD)
        assert done.response.headers["location"] == "/settings"
        page = await desk.page("/settings")
        assert "The password is set." in page.text
        assert "Change the password" in page.text
        assert PASSWORD not in page.html
        await other.page("/settings", status=303)
    assert (await sign_in(desk, PASSWORD)).status_code == 303


@pytest.mark.parametrize(
    ("new", "again", "said"),
    [
        (PASSWORD, PASSWORD + "x", "The two are not the same"),
        ("short", "short", "at least 10 characters, and at most"),
        ("x" * 1001, "x" * 1001, "at most 1000"),
        ("", "", "at least 10 characters, and at most"),
    ],
)
async def test_a_password_that_will_not_do(board: Board, desk: Desk, new: str, again: str, said: str) -> None:
    page = await submit(desk, "/settings/password", 400, new=new, again=again)
    assert said in page.text
    assert not new or f'value="{new}"' not in page.html
    assert (await board.store.sign_ins.password_hash()).hash is None


async def test_a_password_that_will_not_do_in_hebrew(desk: Desk) -> None:
    assert "הסיסמאות אינן זהות" in (await submit(desk, "/settings/password", 400, "he", new=PASSWORD, again="x")).text


async def test_a_removed_password_opens_no_more(desk: Desk) -> None:
    assert "/settings/password/remove" not in (await desk.page("/settings")).actions
    await submit(desk, "/settings/password", 303, new=PASSWORD, again=PASSWORD)
    assert "/settings/password/remove" in (await desk.page("/settings")).actions
    gone = await desk.press("/settings/password/remove")
    assert gone.response.headers["hx-redirect"] == "/settings"
    assert "No password is set" in (await desk.page("/settings")).text
    assert (await sign_in(desk, PASSWORD)).status_code == 401


async def test_nothing_changes_without_the_page_s_own_token(board: Board, desk: Desk) -> None:
    desk.csrf = "another"
    await submit(desk, "/settings/password", 403, new=PASSWORD, again=PASSWORD)
    await submit(desk, "/settings/keys", 403, name="shop", scopes=["send"], rate="10")
    assert (await board.store.sign_ins.password_hash()).hash is None
    assert await board.store.api_keys.list() == []


# --- API keys ----------------------------------------------------------------------------------------------------


async def test_a_new_key_is_shown_once_and_works(board: Board, desk: Desk) -> None:
    await board.proxy()
    session = await board.provision()
    made = await submit(desk, "/settings/keys", name=" shop ", scopes=["read"], sessions=f"{session},", rate="600")
    (secret,) = [word for word in made.text.split() if word.startswith("sk_") and "…" not in word]
    assert made.response.headers["cache-control"] == "no-store"
    (key,) = await board.store.api_keys.list()
    assert (key.name, key.scopes, key.sessions, key.per_minute) == (
        "shop",
        frozenset({"read"}),
        frozenset({session}),
        600,
    )
    assert (await board.ask("GET", f"/api/sessions/{session}", key=secret)).status_code == 200
    page = await desk.page("/settings")
    assert secret not in page.html
    assert key.id in page.text
    assert f"/sessions/{session}" in page.links


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": " "}, "Give it a name"),
        ({"name": "x" * 61}, "Give it a name"),
        ({"name": "a\u202eb"}, "Give it a name"),
        ({"scopes": []}, "Choose at least one thing"),
        ({"scopes": ["root"]}, "Choose at least one thing"),
        ({"sessions": "worker_404"}, "is no session here"),
        ({"sessions": "../x"}, "is no session here"),
        ({"rate": "0"}, "A whole number"),
        ({"rate": "1000001"}, "A whole number"),
        ({"rate": "²"}, "A whole number"),
        ({"rate": ""}, "A whole number"),
    ],
)
async def test_a_key_that_will_not_do(board: Board, desk: Desk, changes: dict[str, Any], said: str) -> None:
    fields: dict[str, Any] = {"name": "shop", "scopes": ["send"], "sessions": "", "rate": "600"} | changes
    page = await submit(desk, "/settings/keys", 400, **fields)
    assert said in page.text
    assert {"tag": "details", "class": "form-below", "open": None} in page.attributes, "the form stays open"
    assert await board.store.api_keys.list() == []


async def test_a_form_makes_one_key_however_often_it_is_sent(board: Board, desk: Desk) -> None:
    once = once_in(await desk.page("/settings"))
    fields: dict[str, Any] = {"name": "shop", "scopes": ["send"], "rate": "60", "once": once}
    refused = await submit(desk, "/settings/keys", 400, **fields | {"rate": "x"})
    assert once_in(refused) == once, "it is still the same form"
    made = await submit(desk, "/settings/keys", **fields)
    assert "sk_" in made.text
    again = await submit(desk, "/settings/keys", 303, **fields)
    assert again.response.headers["location"] == "/settings"
    page = await desk.page("/settings")
    assert "no second key was made" in page.text
    assert len(await board.store.api_keys.list()) == 1
    await submit(desk, "/settings/keys", **fields | {"once": once_in(page)})
    assert len(await board.store.api_keys.list()) == 2


def once_in(page: Shown) -> str:
    (token,) = [given["value"] for given in page.attributes if given.get("name") == "once"]
    assert token
    return token


async def test_no_switch_of_languages_takes_the_secret_away(desk: Desk) -> None:
    assert "/language" in (await desk.page("/settings")).actions
    made = await submit(desk, "/settings/keys", name="shop", scopes=["send"], rate="60")
    assert "/language" not in made.actions


async def test_a_revoked_key_is_gone(board: Board, desk: Desk) -> None:
    key, _ = await board.store.api_keys.create("shop", frozenset({"send"}), frozenset(), 60)
    assert f"/settings/keys/{key.id}/revoke" in (await desk.page("/settings")).actions
    await desk.press(f"/settings/keys/{key.id}/revoke")
    page = await desk.page("/settings")
    assert f"Key {key.id} is revoked." in page.text
    assert await board.store.api_keys.list() == []
    await desk.press(f"/settings/keys/{key.id}/revoke", status=404)


@pytest.mark.parametrize("name", ["x", "..", "0123456789abcdef", "ABCDEF012345", "01234567890 "])
async def test_what_is_no_key(board: Board, desk: Desk, name: str) -> None:
    await board.store.api_keys.create("shop", frozenset({"send"}), frozenset(), 60)
    answer = await desk.http.post(
        f"/settings/keys/{name}/revoke", headers={"X-CSRF-Token": desk.csrf, "Origin": ORIGIN}
    )
    assert answer.status_code in {400, 404}
    assert len(await board.store.api_keys.list()) == 1


# --- sign-ins ----------------------------------------------------------------------------------------------------


async def test_how_one_came_in_is_told_in_words(board: Board, desk: Desk) -> None:
    assert "You came in with this installation's own API key" in (await desk.page("/settings")).text
    await submit(desk, "/settings/password", 303, new=PASSWORD, again=PASSWORD)
    await sign_in(desk, PASSWORD)
    assert "You came in with the password" in (await desk.page("/settings")).text
    assert "נכנסתם באמצעות הסיסמה" in (await desk.page("/settings", language="he")).text
    _, secret = await board.store.api_keys.create("link", frozenset({"admin"}), frozenset(), 60)
    await sign_in(desk, secret)
    assert "You came in with the API key link" in (await desk.page("/settings")).text
    desk.http.cookies.clear()
    await desk.http.post(one_time_url("", SECRET, board.now), headers={"Origin": ORIGIN})
    assert "You came in with a one-time link" in (await desk.page("/settings")).text


async def test_signing_out_everywhere_ends_every_sign_in(board: Board, desk: Desk) -> None:
    async with opened_desk(board) as other:
        gone = await desk.press("/settings/sign-out-everywhere")
        assert gone.response.headers["hx-redirect"] == "/sign-in"
        await desk.page("/settings", status=303)
        await other.page("/settings", status=303)
    assert "All sign-ins have ended." in (await desk.page("/sign-in")).text
