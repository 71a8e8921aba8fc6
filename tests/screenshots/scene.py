"""What is to be seen on the pictures: a small fleet with a month behind it, and every kind of trouble once.

The program, its workers, their proxies and the simulated WhatsApp are real. Only the past is invented.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from switchboard.store.keys import Keys
from tests.support import invented
from tests.support.past import DAY_MS, Figures, invent_figures, invent_samples, invent_states, write_states
from tests.support.premises import now_ms
from tests.support.real_installation import RealInstallation
from tests.support.serving import until

PROXIES = 3
BROKEN_PROXY = 3
SETTINGS = {
    "PACE__COLD__DAILY": "20",
    "PACE__COLD__PER_MINUTE": "30",
    "PACE__COLD__BASE_DELAY_MS": "300",
    "PACE__COLD__JITTER_MS": "200",
    "PACE__WARM__BASE_DELAY_MS": "300",
    "PACE__WARM__JITTER_MS": "200",
    "PACE__WARM__HOURS": "00:00-24:00",
    "PACE__HOT__BASE_DELAY_MS": "300",
    "PACE__HOT__JITTER_MS": "200",
    "PACE__HOT__HOURS": "00:00-24:00",
    "MAX_SESSIONS_PER_PROXY": "5",  # so that those of a broken one find a place on the others
}


@dataclass(frozen=True, slots=True)
class Actor:
    """An account: its phone, its name, and how many days ago it was linked."""

    phone: str
    name: str
    days: int


BOOKS = Actor("12025550101", "Blue Door Books", 41)
BAKERY = Actor("97255000142", "מאפיית הנמל", 30)
CYCLES = Actor("447700900123", "Harbour Cycles", 17)
CLINIC = Actor("97255000177", "מרפאת השקד", 9)
CINEMA = Actor("12025550164", "Moonlight Cinema", 5)
FLOWERS = Actor("447700900456", "Corner Flowers", 1)
ACTORS = (BOOKS, BAKERY, CYCLES, CLINIC, CINEMA, FLOWERS)
NEWCOMER = "קפה הכיכר"
ABSENT = ("12025550190", "12025550191", "447700900999")


@dataclass(frozen=True, slots=True)
class Scene:
    """What addresses are made of."""

    session: str
    scanning: str
    batch: str
    message: str

    def path(self, pattern: str) -> str:
        parts = {"session": self.session, "scanning": self.scanning, "batch": self.batch, "message": self.message}
        return pattern.format(**parts)


async def set_scene(it: RealInstallation) -> Scene:
    """Returns when everything is there that is to be seen. Some of it goes on: the batch, the QR code."""
    chance = Random(5)
    await it.whatsapp.receipts(delivered_after_ms=200, read_after_ms=1_500)
    linked = await asyncio.gather(*(it.linked(actor.phone, name=actor.name) for actor in ACTORS))
    sessions = dict(zip(ACTORS, linked, strict=True))
    _invent_past(it, sessions, chance)
    message = await _write(it, sessions, chance)
    batch = await _batch(it, sessions[BOOKS], chance)
    await _answers(it)
    await _trouble(it, sessions)
    scanning = await it.provision(name=NEWCOMER)
    await it.becomes(scanning, "qr_ready")
    return Scene(session=sessions[BOOKS], scanning=scanning, batch=batch, message=message)


def _invent_past(it: RealInstallation, sessions: Mapping[Actor, str], chance: Random) -> None:
    now, keys, figures = now_ms(), Keys("switchboard:"), Figures()
    pipeline = it.store.pipeline(transaction=False)
    for actor, session in sessions.items():
        since = now - actor.days * DAY_MS
        invent_figures(figures, chance, session, actor.phone, now, actor.days)
        write_states(pipeline, keys, session, invent_states(chance, now, actor.days))
        pipeline.hset(keys("session", session), "createdAt", since)
        pipeline.hset(keys("account", actor.phone), "first", since)
        pipeline.hincrby(keys("account", actor.phone), "rev", 1)
    figures.write(pipeline, keys)
    week = {"waiting": 60, "scheduled": 25, "dead": 2, "connected": len(ACTORS), "sessions": len(ACTORS), "sent": 400}
    invent_samples(pipeline, keys, chance, now, week)
    pipeline.execute()


async def _write(it: RealInstallation, sessions: Mapping[Actor, str], chance: Random) -> str:
    """A few messages of everybody, some for later, some to numbers that have no WhatsApp. One that was read."""
    customers = invented.phones(chance)
    taken = {actor.phone for actor in ACTORS} | set(ABSENT)
    await it.whatsapp.absent(*ABSENT)
    ids = []
    for session in sessions.values():
        for _ in range(6):
            to = next(phone for phone in customers if phone not in taken)
            ids.append(await it.send(session, invented.text(chance), to))
    dead = [await it.send(sessions[BAKERY], invented.text(chance), phone) for phone in ABSENT]
    later = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    for _ in range(4):
        body = {"to": next(customers), "message": invented.text(chance), "sessionId": sessions[CYCLES]}
        await it.ask("POST", "/api/v1/send", json=body | {"scheduledFor": later, "reference": "spring-sale"})
    for message in dead:
        await it.reaches(message, "dead")
    for message in ids:
        await it.reaches(message, "read", "delivered")
    return ids[0]


async def _batch(it: RealInstallation, session: str, chance: Random) -> str:
    """Spread so far that it is under way for as long as pictures are taken."""
    customers = invented.phones(chance)
    rows = [{"to": next(customers), "text": invented.text(chance), "reference": f"row-{n}"} for n in range(1, 41)]
    body = {"messages": rows, "sessionId": session, "spreadMinutes": 20}
    batch = str((await it.ask("POST", "/api/v1/send/batch", json=body))["batchId"])

    async def begun() -> bool:
        return bool((await it.ask("GET", f"/api/v1/batches/{batch}"))["sent"])

    await until(begun, it.PATIENCE_S)
    return batch


async def _answers(it: RealInstallation) -> None:
    await it.whatsapp.writes("12025550133", BOOKS.phone, "Thank you! I come by after work.")
    await it.whatsapp.writes("97255000188", BAKERY.phone, "תודה רבה, נתראה מחר!")


async def _trouble(it: RealInstallation, sessions: Mapping[Actor, str]) -> None:
    """A proxy that fails and whose sessions move, an account a person paused, one that its owner unlinked."""
    await it.whatsapp.break_proxy(BROKEN_PROXY)

    async def moved() -> bool:
        pool = (await it.ask("GET", "/api/proxies"))["items"]
        states = [(await it.show(session))["status"] for session in sessions.values()]
        bad = [proxy for proxy in pool if proxy["status"] == "BAD"]
        return len(bad) == 1 and not bad[0]["sessions"] and set(states) == {"connected"}

    await until(moved, it.PATIENCE_S)
    await it.ask("POST", f"/api/sessions/{sessions[CINEMA]}/pause", json={})
    await it.becomes(sessions[CINEMA], "paused")
    await it.whatsapp.log_out(FLOWERS.phone)
    await it.becomes(sessions[FLOWERS], "logged_out")
