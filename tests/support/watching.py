"""What a test over real workers looks at besides the phones: the live events, the codes, and the proxies' own notes."""

import asyncio
import json
import re
from typing import Any

import httpx

from tests.support.premises import API_KEY
from tests.support.real_installation import RealInstallation
from tests.support.serving import until

WHATSAPP_NAME = re.compile(r"[a-z0-9.-]+\.whatsapp\.(com|net)")


async def link_all(it: RealInstallation, *phones: str) -> list[str]:
    """A session for each, scanned; all at once."""
    return list(await asyncio.gather(*(it.linked(phone) for phone in phones)))


async def told(it: RealInstallation, *types: str) -> list[dict[str, Any]]:
    """What `GET /api/events` tells from the beginning up to now, as `data` of these types."""
    newest: Any = it.store.xrevrange("switchboard:events", "+", "-", 1)
    last = newest[0][0] if newest else "0-0"
    found: list[dict[str, Any]] = []
    url, headers = f"http://127.0.0.1:{it.port}/api/events?since=0-0", {"X-API-Key": API_KEY}
    async with (
        httpx.AsyncClient(trust_env=False, headers=headers, timeout=20) as http,
        http.stream("GET", url) as answer,
    ):
        assert answer.status_code == 200
        entry = {"id": "", "event": "", "data": ""}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name in entry:
                entry[name] = value
            if name == "data" and entry["event"] in types:
                found.append(json.loads(value))
            if not line and entry["id"] == last:
                break
    return found


async def hears(it: RealInstallation, *ids: str) -> list[dict[str, Any]]:
    """What contacts wrote was heard, with these ids at least: all of it, as those who watch are told."""

    def there() -> bool:
        entries: Any = it.store.xrange("switchboard:events")
        return set(ids) <= {fields.get("whatsappId") for _, fields in entries}

    await until(there, it.PATIENCE_S)
    return await told(it, "message.received")


async def happened(it: RealInstallation, session: str, *types: str) -> list[dict[str, Any]]:
    """What the session's own page shows of these types, oldest first."""
    items = (await it.ask("GET", f"/api/sessions/{session}/events", params={"limit": 200}))["items"]
    return [event["data"] for event in reversed(items) if event["type"] in types]


async def codes(it: RealInstallation, session: str) -> int:
    """How many QR codes were shown so far. One that is scanned again would raise it."""
    return len(await happened(it, session, "QR_CODE"))


async def on_the_wire(it: RealInstallation, phone: str) -> int:
    return len(await it.whatsapp.wire(sender=phone))


async def waits(it: RealInstallation, message: str, reason: str) -> dict[str, Any]:
    """The message is in the queue for this reason: as it is then."""
    shown: dict[str, Any] = {}

    async def there() -> bool:
        shown.update(await it.status(message))
        return shown["status"] == "queued" and bool(shown["waiting"]) and shown["waiting"]["reason"] == reason

    try:
        await until(there, it.PATIENCE_S)
    except AssertionError:
        raise AssertionError(f"{message} should wait: {reason}, and is {shown}") from None
    return shown


async def shown_once(it: RealInstallation, phone: str, *texts: str) -> None:
    """All arrive, each once, whatever was on the wire; nothing else does."""
    await it.arrives(phone, *texts)
    await it.check_once_each(phone, *texts)


async def check_only_whatsapp_was_asked_for(it: RealInstallation) -> None:
    """By every proxy's own notes: nothing but WhatsApp, and by its name, so that nobody here resolved it."""
    for proxy in (await it.whatsapp.ask("GET", "/state"))["proxies"]:
        for asked in proxy["asked"]:
            assert asked["kind"] == "domain", asked
            assert WHATSAPP_NAME.fullmatch(asked["host"]), asked
            assert asked["port"] == 443, asked
