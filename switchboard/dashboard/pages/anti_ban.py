"""Limits: the table by trust level, every number's own, and where each can be set."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.limits_editor import LimitsEditor
from switchboard.dashboard.pages.limits_form import LimitsFields
from switchboard.dashboard.pages.limits_words import delay
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.hours import DAY_MS
from switchboard.domain.trust import PRESETS, Limits, Overrides, TrustLevel, TrustTable
from switchboard.web.routing import SessionId

_PER_PAGE = 50
_FIGURES = ("daily", "per_minute", "base_delay_ms", "jitter_ms", "hours")

Search = Annotated[str, Query(max_length=100)]
After = Annotated[str | None, Query(max_length=70)]
Preset = Annotated[Literal["standard", "conservative"] | None, Query()]
Fields = Annotated[LimitsFields, Form()]


@dataclass(frozen=True, slots=True)
class Row:
    """A level as it is in force, the same level in the other preset, and the settings that changed single figures."""

    level: TrustLevel
    limits: Limits
    other: Limits
    after_days: int
    settings: tuple[str, ...]


def anti_ban_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    _list(router, pages, services)
    _one(router, pages, services)
    return router


def _list(router: APIRouter, pages: Pages, services: Services) -> None:
    @router.get("/anti-ban")
    async def anti_ban(
        request: Request, search: Search = "", overridden: bool = False, cursor: After = None
    ) -> Response:
        only = await _overridden(services)
        found = await _page(services, search, cursor, only if overridden else None)
        shown = [item["sessionId"] for item in found["items"]]
        preset = services.configuration["PACING_PRESET"]
        return pages.show(
            request,
            "anti_ban/list.html",
            preset=preset,
            other=_other(preset),
            levels=_levels(services.policy.table, preset),
            delay=lambda limits: delay(limits, pages.formats(request)),
            sessions=found["items"],
            limits=await services.reading.limits_of(shown),
            search=search,
            overridden=overridden,
            overridden_count=len(only),
            urls={one: _url(search, overridden=one) for one in (False, True)},
            first=_url(search, overridden=overridden) if cursor else "",
            more=_url(search, str(found["nextCursor"]), overridden=overridden) if found["nextCursor"] else "",
        )


def _one(router: APIRouter, pages: Pages, services: Services) -> None:
    limits = LimitsEditor(pages, services)

    @router.get("/anti-ban/{session}")
    async def editor(request: Request, session: SessionId, use: Preset = None) -> Response:
        return await limits.show(request, session, use)

    @router.post("/anti-ban/{session}/preview")
    async def preview(request: Request, session: SessionId, fields: Fields) -> Response:
        return await limits.preview(request, session, fields)

    @router.post("/anti-ban/{session}")
    async def save(request: Request, session: SessionId, fields: Fields) -> Response:
        return await limits.save(request, session, fields)

    @router.post("/anti-ban/{session}/reset")
    async def reset(request: Request, session: SessionId) -> Response:
        await services.changing.override(session, Overrides(), None)
        return pages.done(request, "anti_ban.reset_done", then=f"/anti-ban/{session}")


async def _page(services: Services, search: str, cursor: str | None, only: Collection[str] | None) -> dict[str, Any]:
    """By name; `only` these, or all of them if it is None."""
    if only is not None and not only:
        return {"items": [], "nextCursor": None}
    return await services.overview.page((), search, _PER_PAGE, cursor, attention_first=False, only=only or ())


async def _overridden(services: Services) -> set[str]:
    """The sessions of accounts for which a person set something."""
    glance = await services.store.glances.take()
    return {one.id for one in glance.sessions if one.account and one.account.profile.is_overridden}


def _levels(table: TrustTable, preset: str) -> list[Row]:
    after = {TrustLevel.COLD: 0, TrustLevel.WARM: table.warm_after_ms, TrustLevel.HOT: table.hot_after_ms}
    return [
        Row(
            level,
            limits,
            PRESETS[_other(preset)][level],
            after[level] // DAY_MS,
            tuple(
                f"PACE__{level}__{figure}".upper()
                for figure in _FIGURES
                if getattr(limits, figure) != getattr(PRESETS[preset][level], figure)
            ),
        )
        for level, limits in table.levels.items()
    ]


def _other(preset: str) -> str:
    [other] = PRESETS.keys() - {preset}
    return other


def _url(search: str, cursor: str = "", *, overridden: bool) -> str:
    query = {"search": search, "overridden": "true" if overridden else "", "cursor": cursor}
    return "/anti-ban?" + urlencode({name: value for name, value in query.items() if value})
