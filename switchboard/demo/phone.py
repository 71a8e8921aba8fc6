"""A phone for whoever tries the demo: at each scan it is a new person's, with a number kept for fiction."""

from collections.abc import Collection

import httpx

from switchboard.dashboard.services import PhoneRefused
from switchboard.demo.scenario import SHOPS

CONTROL_PORT = "DEMO_CONTROL_PORT"
"""Where the simulator is told what people do: set for the demo's server by its stage, and by nobody else."""

NUMBERS = tuple(number for last in range(100) if (number := f"121255501{last:02}") not in SHOPS)
NAMES = (
    "Apple Tree Kindergarten",
    "Bright Smile Dentists",
    "Copper Kettle Tea",
    "Driftwood Surf School",
    "Evergreen Joinery",
    "Fern & Feather Florist",
    "Golden Hour Photos",
    "Hilltop Yoga",
)
_PATIENCE_S = 20


def newcomer(known: Collection[str]) -> tuple[str, str]:
    """The number and the name of someone who is not there yet."""
    for place, number in enumerate(NUMBERS):
        if number not in known:
            return number, NAMES[place % len(NAMES)]
    raise PhoneRefused


class DemoPhone:
    def __init__(self, control_port: int) -> None:
        self._url = f"http://127.0.0.1:{control_port}"

    async def scan(self, qr: str) -> str:
        try:
            async with httpx.AsyncClient(base_url=self._url, timeout=_PATIENCE_S, trust_env=False) as http:
                state = (await http.get("/state")).raise_for_status().json()
                phone, name = newcomer({account["phone"] for account in state["accounts"]})
                (await http.post("/scan", json={"qr": qr, "phone": phone, "name": name})).raise_for_status()
        except httpx.HTTPError as error:
            raise PhoneRefused from error
        return phone
