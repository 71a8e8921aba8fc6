"""Processes and connections die while messages are under way: each is shown once, none is missing, nobody scans again.

Each moment of death is made sure of from outside (a fault of the simulated WhatsApp, a file on the disk) and
never hit by luck. An attempt whose end nobody learned is made again when its lease ends, under the same id.
"""

import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx
import pytest

from tests.support.premises import recipient_of
from tests.support.real_installation import RealInstallation, real_installation
from tests.support.serving import until
from tests.support.watching import codes, link_all, on_the_wire, shown_once
from tests.support.whatsapp import Fault, FaultKind

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PHONES = tuple(f"97250333000{n}" for n in range(1, 6))
KILLABLE = (sys.executable, "-m", "tests.support.killable")
LOOK_UP = "usync:get:usync"
STEPS = (
    "after dispatch", "before claim", "after claim", "before confirm", "after confirm", "after keep",
)  # fmt: skip


def with_short_leases(
    proxies: int = 2, start: bool = True, **settings: str
) -> AbstractAsyncContextManager[RealInstallation]:
    """A worker sends only while more than ten seconds are left of one. Waiting one out is most of a test's time."""
    return real_installation(proxies, start=start, OUTBOX_LEASE_MS="16000", MAX_ATTEMPTS="6", **settings)


async def struck(it: RealInstallation, fault: Fault) -> None:
    async def once() -> bool:
        return await it.whatsapp.struck(fault) == 1

    await until(once, it.PATIENCE_S)


async def once(it: RealInstallation, kind: FaultKind, phone: str, request: str | None = None) -> Fault:
    return await it.whatsapp.fault(kind, phone=phone, request=request, times=1)


async def test_a_worker_that_dies_anywhere_around_a_send_sends_each_message_once() -> None:
    async with with_short_leases() as it:
        before, unanswered, received, acknowledged = phones = PHONES[:4]
        sessions = dict(zip(phones, await link_all(it, *phones), strict=True))
        for phone in (before, unanswered, acknowledged):
            await once(it, "no_receipts", phone)  # they would say, too, that the message is there
        moments = [
            await once(it, "mute", before, LOOK_UP),  # it asks who the recipient is, and sends nothing before it knows
            await once(it, "no_ack", unanswered),
            await once(it, "no_ack", received),
        ]
        messages = {
            p: [await it.send(s, f"{n} of {p}") for n in (1, 2)] for p, s in sessions.items() if p != acknowledged
        }
        for moment, phone in zip(moments, messages, strict=True):
            await struck(it, moment)
            os.kill(it.worker(sessions[phone]), signal.SIGKILL)
        assert [await on_the_wire(it, phone) for phone in messages] == [0, 1, 1]

        messages[acknowledged] = [await it.send(sessions[acknowledged], f"{n} of {acknowledged}") for n in (1, 2)]
        await dies_between_ack_and_report(it, acknowledged, sessions[acknowledged], messages[acknowledged][0])

        for phone, session in sessions.items():
            await shown_once(it, phone, f"1 of {phone}", f"2 of {phone}")
            first, second = [await it.reaches(one, "sent", "delivered") for one in messages[phone]]
            assert second["attempts"] == 1
            # Where it is known that WhatsApp has it, by a receipt or from the worker's journal, nothing is sent again.
            tries = {before: 2, unanswered: 2, received: 1, acknowledged: 1}[phone]
            assert first["attempts"] == tries
            stanzas = [one.stanzas for one in await it.whatsapp.shown(sender=phone)]
            assert stanzas == [2 if phone == unanswered else 1, 1]
            assert await codes(it, session) == 1


async def dies_between_ack_and_report(it: RealInstallation, phone: str, session: str, message: str) -> None:
    """There is no program while WhatsApp acknowledges: what the worker has to say stays in its journal."""
    await it.reaches(message, "sending")
    await it.end(signal.SIGKILL)  # one that is only stopped would still have the report in its socket
    journal = it.sessions_dir / session / "journal.dat"
    report = f'"messageId":"{message}"'.encode()
    await until(lambda: report in journal.read_bytes(), it.PATIENCE_S)
    assert [one.answer for one in await it.whatsapp.wire(sender=phone)] == ["ack"]
    os.kill(it.worker(session), signal.SIGKILL)
    await it.start()


