"""Puts the gateway together: its services and its routes, from what it is given."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from fastapi import APIRouter

from switchboard.domain.clock import Clock
from switchboard.domain.pacing import Policy
from switchboard.gateway import routes
from switchboard.gateway.changing import Changing
from switchboard.gateway.list_routes import list_routes
from switchboard.gateway.reading import Reading
from switchboard.gateway.sending import Sending, SendRules
from switchboard.store import Store
from switchboard.web.auth import Guard


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """What the gateway knows to do, without HTTP: its own routes ask it, and so do the dashboard's pages."""

    reading: Reading
    changing: Changing
    sending: Sending


def gateway_services(
    store: Store, policy: Policy, rules: SendRules, guard: Guard, zone: ZoneInfo, clock: Clock
) -> GatewayServices:
    reading = Reading(store, policy, zone, clock)
    changing = Changing(store, reading, rules.room, clock)
    return GatewayServices(reading, changing, Sending(store, policy, rules, clock, guard.admit))


def gateway_routers(
    store: Store,
    policy: Policy,
    rules: SendRules,
    *,
    api_key: str,
    per_minute: int,
    zone: ZoneInfo,
    clock: Clock,
) -> list[APIRouter]:
    guard = Guard(store, api_key, per_minute, clock)
    services = gateway_services(store, policy, rules, guard, zone, clock)
    reading, changing = services.reading, services.changing
    return [
        routes.send_routes(guard, services.sending),
        routes.change_routes(guard, changing),
        routes.read_routes(guard, reading),
        list_routes(guard, reading),
        routes.stats_routes(guard, reading),
        routes.limits_routes(guard, reading, changing),
    ]
