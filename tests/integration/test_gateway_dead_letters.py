"""Dead letters: what was given up is listed, and a person tries it again or lets it go."""

import pytest

from switchboard.domain.retry import FailureClass
from tests.support.driver import Driver
from tests.support.gateway import Api, cursor_of, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"


async def bury(driver: Driver, api: Api, kind: FailureClass = FailureClass.REFUSED, **fields: object) -> str:
    message = str((await api.send(fields))["messageId"])
    session = str(fields.get("sessionId", "a"))
    await driver.nack(await driver.attempt(session), kind)
    return message


async def unconfirmed(driver: Driver, api: Api) -> str:
    """No attempt of it was ever answered for."""
    message = str((await api.send())["messageId"])
    for _ in range(3):
        await driver.attempt()
        driver.now += 10 * 60_000
        await driver.settle_down()
        driver.now += 10 * 60_000
    return message


async def listed(api: Api, **given: str) -> list[tuple[str, str]]:
    answer = await api.get("/api/v1/dead-letters", **given)
    assert set(answer) == {"items", "nextCursor"}
    return [(item["messageId"], item["status"]) for item in answer["items"]]


async def test_what_was_given_up_is_listed_oldest_first_with_its_reason(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    assert await listed(api) == []
    refused_one = await bury(driver, api)
    driver.now += 1
    no_answer = await unconfirmed(driver, api)
    not_there = await bury(driver, api, FailureClass.NOT_ON_WHATSAPP)
    assert await listed(api) == [(refused_one, "dead"), (no_answer, "unconfirmed"), (not_there, "dead")]
    items = (await api.get("/api/v1/dead-letters"))["items"]
    assert [item["error"] for item in items] == ["refused", "lease_expired", "not_on_whatsapp"]
    assert [item["waiting"] for item in items] == [None] * 3
    assert [item["failedAt"] for item in items[:2]] == ["2026-06-09T12:00:00+00:00", "2026-06-09T12:50:00.001+00:00"]


async def test_they_are_read_page_by_page(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    buried = []
    for _ in range(5):
        buried.append(await bury(driver, api))
        driver.now += 1
    cursor, seen = None, []
    for size in (2, 2, 1):
        answer = await api.get("/api/v1/dead-letters", params={"limit": 2} | cursor_of(cursor))
        assert len(answer["items"]) == size
        seen += [item["messageId"] for item in answer["items"]]
        cursor = answer["nextCursor"]
    assert (seen, cursor) == (buried, None)


async def test_many_of_one_millisecond_are_all_shown(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    buried = {await bury(driver, api) for _ in range(80)}
    seen: list[str] = []
    cursor = None
    while True:
        answer = await api.get("/api/v1/dead-letters", params={"limit": 1} | cursor_of(cursor))
        seen += [item["messageId"] for item in answer["items"]]
        cursor = answer["nextCursor"]
        if cursor is None:
            break
    assert len(seen) == 80
    assert set(seen) == buried


async def test_a_key_of_some_sessions_sees_and_moves_only_theirs(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.link("b", "972500000002")
    theirs, mine = await bury(driver, api), await bury(driver, api, sessionId="b")
    _, key = await driver.store.api_keys.create("b's", frozenset({"read", "send"}), frozenset({"b"}), 100)
    assert await listed(api, key=key) == [(mine, "dead")]
    refused(await api.ask("POST", f"/api/v1/dead-letters/{theirs}/retry", key=key), 403, "FORBIDDEN")
    refused(await api.ask("DELETE", f"/api/v1/dead-letters/{theirs}", key=key), 403, "FORBIDDEN")
    await api.post(f"/api/v1/dead-letters/{mine}/retry", key=key)


async def test_a_redriven_one_starts_anew_under_the_same_whatsapp_id(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await bury(driver, api)
    before = await api.status(message)
    shown = await api.post(f"/api/v1/dead-letters/{message}/retry")
    assert (shown["status"], shown["error"]) == ("queued", None)
    assert shown["whatsappId"] == before["whatsappId"]
    assert await listed(api) == []
    claim = await driver.attempt()
    assert (claim.message_id, claim.attempt) == (message, 2)
    await driver.nack(claim, FailureClass.RETRYABLE)
    assert (await api.status(message))["status"] == "failed"  # it has all its attempts again
    refused(await api.ask("POST", f"/api/v1/dead-letters/{message}/retry"), 409, "MESSAGE_NOT_WAITING", status="failed")


async def test_a_discarded_one_keeps_its_status_and_is_gone_from_the_list(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await bury(driver, api)
    shown = await api.delete(f"/api/v1/dead-letters/{message}")
    assert (shown["status"], shown["waiting"]) == ("dead", None)
    assert await listed(api) == []
    for response in [
        await api.ask("DELETE", f"/api/v1/dead-letters/{message}"),
        await api.ask("POST", f"/api/v1/dead-letters/{message}/retry"),
    ]:
        refused(response, 409, "MESSAGE_NOT_WAITING", status="dead")


async def test_a_late_acknowledgement_settles_an_unconfirmed_one(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await unconfirmed(driver, api)
    await driver.confirm(message)
    assert await listed(api) == []
    assert (await api.status(message))["status"] == "sent"


async def test_one_whose_recipient_opted_out_meanwhile_is_not_tried_again(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await bury(driver, api, to="972509876543")
    await driver.store.suppressions.add("972509876543")
    refused(await api.ask("POST", f"/api/v1/dead-letters/{message}/retry"), 403, "RECIPIENT_OPTED_OUT")
    assert await listed(api) == [(message, "dead")]


async def test_one_that_finds_no_room_stays_where_it_is(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    message = await bury(driver, api)
    await driver.store.sessions.disconnect("a", driver.now)
    await api.batch(1000)
    driver.now += 1000
    await driver.settle_down()
    refused(await api.ask("POST", f"/api/v1/dead-letters/{message}/retry"), 429, "QUEUE_FULL", room=1000)
    assert await listed(api) == [(message, "dead")]


async def test_a_dead_letter_nobody_knows(api: Api) -> None:
    for name in ("0" * 18, "x"):
        refused(await api.ask("POST", f"/api/v1/dead-letters/{name}/retry"), 404, "MESSAGE_NOT_FOUND")
        refused(await api.ask("DELETE", f"/api/v1/dead-letters/{name}"), 404, "MESSAGE_NOT_FOUND")
