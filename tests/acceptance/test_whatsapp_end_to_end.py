"""From the customer's request to the recipient's phone and back: every part is the real one but WhatsApp itself.

The simulated WhatsApp speaks the real protocol and really decrypts. A scan is never repeated unless a test says so.
"""

import asyncio
import os
import signal
from collections import Counter

import pytest

from tests.support.premises import alive
from tests.support.real_installation import RealInstallation, real_installation
from tests.support.serving import until
from tests.support.watching import check_only_whatsapp_was_asked_for, codes, happened, hears, link_all, shown_once

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PHONES = tuple(f"97250111000{n}" for n in range(1, 6))
CONTACTS = tuple(f"97254222000{n}" for n in range(1, 6))
PHONE, OTHER, THIRD = PHONES[:3]
CONTACT = CONTACTS[0]


async def test_fifty_messages_of_five_accounts_are_each_shown_once_and_their_receipts_come_back() -> None:
    async with real_installation(proxies=2, RECIPIENT_DAILY_CAP="10") as it:
        sessions = dict(zip(PHONES, await link_all(it, *PHONES), strict=True))
        messages: dict[str, str] = {}
        for number in range(10):
            for phone, session in sessions.items():
                text = f"message {number} of {phone}"
                messages[text] = await it.send(session, text, to=CONTACTS[number % 5])
        for phone in PHONES:
            await it.arrives(phone, *(text for text in messages if text.endswith(phone)), within_s=120)
        for message in messages.values():
            await it.reaches(message, "delivered")
        shown = await it.whatsapp.shown()
        assert Counter(one.text for one in shown) == Counter(messages.keys())
        assert {one.stanzas for one in shown} == {1}
        for one in shown:
            status = await it.status(messages[one.text])
            assert (status["whatsappId"], status["to"], status["phone"]) == (one.id, one.to, one.sender)
            assert status["sessionId"] == sessions[one.sender]

        counts = await asyncio.gather(*(it.whatsapp.reads(contact, PHONE) for contact in CONTACTS[:3]))
        assert counts == [2, 2, 2]
        read = {one.text for one in await it.whatsapp.shown(sender=PHONE) if one.read}
        assert len(read) == 6
        for text in read:
            times = await it.reaches(messages[text], "read")
            assert times["createdAt"] < times["sentAt"] <= times["deliveredAt"] <= times["readAt"]
        await check_figures(it, sessions)
        await answers_come_back(it, sessions[PHONE])
        it.check_order()
        await check_only_whatsapp_was_asked_for(it)
        assert [await codes(it, session) for session in sessions.values()] == [1] * 5


async def check_figures(it: RealInstallation, sessions: dict[str, str]) -> None:
    """The statistics say what the phones show."""
    shown = await it.whatsapp.shown()
    whole = await it.ask("GET", "/api/v1/stats")
    for path, mine in [
        ("", shown),
        *((f"/{session}", [m for m in shown if m.sender == phone]) for phone, session in sessions.items()),
        *((f"/accounts/{phone}", [m for m in shown if m.sender == phone]) for phone in sessions),
    ]:
        day = await it.ask("GET", f"/api/v1/stats{path}")
        assert (day["sent"], day["failed"]) == (len(mine), 0)
        assert day["delivered"] == sum(m.delivered for m in mine)
        assert day["read"] == sum(m.read for m in mine)
    assert (whole["sent"], whole["delivered"], whole["read"]) == (50, 50, 6)
    assert [(await it.show(session))["sentToday"] for session in sessions.values()] == [10] * 5


async def answers_come_back(it: RealInstallation, session: str) -> None:
    """What a contact writes is told once, and its words are not for everyone who watches."""
    written = await it.whatsapp.writes(CONTACT, PHONE, "zanzibar, please")
    [event] = await hears(it, written)
    assert event["whatsappId"] == written
    assert (event["from"], event["account"], event["sessionId"]) == (CONTACT, PHONE, session)
    assert event["backfilled"] == "0"
    assert "text" not in event
    assert "zanzibar" not in str([event, await it.ask("GET", f"/api/sessions/{session}/events")])
    assert "zanzibar" not in it.log_of(session) + it.program.log


