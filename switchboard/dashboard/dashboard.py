"""Puts the dashboard together: who may see it, its pages, its live stream, its files."""

import asyncio
from dataclasses import dataclass, field

from fastapi import APIRouter

from switchboard.dashboard.access.door import Door
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.one_time_links import OneTimeLinks
from switchboard.dashboard.access.sign_in import sign_in_routes
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.api.reference import api_reference_pages
from switchboard.dashboard.catalogue import Catalogue
from switchboard.dashboard.language import language_routes
from switchboard.dashboard.live import live_routes
from switchboard.dashboard.nowhere import nowhere
from switchboard.dashboard.pages.anti_ban import anti_ban_pages
from switchboard.dashboard.pages.api_keys import api_key_pages
from switchboard.dashboard.pages.batches import batch_pages
from switchboard.dashboard.pages.dead_letters import dead_letter_pages
from switchboard.dashboard.pages.health import health_pages
from switchboard.dashboard.pages.linking import linking_pages
from switchboard.dashboard.pages.log import log_pages
from switchboard.dashboard.pages.log_stream import log_stream_routes
from switchboard.dashboard.pages.messages import message_pages
from switchboard.dashboard.pages.new_batch import new_batch_pages
from switchboard.dashboard.pages.opening import opening_routes
from switchboard.dashboard.pages.overview import overview_pages
from switchboard.dashboard.pages.proxies import proxy_pages
from switchboard.dashboard.pages.scan import scan_routes
from switchboard.dashboard.pages.send import send_pages
from switchboard.dashboard.pages.session import session_pages
from switchboard.dashboard.pages.settings import settings_pages
from switchboard.dashboard.rendering import Frame, Pages
from switchboard.dashboard.services import Services
from switchboard.dashboard.static import Static
from switchboard.web.auth import Guard

PAGES = (
    overview_pages,
    linking_pages,
    proxy_pages,
    anti_ban_pages,
    dead_letter_pages,
    log_pages,
    send_pages,
    message_pages,
    new_batch_pages,  # before what takes any name after /batches/
    batch_pages,
    health_pages,
    settings_pages,
    api_key_pages,
    api_reference_pages,
    session_pages,  # after all others: any name may follow /sessions/
)
"""Each takes the gate, the frame and the services, and answers with its routes."""


@dataclass(frozen=True, slots=True)
class DashboardRules:
    """`secrets_file` and `open_command`: see Frame."""

    secret: str = field(repr=False)
    secrets_file: str | None = None
    open_command: str = "switchboard open"


def _frame(services: Services, rules: DashboardRules) -> Frame:
    return Frame(
        demo=services.phone is not None,
        direct=lambda: services.allow_direct and services.proxy_care.empty,
        secrets_file=rules.secrets_file,
        open_command=rules.open_command,
    )


def dashboard_routers(
    services: Services, guard: Guard, rules: DashboardRules, stopping: asyncio.Event
) -> list[APIRouter]:
    store, clock = services.store, services.clock
    static = Static()
    signer = Signer(rules.secret)
    pages = Pages(Catalogue(), static, signer, services.zone, clock, _frame(services, rules))
    gate = Gate(guard, store, signer, clock, pages)
    door = Door(guard, store.sign_ins, services.passwords, clock)
    return [
        *(of(gate, pages, services) for of in PAGES),
        live_routes(gate, store, stopping),
        log_stream_routes(gate, pages, services, stopping),
        language_routes(gate),
        *sign_in_routes(gate, door, pages),
        opening_routes(gate, pages, OneTimeLinks(signer, store.sign_ins, clock)),
        scan_routes(gate, pages, services, stopping),
        static.routes(),
        nowhere(pages),
    ]
