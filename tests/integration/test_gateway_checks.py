"""What is checked before a message is queued, in which order, and what each refusal says."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from switchboard.domain.sessions import State
from switchboard.domain.trust import Overrides
from tests.support.driver import DAY, HOUR, MINUTE, UNHURRIED, Driver
from tests.support.gateway import OWN_KEY, SECRET_TEXT, Api, good, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
ISRAELI = "972509876543"


async def make_key(api: Api, scopes: str = "send", sessions: str = "", per_minute: int = 1000) -> str:
    _, secret = await api.driver.store.api_keys.create(
        "a test's", frozenset(scopes.split()), frozenset(sessions.split()), per_minute
    )
    return secret


async def spend_the_day(driver: Driver) -> None:
    """The account has one message a day, and this is it."""
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=1), None, driver.now)
    await driver.send()
    claim = await driver.attempt()
    await driver.confirm(claim.message_id)


async def fill_the_room(driver: Driver, api: Api, waiting: int) -> list[str]:
    """The account has sent its one message of today, and so many wait behind it. The ids of those."""
    await driver.link("a", PHONE, replace(UNHURRIED, daily=1))
    rows = [{"to": driver.someone(), "text": "x"} for _ in range(waiting + 1)]
    await api.post("/api/v1/send/batch", {"messages": rows, "sessionId": "a"})
    driver.now += 1000
    await driver.settle_down()
    return await driver.queue(PHONE)


async def test_a_request_that_breaks_every_rule_is_refused_for_the_first_one_and_then_the_next(
    driver: Driver, api: Api
) -> None:
    """Everything is wrong from the start; each step mends what the answer before it named. With the real numbers."""
    store = driver.store
    waiting = await fill_the_room(driver, api, 1000)
    await store.sessions.register("mine", driver.now)
    await store.suppressions.add(ISRAELI)
    body: dict[str, Any] = {"to": "12", "message": "", "sessionId": "of-somebody-else"}

    async def ask(key: str | None) -> httpx.Response:
        return await api.ask("POST", "/api/v1/send", json=body, key=key)

    refused(await ask(None), 401, "UNAUTHORIZED")
    refused(await ask("sk_nobody-knows-this-one"), 401, "UNAUTHORIZED")
    refused(await ask(await make_key(api, scopes="read", sessions="mine")), 403, "FORBIDDEN", scope="send")
    key = await make_key(api, sessions="mine nowhere", per_minute=2)
    for message in (SECRET_TEXT, "") * 2:  # more than its rate: who may is asked before how often
        body["message"] = message
        refused(await ask(key), 403, "FORBIDDEN", sessionId="of-somebody-else")
    body["sessionId"] = "nowhere"
    refused(await ask(key), 400, "INVALID_REQUEST", field="message")
    refused(await ask(key), 400, "INVALID_REQUEST")
    refused(await ask(key), 429, "RATE_LIMITED")
    driver.now += MINUTE
    body["message"] = SECRET_TEXT
    refused(await ask(key), 400, "INVALID_REQUEST", field="to")
    refused(await ask(key), 400, "INVALID_REQUEST")
    refused(await ask(key), 429, "RATE_LIMITED")
    driver.now += MINUTE
    body["to"] = ISRAELI
    refused(await ask(key), 404, "SESSION_NOT_FOUND")
    body["sessionId"] = "mine"
    refused(await ask(key), 409, "SESSION_NOT_LINKED")
    refused(await ask(key), 429, "RATE_LIMITED")
    await store.sessions.connect("mine", PHONE, driver.now)
    driver.now += MINUTE
    refused(await ask(key), 403, "RECIPIENT_OPTED_OUT")
    await store.suppressions.remove(ISRAELI)
    refused(await ask(key), 429, "DAILY_LIMIT_REACHED", limit=1, sent=1)
    await store.accounts.override(PHONE, replace(UNHURRIED, daily=2), None, driver.now)
    driver.now += MINUTE
    refused(await ask(key), 429, "QUEUE_FULL", room=1000)
    await api.delete(f"/api/v1/queue/a/{waiting[0]}")
    assert good(await ask(key))["position"] == 1000


async def test_what_is_scheduled_needs_no_room(driver: Driver, api: Api) -> None:
    await fill_the_room(driver, api, 1000)
    driver.now += 12 * HOUR
    refused(await api.try_send(), 429, "QUEUE_FULL", room=1000)
    later = datetime.fromtimestamp(driver.now / 1000 + 1, UTC)
    assert (await api.send({"scheduledFor": later.isoformat()}))["position"] is None


async def test_the_one_that_makes_it_a_thousand_is_still_taken(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.sessions.disconnect("a", driver.now)
    rows = [{"to": driver.someone(), "text": "x"} for _ in range(999)]
    await api.post("/api/v1/send/batch", {"messages": rows, "sessionId": "a"})
    driver.now += 1000
    await driver.settle_down()
    assert (await api.send())["position"] == 1000
    refused(await api.try_send(), 429, "QUEUE_FULL", room=1000)


# 1. The key.


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": ""}, {"Authorization": "Basic c2s="}, {"Authorization": "Bearer"}]
)
async def test_without_a_key_nothing_is_answered(api: Api, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api.app), base_url="http://switchboard") as stranger:
        for path, operations in api.document.content["paths"].items():
            if path.startswith("/health"):
                continue
            for method in operations:
                response = await stranger.request(method, path, headers=headers)
                api.document.check(response)
                refused(response, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("headers", [{"X-API-Key": OWN_KEY}, {"Authorization": f"Bearer {OWN_KEY}"}])
async def test_a_key_may_come_in_either_header(driver: Driver, api: Api, headers: dict[str, str]) -> None:
    await driver.link("a", PHONE)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api.app), base_url="http://switchboard") as caller:
        good(await caller.get("/api/v1/queue/a", headers=headers))


SCOPES = {
    ("POST", "/api/v1/send"): "send",
    ("POST", "/api/send"): "send",
    ("POST", "/api/v1/send/batch"): "send",
    ("DELETE", "/api/v1/queue/a/{id}"): "send",
    ("DELETE", "/api/v1/batches/{id}"): "send",
    ("POST", "/api/v1/dead-letters/{id}/retry"): "send",
    ("DELETE", "/api/v1/dead-letters/{id}"): "send",
    ("DELETE", "/api/v1/messages/{id}"): "send",
    ("GET", "/api/v1/messages"): "read",
    ("GET", "/api/v1/messages/{id}/status"): "read",
    ("GET", "/api/v1/queue/a"): "read",
    ("GET", "/api/v1/batches"): "read",
    ("GET", "/api/v1/batches/{id}"): "read",
    ("GET", "/api/v1/dead-letters"): "read",
    ("GET", "/api/v1/stats/a"): "read",
    ("GET", "/api/v1/stats/accounts/972500000001"): "read",
    ("GET", "/api/v1/stats"): "read",
    ("GET", "/api/anti-ban/sessions/a/limits"): "admin",
    ("PUT", "/api/anti-ban/sessions/a/limits"): "admin",
    ("DELETE", "/api/anti-ban/sessions/a/limits"): "admin",
}


@pytest.mark.parametrize("scope", ["send", "read", "admin"])
async def test_a_key_opens_what_its_scopes_say_and_nothing_else(driver: Driver, api: Api, scope: str) -> None:
    await driver.link("a", PHONE)
    key = await make_key(api, scopes=scope)
    for (method, path), needed in SCOPES.items():
        response = await api.ask(method, path.replace("{id}", "0" * 18), key=key)
        if scope in {needed, "admin"}:
            assert response.status_code != 403, (method, path)
        else:
            refused(response, 403, "FORBIDDEN", scope=needed)


async def test_every_path_is_behind_one_of_those_scopes(api: Api) -> None:
    documented = {
        (method.upper(), path) for path, operations in api.document.content["paths"].items() for method in operations
    }
    behind = {(method, path) for method, path in documented if not path.startswith("/health")}
    asked = [api.document.operation(method, path) for method, path in SCOPES]
    assert all(operation is not None for operation in asked)
    assert len(behind) == len(SCOPES)


async def test_a_key_of_some_sessions_can_neither_touch_nor_see_the_others(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", "972500000002")
    key = await make_key(api, scopes="send read admin", sessions="b")
    mine, theirs = await api.send({"sessionId": "b"}), await api.send()
    batch = await api.batch(1)
    good(await api.try_send({"sessionId": "b"}, key=key))
    good(await api.try_send({"sessionId": ..., "phone": "972500000002"}, key=key))
    await api.get("/api/v1/queue/b", key=key)
    await api.get(f"/api/v1/messages/{mine['messageId']}/status", key=key)
    await api.get("/api/anti-ban/sessions/b/limits", key=key)
    await api.get("/api/v1/stats/b", key=key)
    await api.get("/api/v1/stats/accounts/972500000002", key=key)
    for refusal in [
        await api.try_send({"sessionId": "a"}, key=key),
        await api.try_send({"sessionId": ..., "phone": PHONE}, key=key),
        await api.try_send({"sessionId": ...}, key=key),
        await api.ask("GET", "/api/v1/queue/a", key=key),
        await api.ask("DELETE", f"/api/v1/queue/a/{theirs['messageId']}", key=key),
        await api.ask("GET", f"/api/v1/messages/{theirs['messageId']}/status", key=key),
        await api.ask("DELETE", f"/api/v1/messages/{theirs['messageId']}", key=key),
        await api.ask("GET", f"/api/v1/batches/{batch['batchId']}", key=key),
        await api.ask("DELETE", f"/api/v1/batches/{batch['batchId']}", key=key),
        await api.ask("GET", "/api/v1/stats/a", key=key),
        await api.ask("GET", f"/api/v1/stats/accounts/{PHONE}", key=key),
        await api.ask("GET", "/api/v1/stats", key=key),
        await api.ask("GET", "/api/anti-ban/sessions/a/limits", key=key),
        await api.ask("PUT", "/api/anti-ban/sessions/a/limits", json={"daily": 1}, key=key),
        await api.ask("DELETE", "/api/anti-ban/sessions/a/limits", key=key),
    ]:
        refused(refusal, 403, "FORBIDDEN")


async def test_a_revoked_key_is_no_key(driver: Driver, api: Api) -> None:
    made, secret = await driver.store.api_keys.create("short-lived", frozenset({"send"}), frozenset(), 10)
    assert await driver.store.api_keys.revoke(made.id)
    refused(await api.try_send(key=secret), 401, "UNAUTHORIZED")


# 1. Its rate.


async def test_a_key_has_its_calls_of_a_minute_and_is_told_when_the_next_one_starts(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    key = await make_key(api, scopes="send read", per_minute=3)
    driver.now += 17_000
    good(await api.try_send(key=key))
    refused(await api.try_send({"to": "12"}, key=key), 400, "INVALID_REQUEST")  # a bad call is a call
    await api.get("/api/v1/queue/a", key=key)
    for response in [
        await api.try_send(key=key),
        await api.ask("GET", "/api/v1/queue/a", key=key),
        await api.ask("POST", "/api/v1/send", json={}, key=key),
        await api.try_send({"to": "12"}, key=key),
    ]:
        refused(response, 429, "RATE_LIMITED", retryAfter=43)
        assert response.headers["Retry-After"] == "43"
    good(await api.try_send())  # other keys are not in its way
    driver.now += 43_000 - 1
    refused(await api.try_send(key=key), 429, "RATE_LIMITED", retryAfter=1)
    driver.now += 1
    good(await api.try_send(key=key))


async def test_the_owners_key_has_a_rate_too(driver: Driver) -> None:
    await driver.link("a", PHONE)
    api = Api(driver, per_minute=1)
    good(await api.try_send())
    assert refused(await api.try_send(), 429, "RATE_LIMITED")["retryAfter"] == 60
    await api.close()


async def test_a_call_is_counted_once_however_often_the_store_is_asked(driver: Driver, api: Api) -> None:
    """The first send through a session meets an outdated guard and asks again."""
    await driver.link("a", PHONE)
    key = await make_key(api, per_minute=2)
    good(await api.try_send(key=key))
    refused(await api.try_send({"phone": "972599999999"}, key=key), 400, "INVALID_REQUEST", field="phone")
    refused(await api.try_send(key=key), 429, "RATE_LIMITED")


# 2. The shape.


@pytest.mark.parametrize(("length", "taken"), [(0, False), (1, True), (4095, True), (4096, False)])
@pytest.mark.parametrize("letter", ["x", "ש", "👋"])
async def test_a_text_has_1_to_4095_characters(driver: Driver, api: Api, length: int, taken: bool, letter: str) -> None:
    await driver.link("a", PHONE)
    alone = await api.try_send({"message": letter * length})
    row = await api.try_batch([{"to": ISRAELI, "text": letter * length}])
    if taken:
        good(alone)
        good(row)
        return
    assert refused(alone, 400, "INVALID_REQUEST", field="message")["message"].startswith("message: ")
    [bad] = refused(row, 400, "INVALID_REQUEST", field="messages")["rows"]
    assert (bad["index"], bad["field"]) == (0, "text")


WRONG: list[tuple[dict[str, object], str]] = [
    ({"to": ...}, "to"),
    ({"to": 972509876543}, "to"),
    ({"to": ""}, "to"),
    ({"to": "9" * 41}, "to"),
    ({"to": "1202555012"}, "to"),
    ({"to": "120255501234"}, "to"),
    ({"to": "972-50-CALL-ME"}, "to"),
    ({"to": "050-987-6543"}, "to"),
    ({"to": "999123456789"}, "to"),
    ({"message": ...}, "message"),
    ({"message": None}, "message"),
    ({"message": 17}, "message"),
    ({"message": "  \n\t "}, "message"),
    ({"message": ..., "text": ""}, "text"),
    ({"text": SECRET_TEXT}, "text"),
    ({"phone": "12"}, "phone"),
    ({"sessionId": 1}, "sessionId"),
    ({"sessionId": "s" * 65}, "sessionId"),
    ({"priority": 0}, "priority"),
    ({"priority": 4}, "priority"),
    ({"priority": SECRET_TEXT}, "priority"),
    ({"scheduledFor": "tomorrow"}, "scheduledFor"),
    ({"scheduledFor": "2026-06-10T09:00:00"}, "scheduledFor"),
    ({"scheduledFor": "9999-12-31T23:59:59-12:00"}, "scheduledFor"),
    ({"scheduledFor": SECRET_TEXT}, "scheduledFor"),
    ({"deferrable": SECRET_TEXT}, "deferrable"),
    ({"reference": "r" * 201}, "reference"),
    ({"reference": [SECRET_TEXT]}, "reference"),
    ({"recipient": ISRAELI}, "recipient"),
]


@pytest.mark.parametrize(("fields", "field"), WRONG)
async def test_a_field_that_is_wrong_is_named(driver: Driver, api: Api, fields: dict[str, object], field: str) -> None:
    await driver.link("a", PHONE)
    body = refused(await api.try_send(fields), 400, "INVALID_REQUEST", field=field)
    assert body["message"].startswith(f"{field}: ")
    assert await api.queue() == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'"hello"', b"null", b'{"to": "\xff"}', b'{"message": "\\ud800"}']
)
async def test_a_body_that_is_no_request_is_refused(api: Api, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    refused(await api.ask("POST", "/api/v1/send", content=content, headers=headers), 400, "INVALID_REQUEST")


async def test_a_body_of_more_than_256_mib_is_not_read(api: Api) -> None:
    headers = {"Content-Length": str(256 * 1024 * 1024 + 1)}
    response = await api.ask("POST", "/api/v1/send/batch", content=b"{}", headers=headers)
    refused(response, 413, "PAYLOAD_TOO_LARGE", limit=256 * 1024 * 1024)


@pytest.mark.parametrize("written", ["972509876543", "+972 50-987-6543", "(972) 50.987.6543", "00972509876543"])
async def test_a_number_may_be_written_as_people_write_it(driver: Driver, api: Api, written: str) -> None:
    await driver.link("a", PHONE)
    answer = await api.send({"to": written})
    assert (await api.status(answer["messageId"]))["to"] == ISRAELI


# 3. The sender.


@pytest.mark.parametrize("sender", [{"sessionId": "b"}, {"sessionId": ..., "phone": "972500000009"}])
async def test_a_sender_nobody_knows(driver: Driver, api: Api, sender: dict[str, object]) -> None:
    await driver.link("a", PHONE)
    named = sender.get("phone") or sender["sessionId"]
    refused(await api.try_send(sender), 404, "SESSION_NOT_FOUND", sender=named)


@pytest.mark.parametrize("session", ["outbox:a", "a:b", "..", "é", " ", "-a"])
async def test_a_session_id_that_can_not_be_one_is_not_found(driver: Driver, api: Api, session: str) -> None:
    """Whatever else the store keeps, it is not taken for a session."""
    await driver.link("a", PHONE)
    await driver.send()
    await driver.hand_over()
    refused(await api.try_send({"sessionId": session}), 404, "SESSION_NOT_FOUND")
    refused(await api.try_batch([{"to": ISRAELI, "text": "x"}], sessionId=session), 404, "SESSION_NOT_FOUND")
    if session != "..":  # a path of its own meaning
        refused(await api.ask("GET", f"/api/v1/queue/{session}"), 404, "SESSION_NOT_FOUND")
        refused(await api.ask("GET", f"/api/v1/stats/{session}"), 404, "SESSION_NOT_FOUND")
        limits = f"/api/anti-ban/sessions/{session}/limits"
        refused(await api.ask("GET", limits), 404, "SESSION_NOT_FOUND")
        refused(await api.ask("PUT", limits, json={}), 404, "SESSION_NOT_FOUND")


async def test_a_session_that_was_never_linked(driver: Driver, api: Api) -> None:
    await driver.store.sessions.register("new", driver.now)
    refused(await api.try_send({"sessionId": "new"}), 409, "SESSION_NOT_LINKED", sessionId="new")
    refused(await api.ask("GET", "/api/v1/queue/new"), 409, "SESSION_NOT_LINKED", sessionId="new")


async def test_a_session_that_was_linked_once_may_be_sent_through_while_it_is_away(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.sessions.disconnect("a", driver.now, State.LOGGED_OUT)
    answer = await api.send()
    assert answer["position"] == 1
    assert answer["estimatedDelivery"] is None


async def test_a_session_and_a_phone_that_is_not_its_own(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    refused(await api.try_send({"phone": "972500000009"}), 400, "INVALID_REQUEST", field="phone")
    good(await api.try_send({"phone": PHONE}))


# 4. The recipient.


async def test_a_recipient_who_opted_out_in_any_spelling(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.suppressions.add(ISRAELI)
    for to in (ISRAELI, "+972 50-987-6543"):
        refused(await api.try_send({"to": to}), 403, "RECIPIENT_OPTED_OUT", to=ISRAELI)
    refused(await api.try_send({"to": ISRAELI, "sessionId": ...}), 403, "RECIPIENT_OPTED_OUT")
    await driver.store.suppressions.remove(ISRAELI)
    await api.send({"to": ISRAELI})


# 5. The day.


async def test_the_days_limit_says_how_much_was_sent_and_when_it_starts_anew(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await spend_the_day(driver)
    refused(await api.try_send(), 429, "DAILY_LIMIT_REACHED", limit=1, sent=1, resetsAt="2026-06-10T00:00:00+00:00")
    driver.now += 12 * HOUR - 1
    refused(await api.try_send(), 429, "DAILY_LIMIT_REACHED")
    driver.now += 1
    await api.send()


async def test_the_day_is_the_accounts_own(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    one_a_day = replace(UNHURRIED, daily=1)
    await driver.store.accounts.override(PHONE, one_a_day, "Pacific/Auckland", driver.now)  # midnight at noon UTC
    driver.now -= 1
    await driver.send()
    await driver.settle_down()
    refused(await api.try_send(), 429, "DAILY_LIMIT_REACHED", resetsAt="2026-06-10T00:00:00+12:00")
    driver.now += 1
    await api.send()


async def test_with_deferrable_it_is_queued_for_the_next_day(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await spend_the_day(driver)
    answer = await api.send({"deferrable": True})
    assert answer["position"] is None
    assert answer["estimatedDelivery"] == "2026-06-10T00:00:00+00:00"
    shown = await api.status(answer["messageId"])
    assert (shown["status"], shown["scheduledFor"]) == ("scheduled", None), "nobody asked for a moment"
    assert shown["waiting"] == {"reason": "daily_limit", "until": "2026-06-10T00:00:00+00:00"}
    driver.now += 12 * HOUR
    assert await driver.hand_over() == answer["messageId"]


async def test_one_for_later_on_a_spent_day_keeps_the_moment_it_was_asked_for(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await spend_the_day(driver)
    answer = await api.send({"deferrable": True, "scheduledFor": "2026-06-09T15:00:00Z"})
    shown = await api.status(answer["messageId"])
    assert shown["scheduledFor"] == "2026-06-09T15:00:00+00:00"
    assert shown["waiting"] == {"reason": "daily_limit", "until": "2026-06-10T00:00:00+00:00"}


async def test_deferrable_changes_nothing_while_the_day_has_room(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    assert (await api.send({"deferrable": True}))["position"] == 1


async def test_below_the_limit_it_is_queued_even_when_the_queue_is_longer_than_the_day(
    driver: Driver, api: Api
) -> None:
    await driver.link("a", PHONE, replace(UNHURRIED, daily=2))
    days = [(await api.send())["estimatedDelivery"][:10] for _ in range(5)]
    assert days == ["2026-06-09", "2026-06-09", "2026-06-10", "2026-06-10", "2026-06-11"]


async def test_a_message_for_another_day_is_taken_on_a_day_that_is_spent(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await spend_the_day(driver)
    await api.send({"scheduledFor": "2026-06-10T00:00:00Z"})
    refused(await api.try_send({"scheduledFor": "2026-06-09T23:59:59Z"}), 429, "DAILY_LIMIT_REACHED")
    refused(await api.try_batch([{"to": ISRAELI, "text": "x"}]), 429, "DAILY_LIMIT_REACHED")


async def test_a_cold_account_has_20_a_day(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE, Overrides(per_minute=120, base_delay_ms=0, jitter_ms=0))
    for _ in range(20):
        await driver.send()
        claim = await driver.attempt()
        await driver.confirm(claim.message_id)
    refused(await api.try_send(), 429, "DAILY_LIMIT_REACHED", limit=20, sent=20)
    assert driver.now % DAY == 12 * HOUR  # all of them at once: only the day held


async def test_the_limits_are_those_of_the_phone_a_session_is_linked_to_now(driver: Driver, api: Api) -> None:
    """The gateway remembers accounts; one that a session has left is none of its business any more."""
    await driver.link("a", PHONE, replace(UNHURRIED, daily=500))
    await api.send()
    await driver.link("b", "972500000002", replace(UNHURRIED, daily=1))
    await driver.send("b")
    await driver.settle_down()
    await driver.relink("a", "972500000002")
    refused(await api.try_send(), 429, "DAILY_LIMIT_REACHED", limit=1, sent=1)
    await driver.relink("a", PHONE)
    await api.send()


# What all of them share.


async def test_a_path_that_does_not_exist(api: Api) -> None:
    refused(await api.ask("GET", "/api/v1/nothing"), 404, "NOT_FOUND")
    response = await api.ask("GET", "/api/v1/send")
    refused(response, 405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "POST"