async def test_what_a_contact_writes_while_nobody_listens_is_told_once_afterwards() -> None:
    async with real_installation(proxies=2) as it:
        stopped, killed = await link_all(it, PHONE, OTHER)
        await it.ask("POST", f"/api/sessions/{stopped}/stop")
        await until(lambda: stopped not in it.workers())
        ids = [await it.whatsapp.writes(CONTACT, PHONE, f"are you there? {n}") for n in range(3)]
        again = ids[0]
        assert (await it.whatsapp.account(PHONE)).waiting == 3

        os.kill(it.worker(killed), signal.SIGKILL)
        await it.becomes(killed, "disconnected", "worker_exited")
        ids.append(await it.whatsapp.writes(CONTACT, OTHER, "and you?"))

        await it.ask("POST", f"/api/sessions/{stopped}/start")
        for session in (stopped, killed):
            await it.becomes(session, "connected")
        await hears(it, *ids)
        await it.ask("POST", f"/api/sessions/{stopped}/restart")
        await it.whatsapp.writes(CONTACT, PHONE, "are you there? 0", id=again)  # WhatsApp is not sure that it was told
        await it.becomes(stopped, "connected")
        last = await it.whatsapp.writes(CONTACT, PHONE, "good to hear you")
        events = await hears(it, last)
        assert Counter(event["whatsappId"] for event in events) == Counter([*ids, last])
        assert [event["backfilled"] for event in events] == ["1"] * 4 + ["0"]
        assert (await it.whatsapp.account(PHONE)).waiting == 0
        assert [await codes(it, session) for session in (stopped, killed)] == [1, 1]


async def test_a_pairing_code_links_as_well_as_a_scan() -> None:
    async with real_installation(proxies=1) as it:
        session = await it.provision(name="Sales")
        await it.becomes(session, "qr_ready")
        answer = await it.ask("POST", f"/api/sessions/{session}/pairing-code", json={"phone": f"+{PHONE}"})
        assert (answer["phone"], len(answer["code"])) == (PHONE, 8)
        [pending] = [one for one in (await it.whatsapp.state()).pending if one.kind == "code"]
        assert pending.phone == PHONE
        await it.whatsapp.enter_code(answer["code"], PHONE)
        await it.becomes(session, "connected")
        shown = await it.show(session)
        assert shown["phone"] == PHONE
        assert shown["deviceName"] in (await it.whatsapp.account(PHONE)).device_name
        assert answer["code"] not in str(await happened(it, session, "PAIRING_CODE"))
        await it.send(session, "linked by letters")
        await shown_once(it, PHONE, "linked by letters")


async def test_a_session_is_stopped_started_restarted_logged_out_and_deleted_as_it_is_asked_for() -> None:
    async with real_installation(proxies=2) as it:
        session, logged_out, deleted = await link_all(it, PHONE, OTHER, THIRD)
        worker = it.worker(session)
        await it.ask("POST", f"/api/sessions/{session}/stop")
        await until(lambda: not alive(worker))
        assert (await it.whatsapp.account(PHONE)).linked
        message = await it.send(session, "while stopped")
        assert (await it.status(message))["waiting"]["reason"] == "disconnected"
        await it.ask("POST", f"/api/sessions/{session}/start")
        await it.arrives(PHONE, "while stopped")
        worker = it.worker(session)
        await it.ask("POST", f"/api/sessions/{session}/restart")
        await until(lambda: not alive(worker))
        await it.send(session, "after a restart")
        await shown_once(it, PHONE, "while stopped", "after a restart")
        assert (await codes(it, session), (await it.whatsapp.account(PHONE)).logins) == (1, 3)

        await it.ask("POST", f"/api/sessions/{logged_out}/logout")
        assert not (await it.whatsapp.account(OTHER)).linked
        await it.becomes(logged_out, "logged_out", "by_request")
        await until(lambda: not (it.sessions_dir / logged_out).exists())
        answer = await it.ask("DELETE", f"/api/sessions/{deleted}")
        assert (answer["deleted"], answer["unlinked"]) == (True, True)
        assert not (await it.whatsapp.account(THIRD)).linked
        assert not list(it.sessions_dir.rglob(f"*{deleted}*"))
        await it.ask("GET", f"/api/sessions/{deleted}", 404)
        assert set(it.workers()) == {session}

        await it.ask("POST", f"/api/sessions/{logged_out}/start")
        await it.scanned(logged_out, OTHER)
        await it.send(logged_out, "linked anew")
        await shown_once(it, OTHER, "linked anew")
        assert await codes(it, logged_out) == 2
        it.check_order()
        await check_only_whatsapp_was_asked_for(it)
