"""Everything a page may ask or do: the very functions that answer the API, handed in by the runtime."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from zoneinfo import ZoneInfo

from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.domain.clock import Clock
from switchboard.domain.pacing import Policy
from switchboard.gateway.changing import Changing
from switchboard.gateway.reading import Reading
from switchboard.gateway.sending import Sending
from switchboard.orchestrator.condition import Condition
from switchboard.orchestrator.overview import Overview
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.orchestrator.proxy_views import ProxyViews
from switchboard.orchestrator.session_views import SessionViews
from switchboard.orchestrator.sessions import SessionService
from switchboard.store import Store


class PhoneRefused(Exception):
    """The simulated phone could not scan: the code was another one by then, say."""


class SimulatedPhone(Protocol):
    async def scan(self, qr: str) -> str:
        """Scans as a new person would; returns the number that is now linked. Raises PhoneRefused."""


@dataclass(frozen=True, slots=True)
class Services:
    store: Store
    policy: Policy
    zone: ZoneInfo
    clock: Clock
    reading: Reading
    changing: Changing
    sending: Sending
    overview: Overview
    views: SessionViews
    sessions: SessionService
    proxy_care: ProxyCare
    proxy_views: ProxyViews
    scan_links: ScanLinks
    passwords: Passwords
    condition: Condition
    configuration: Mapping[str, str]
    """The settings in force, secrets hidden."""
    defaults: Mapping[str, str]
    """The same variables as they would be if nobody had set them."""
    default_country: str | None = None
    max_text: int = 4095
    max_rows: int = 10_000
    allow_direct: bool = False
    phone: SimulatedPhone | None = None
    """In the demo: a phone to scan with."""
