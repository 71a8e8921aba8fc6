"""WhatsApp refuses, restricts and throws out, and proxies die: who waits and why, what is told and what is never done.

That nothing happens is not waited for: another account sends meanwhile, far longer than a repetition would take.
"""

import asyncio

import pytest

from tests.support.real_installation import RealInstallation, real_installation
from tests.support.serving import until
from tests.support.watching import (
    check_only_whatsapp_was_asked_for,
    codes,
    happened,
    link_all,
    on_the_wire,
    shown_once,
    told,
    waits,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PHONES = tuple(f"97250555000{n}" for n in range(1, 8))
PHONE = PHONES[0]
BYSTANDER = "972505559999"


async def the_world_goes_on(it: RealInstallation, session: str) -> None:
    """Three messages of somebody else: some seconds in which an attempt that must not be made would have been made."""
    texts = [f"{n} at {len(await it.whatsapp.wire())}" for n in range(3)]
    for text in texts:
        await it.send(session, text)
    await it.arrives(BYSTANDER, *texts)


async def test_refusals_hold_the_account_and_nothing_is_tried_again_before_its_time() -> None:
    async with real_installation(proxies=2) as it:
        too_fast, for_a_while, for_good, absent = phones = PHONES[:4]
        *sessions, bystander = await link_all(it, *phones, BYSTANDER)
        mine = dict(zip(phones, sessions, strict=True))
        await it.whatsapp.fault("ack_error", phone=too_fast, code=429, times=1)
        await it.whatsapp.fault("ack_error", phone=for_a_while, code=463, ms=3_600_000, times=1)
        await it.whatsapp.fault("ack_error", phone=for_good, code=463, times=1)
        nobody = "972529999999"
        await it.whatsapp.absent(nobody)
        unsent = await it.send(mine[absent], "to nobody", to=nobody)
        held = {p: [await it.send(mine[p], f"{n} of {p}") for n in (1, 2)] for p in (too_fast, for_a_while, for_good)}

        for phone, state, reason, why, has_end in (
            (too_fast, "paused", "paused", "rate_limited", True),
            (for_a_while, "restricted", "restricted", "restricted", True),
            (for_good, "restricted", "restricted", "restricted", False),
        ):
            await it.becomes(mine[phone], state)
            first, second = [await waits(it, message, reason) for message in held[phone]]
            assert (first["attempts"], second["attempts"]) == (1, 0)
            assert bool(first["waiting"]["until"]) == has_end
            shown = await it.show(mine[phone])
            assert (shown["pausedReason"], bool(shown["pausedUntil"])) == (why, has_end)
        dead = await it.reaches(unsent, "dead")
        assert (dead["error"], dead["attempts"], dead["waiting"]) == ("not_on_whatsapp", 1, None)
        [letter] = (await it.ask("GET", "/api/v1/dead-letters"))["items"]
        assert letter["messageId"] == unsent
        assert (await it.ask("GET", f"/api/v1/stats/{mine[absent]}"))["failed"] == 1
        [paused] = await told(it, "account.paused")
        assert (paused["account"], paused["reason"]) == (too_fast, "rate_limited")
        assert {one["account"] for one in await told(it, "account.restricted")} == {for_a_while, for_good}

        await the_world_goes_on(it, bystander)
        assert [await on_the_wire(it, phone) for phone in phones] == [1, 1, 1, 0]
        for phone in held:
            await it.ask("POST", f"/api/sessions/{mine[phone]}/resume")
        for phone, messages in held.items():
            await shown_once(it, phone, f"1 of {phone}", f"2 of {phone}")
            assert [(await it.reaches(one, "delivered"))["attempts"] for one in messages] == [2, 1]
            assert [one.answer for one in await it.whatsapp.wire(sender=phone)][1:] == ["ack", "ack"]
        assert set(await asyncio.gather(*(codes(it, session) for session in sessions))) == {1}


async def test_a_restriction_that_whatsapp_gives_an_end_is_over_then() -> None:
    async with real_installation(proxies=1) as it:
        session = await it.linked(PHONE)
        await it.whatsapp.fault("ack_error", phone=PHONE, code=463, ms=6_000, times=1)
        first, second = [await it.send(session, text) for text in ("first", "second")]
        until_then = (await waits(it, first, "restricted"))["waiting"]["until"]
        assert (await it.show(session))["pausedUntil"] == until_then
        await shown_once(it, PHONE, "first", "second")
        for message in (first, second):
            assert (await it.reaches(message, "delivered"))["sentAt"] > until_then
        await it.becomes(session, "connected")


async def test_who_is_thrown_out_does_not_come_back_by_itself() -> None:
    async with real_installation(proxies=2) as it:
        logged_out, banned, replaced = phones = PHONES[:3]
        *sessions, bystander = await link_all(it, *phones, BYSTANDER)
        mine = dict(zip(phones, sessions, strict=True))
        await it.whatsapp.log_out(logged_out)
        await it.whatsapp.ban(banned)
        await it.whatsapp.replace(replaced)
        for phone, state, reason, waiting in (
            (logged_out, "logged_out", "logged_out", "disconnected"),
            (banned, "failed", "auth_failure", "restricted"),
            (replaced, "failed", "replaced", "disconnected"),
        ):
            await it.becomes(mine[phone], state, reason)
            message = await it.send(mine[phone], f"to {phone}")
            assert (await waits(it, message, waiting))["attempts"] == 0
        await until(lambda: set(it.workers()) == {bystander})
        assert [e["code"] for e in await happened(it, mine[banned], "AUTH_FAILURE")] == ["status_403"]
        assert {e["sessionId"] for e in await told(it, "session.failed")} == {mine[banned], mine[replaced]}
        assert [e["account"] for e in await told(it, "account.restricted")] == [banned]

        await the_world_goes_on(it, bystander)
        accounts = (await it.whatsapp.state()).accounts
        assert [accounts[phone].logins for phone in phones] == [1, 1, 1]
        assert [await on_the_wire(it, phone) for phone in phones] == [0, 0, 0]
        assert set(it.workers()) == {bystander}

        await it.whatsapp.unban(banned)
        for session in sessions:
            await it.ask("POST", f"/api/sessions/{session}/start")
        await it.scanned(mine[logged_out], logged_out)
        await it.becomes(mine[banned], "restricted")  # let in again, and still held until a person says so
        await it.ask("POST", f"/api/sessions/{mine[banned]}/resume")
        for phone in phones:
            await shown_once(it, phone, f"to {phone}")
        assert [await codes(it, session) for session in sessions] == [2, 1, 1]
        assert len(list((it.sessions_dir / ".aside").glob(f"{mine[logged_out]}.*"))) == 1


async def test_an_account_with_a_passkey_is_told_so_and_shows_no_code_after_code() -> None:
    async with real_installation(proxies=1) as it:
        bystander = await it.linked(BYSTANDER)
        await it.whatsapp.fault("passkey", times=1)
        session = await it.provision()
        await it.becomes(session, "qr_ready")
        code = (await it.ask("GET", f"/api/sessions/{session}/qr"))["qr"]
        await it.whatsapp.scan(code, PHONE)
        await it.becomes(session, "passkey_required")
        await until(lambda: set(it.workers()) == {bystander})
        shown = await codes(it, session)
        await the_world_goes_on(it, bystander)
        await it.becomes(session, "passkey_required")
        assert (await codes(it, session), set(it.workers())) == (shown, {bystander})
        assert (await it.show(session))["scanBy"] is None
        assert "start it" in (await it.ask("GET", f"/api/sessions/{session}/qr", 404))["message"]

        await it.ask("POST", f"/api/sessions/{session}/start")
        await it.scanned(session, PHONE)


async def test_a_proxy_that_dies_is_replaced_without_a_scan_and_the_queue_goes_on() -> None:
    async with real_installation(proxies=2) as it:
        phones = PHONES[:3]
        sessions = dict(zip(phones, await link_all(it, *phones), strict=True))
        moving = {phone: s for phone, s in sessions.items() if (await it.show(s))["proxyId"] == "proxy_1"}
        assert moving
        texts = {phone: [f"{n} of {phone}" for n in range(4)] for phone in phones}
        messages = [await it.send(sessions[phone], text) for phone in phones for text in texts[phone]]
        await asyncio.gather(*(it.arrives(phone, texts[phone][0]) for phone in moving))
        await it.whatsapp.break_proxy(1, "refuse")
        for phone, session in sessions.items():
            await shown_once(it, phone, *texts[phone])
            await it.becomes(session, "connected")
            assert ((await it.show(session))["proxyId"], it.key(f"phone:proxy:{phone}")) == ("proxy_2", "proxy_2")
            assert await codes(it, session) == 1
        for message in messages:
            await it.reaches(message, "sent", "delivered")
        dead, living = (await it.ask("GET", "/api/proxies"))["items"]
        assert (dead["status"], dead["sessions"], living["status"]) == ("BAD", [], "OK")
        assert dead["reason"]
        assert {event["sessionId"] for event in await told(it, "proxy.failover")} == set(moving.values())
        it.check_order()

        await it.whatsapp.heal_proxy(1)

        async def well_again() -> bool:
            return {proxy["status"] for proxy in (await it.ask("GET", "/api/proxies"))["items"]} == {"OK"}

        await until(well_again)
        await check_only_whatsapp_was_asked_for(it)


async def test_without_another_proxy_a_session_waits_and_never_goes_direct() -> None:
    async with real_installation(proxies=1, ALLOW_DIRECT="true") as it:
        session = await it.linked(PHONE)
        await it.whatsapp.break_proxy(1, "reply", reply=5)
        await it.becomes(session, "disconnected", "waiting_for_proxy")
        await until(lambda: it.workers() == {})
        message = await it.send(session, "patience")
        probes = len((await it.whatsapp.proxy(1)).asked)

        async def five_more() -> bool:
            return len((await it.whatsapp.proxy(1)).asked) >= probes + 5

        await until(five_more)  # a second of probing, and nothing else happens
        assert it.workers() == {}
        assert (await it.status(message))["waiting"]["reason"] == "disconnected"
        account = await it.whatsapp.account(PHONE)
        assert (account.online, account.logins, await on_the_wire(it, PHONE)) == (False, 1, 0)

        await it.whatsapp.heal_proxy(1)
        await shown_once(it, PHONE, "patience")
        assert (await codes(it, session), (await it.whatsapp.account(PHONE)).logins) == (1, 2)
        it.check_order()
        await check_only_whatsapp_was_asked_for(it)
