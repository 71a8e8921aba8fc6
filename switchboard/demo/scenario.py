"""Who is in the demo and what they do: five shops link themselves and write to their customers, now and then.

It uses what everybody has: Switchboard's HTTP API, and for the phones the simulator's controls.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import httpx

from switchboard.demo.simulator import Simulator, SimulatorRefused

# 555-0100 to 555-0199 belong to nobody in any area of North America: they are kept for fiction.
SHOPS = {
    "12125550101": "Blue Door Books",
    "12125550102": "Corner Bakery",
    "12125550103": "Green Thumb Garden",
    "12125550104": "Harbour Cycles",
    "12125550105": "Moonlight Cinema",
}
_AREAS = ("202", "303", "310", "404", "415", "512", "617", "702", "808", "907")
CUSTOMERS = tuple(f"1{area}55501{last:02}" for area in _AREAS for last in range(100))
WORDS = (
    "Your order {n} is ready to be picked up.",
    "Order {n} has left our house today.",
    "A short reminder of your appointment tomorrow at {hour}:30.",
    "Thank you for your visit! Your receipt is number {n}.",
    "The one you asked for is back: we keep it for you until {hour}:00.",
    "We are open until {hour}:00 today.",
)
_LOOK_S = 0.5
_GAP_S = (1.0, 3.0)
_PATIENCE_S = 30


def letters(chance: random.Random) -> Iterator[tuple[str, str]]:
    """To whom and what, without an end. Everyone gets one before anyone gets a second."""
    while True:
        for to in chance.sample(CUSTOMERS, len(CUSTOMERS)):
            yield to, chance.choice(WORDS).format(n=chance.randint(1000, 9999), hour=chance.randint(16, 20))


class Scenario:
    def __init__(self, url: str, key: str, simulator: Simulator) -> None:
        self._simulator = simulator
        self._http = httpx.AsyncClient(base_url=url, headers={"X-API-Key": key}, timeout=_PATIENCE_S, trust_env=False)
        self.posted = 0
        self.refused = 0

    async def close(self) -> None:
        await self._http.aclose()

    async def play(self, chance: random.Random) -> None:
        """Everybody links; whoever is linked begins to write."""
        async with asyncio.TaskGroup() as group:
            for phone, name in SHOPS.items():
                group.create_task(self._shop(phone, name), name=phone)
            group.create_task(self._write(chance), name="posts")

    async def _shop(self, phone: str, name: str) -> None:
        """Linked already if the demo was kept from an earlier time."""
        if phone in {session["phone"] for session in await self.sessions()}:
            return
        made = await self._http.post("/api/sessions/provision", json={"name": name})
        session = made.raise_for_status().json()["sessionId"]
        while not await self._scan(session, phone, name):
            await asyncio.sleep(_LOOK_S)

    async def _scan(self, session: str, phone: str, name: str) -> bool:
        """What the API shows may be gone by the time it is scanned: then there is another one soon."""
        shown = await self._http.get(f"/api/sessions/{session}/qr")
        if not shown.is_success:
            return False
        try:
            await self._simulator.scan(shown.json()["qr"], phone, name)
        except SimulatorRefused:
            return False
        return True

    async def _write(self, chance: random.Random) -> None:
        for to, text in letters(chance):
            while not (linked := await self._linked()):
                await asyncio.sleep(_LOOK_S)
            await self._post(chance.choice(linked), to, text)
            await asyncio.sleep(chance.uniform(*_GAP_S))

    async def _post(self, session: str, to: str, text: str) -> None:
        body = {"to": to, "message": text, "sessionId": session, "reference": "demo"}
        answer = await self._http.post("/api/v1/send", json=body)
        if answer.is_success:
            self.posted += 1
        else:  # a limit that was reached: that is for the rules to say, and for us to bear
            self.refused += 1

    async def _linked(self) -> list[str]:
        """The shops' own: whoever links one more while looking around writes with it themselves."""
        return [
            session["sessionId"]
            for session in await self.sessions()
            if session["status"] == "connected" and session["phone"] in SHOPS
        ]

    # --- what can be seen ---

    async def sessions(self) -> list[dict[str, Any]]:
        return list((await self._http.get("/api/sessions")).raise_for_status().json()["items"])

    async def figures(self) -> dict[str, Any]:
        return dict((await self._http.get("/api/v1/stats")).raise_for_status().json())