async def test_a_connection_that_ends_before_whatsapp_answers_costs_no_message_and_shows_none_twice() -> None:
    async with with_short_leases() as it:
        kept, lost, unreadable, dropped = phones = PHONES[:4]
        sessions = dict(zip(phones, await link_all(it, *phones), strict=True))
        await once(it, "no_receipts", kept)
        moments = {
            kept: await once(it, "drop_before_ack", kept),
            lost: await once(it, "drop_message", lost),
            unreadable: await once(it, "undecryptable", unreadable),
        }
        messages = {p: [await it.send(s, f"{n} of {p}") for n in (1, 2, 3)] for p, s in sessions.items()}
        for moment in moments.values():
            await struck(it, moment)
        await it.arrives(dropped, f"1 of {dropped}")
        await it.whatsapp.drop(dropped)
        for phone, session in sessions.items():
            await shown_once(it, phone, *(f"{n} of {phone}" for n in (1, 2, 3)))
            for message in messages[phone]:
                await it.reaches(message, "sent", "delivered")
            assert await codes(it, session) == 1
        assert [one.stanzas for one in await it.whatsapp.shown(sender=kept)] == [2, 1, 1]
        assert [one.text is None for one in await it.whatsapp.wire(sender=lost)] == [True, False, False, False]
        assert (await it.status(messages[lost][0]))["attempts"] == 2
        first = await it.status(messages[unreadable][0])  # the phone asked for it again, and the worker answered
        assert (first["attempts"], first["status"]) == (1, "delivered")


async def test_a_restart_of_whatsapp_in_the_middle_loses_nothing() -> None:
    async with with_short_leases() as it:
        phones = PHONES[:3]
        sessions = dict(zip(phones, await link_all(it, *phones), strict=True))
        texts = {phone: [f"{n} of {phone}" for n in range(4)] for phone in phones}
        messages = [await it.send(sessions[phone], text) for phone in phones for text in texts[phone]]
        await it.arrives(phones[0], texts[phones[0]][0])
        it.whatsapp.kill()  # and the proxies with it: nothing of the outside world is left
        for session in sessions.values():
            await it.becomes(session, "disconnected")
        await it.whatsapp.restart()
        for phone, session in sessions.items():
            await shown_once(it, phone, *texts[phone])
            await it.becomes(session, "connected")
            assert await codes(it, session) == 1
        for message in messages:
            await it.reaches(message, "sent", "delivered")
        it.check_order()


async def test_the_program_is_killed_while_messages_are_under_way_and_its_workers_go_on() -> None:
    async with with_short_leases(1, start=False, PYTHONPATH=str(Path.cwd())) as it:
        kill_at = it.folder / "kill-at"
        await it.start(KILLABLE, KILL_AT=str(kill_at))
        phone = PHONES[0]
        session = await it.linked(phone)
        worker = it.worker(session)
        for step in STEPS:
            draft = kill_at.with_suffix(".draft")
            draft.write_text(step)
            draft.replace(kill_at)
            asked = await sends(it, session, step)
            assert await it.ended() == -signal.SIGKILL
            assert not kill_at.exists()
            await it.start(KILLABLE, KILL_AT=str(kill_at))
            again = await sends(it, session, step)
            assert asked in (None, again)
            await it.arrives(phone, step)
            assert (await it.reaches(str(again), "delivered"))["attempts"] == 1
        await shown_once(it, phone, *STEPS)
        assert {one.stanzas for one in await it.whatsapp.shown()} == {1}
        assert (it.worker(session), await codes(it, session)) == (worker, 1)
        assert (await it.whatsapp.account(phone)).logins == 1


async def sends(it: RealInstallation, session: str, text: str) -> str | None:
    """The message's id; None if the program died under the request, which may be repeated: its key is the text."""
    body = {"to": recipient_of(text), "message": text, "sessionId": session}
    try:
        answer = await it.ask("POST", "/api/v1/send", json=body, headers={"Idempotency-Key": text})
        return str(answer["messageId"])
    except httpx.TransportError:
        return None
