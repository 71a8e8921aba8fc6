"""`Idempotency-Key`: the same request twice is one message and one answer."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.support.driver import HOUR, UNHURRIED, Driver
from tests.support.gateway import SECRET_TEXT, Api, good, refused

pytestmark = pytest.mark.anyio

PHONE = "972500000001"
TO = "972509876543"
BODY: dict[str, Any] = {"to": TO, "message": SECRET_TEXT, "sessionId": "a"}
BATCH: dict[str, Any] = {"messages": [{"to": TO, "text": SECRET_TEXT}] * 3, "sessionId": "a", "spreadMinutes": 30}


async def ask(
    api: Api, body: dict[str, Any], once: str = "once", path: str = "/api/v1/send", **given: Any
) -> httpx.Response:
    return await api.ask("POST", path, json=body, headers={"Idempotency-Key": once}, **given)


@pytest.mark.parametrize(("path", "body"), [("/api/v1/send", BODY), ("/api/v1/send/batch", BATCH)])
async def test_the_same_request_again_gets_the_same_bytes_and_queues_nothing(
    driver: Driver, api: Api, path: str, body: dict[str, Any]
) -> None:
    """However much has changed meanwhile: time, queue, limits, the gateway itself."""
    await driver.link("a", PHONE, None)
    first = await ask(api, body, path=path)
    good(first)
    count = len((await driver.audit()).messages)
    for _ in range(3):
        await api.send()
    driver.now += HOUR
    await driver.settle_down()
    await driver.store.accounts.override(PHONE, replace(UNHURRIED, daily=7), "Asia/Jerusalem", driver.now)
    await driver.store.suppressions.add(TO)
    again = await ask(api, body, path=path)
    assert again.content == first.content
    restarted = Api(driver)
    assert (await ask(restarted, body, path=path)).content == first.content
    await restarted.close()
    assert len((await driver.audit()).messages) == count + 3


async def test_the_same_meaning_in_another_spelling_is_the_same_request(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    first = await ask(api, BODY)
    spelled = {"sessionId": "a", "text": SECRET_TEXT, "to": TO, "priority": 1, "scheduledFor": None}
    assert (await ask(api, spelled)).content == first.content
    assert (await ask(api, BODY, path="/api/send")).content == first.content


@pytest.mark.parametrize(
    "change", [{"to": "972509876544"}, {"message": "another"}, {"priority": 2}, {"sessionId": "b"}, {"reference": "r"}]
)
async def test_the_same_key_with_another_body_is_a_conflict(driver: Driver, api: Api, change: dict[str, Any]) -> None:
    await driver.link("a", PHONE)
    good(await ask(api, BODY))
    refused(await ask(api, BODY | change), 409, "IDEMPOTENCY_CONFLICT")
    assert len(await api.queue()) == 1


async def test_a_batch_and_a_message_do_not_share_a_key(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    good(await ask(api, BODY))
    refused(await ask(api, BATCH, path="/api/v1/send/batch"), 409, "IDEMPOTENCY_CONFLICT")


async def test_a_key_means_nothing_to_another_caller(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    _, other = await driver.store.api_keys.create("another", frozenset({"send"}), frozenset(), 100)
    first = await ask(api, BODY)
    second = await ask(api, BODY | {"message": "hers"}, key=other)
    assert good(second)["messageId"] != good(first)["messageId"]
    assert len(await api.queue()) == 2


async def test_a_refused_request_leaves_its_key_free(driver: Driver, api: Api) -> None:
    await driver.link("a", PHONE)
    await driver.store.suppressions.add(TO)
    refused(await ask(api, BODY), 403, "RECIPIENT_OPTED_OUT")
    refused(await ask(api, BODY | {"to": "12"}), 400, "INVALID_REQUEST")
    await driver.store.suppressions.remove(TO)
    good(await ask(api, BODY))


async def test_it_is_remembered_for_24_hours(driver: Driver, api: Api, prefix: str) -> None:
    await driver.link("a", PHONE)
    good(await ask(api, BODY))
    [remembered] = [key async for key in driver.client.scan_iter(match=f"{prefix}idempotency:*")]
    assert 24 * 3600 - 5 <= await driver.client.ttl(remembered) <= 24 * 3600
    await driver.client.expire(remembered, 0)  # as the store does by itself when they are over
    good(await ask(api, BODY))
    assert len(await api.queue()) == 2


@pytest.mark.parametrize(("key", "taken"), [("", False), ("k", True), ("k" * 255, True), ("k" * 256, False)])
async def test_a_key_has_1_to_255_characters(driver: Driver, api: Api, key: str, taken: bool) -> None:
    await driver.link("a", PHONE)
    response = await ask(api, BODY, key)
    if taken:
        good(response)
    else:
        refused(response, 400, "INVALID_REQUEST", field="Idempotency-Key")
