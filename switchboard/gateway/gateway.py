"""Puts the gateway together: its services and its routes, from what it is given."""

from zoneinfo import ZoneInfo

from fastapi import APIRouter

from switchboard.domain.clock import Clock
from switchboard.domain.pacing import Policy
from switchboard.gateway import routes
from switchboard.gateway.changing import Changing
from switchboard.gateway.reading import Reading
from switchboard.gateway.sending import Sending, SendRules
from switchboard.store import Store
from switchboard.web.auth import Guard


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
    reading = Reading(store, policy, zone, clock)
    changing = Changing(store, reading, rules.room, clock)
    return [
        routes.send_routes(guard, Sending(store, policy, rules, clock, guard.admit)),
        routes.change_routes(guard, changing),
        routes.read_routes(guard, reading),
        routes.stats_routes(guard, reading),
        routes.limits_routes(guard, reading, changing),
    ]
