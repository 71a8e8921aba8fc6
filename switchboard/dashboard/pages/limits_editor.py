"""One account's limits in a form that shows what they would do, and says at each field what is wrong with it."""

from collections.abc import Mapping
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from fastapi import Request, Response

from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.pages.limits_form import LimitsFields, WrongFields, seconds
from switchboard.dashboard.pages.limits_preview import Preview, preview
from switchboard.dashboard.pages.limits_words import PreviewWords, preview_words
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.accounts import Account
from switchboard.domain.trust import PRESETS, Overrides, TrustLevel

_NO_FAULTS: Mapping[str, str] = dict.fromkeys(LimitsFields.model_fields, "")


class LimitsEditor:
    def __init__(self, pages: Pages, services: Services) -> None:
        self._pages = pages
        self._services = services

    async def show(self, request: Request, session: str, use: str | None) -> Response:
        """With `use`, the figures of that preset are filled in."""
        account = await self._account(session)
        profile = account.profile
        zone = profile.zone.key if profile.own_zone else ""
        overrides = Overrides.of(PRESETS[use][self._level(account)]) if use else profile.overrides
        shown = self._look(account, overrides, zone)
        return await self._page(request, session, shown, LimitsFields.showing(overrides, zone), filled=use)

    async def preview(self, request: Request, session: str, fields: LimitsFields) -> Response:
        """Asked for while somebody types: what can't be is said in its place, and is no error."""
        account = await self._account(session)
        faults: Mapping[str, str] = {}
        try:
            shown = self._look(account, *self._asked(request, account, fields))
        except WrongFields as wrong:
            shown, faults = self._as_it_is(account), wrong.faults
        said = self._said(request, shown)
        return self._pages.show(
            request, "anti_ban/looked.html", said=said, wrong=bool(faults), faults={**_NO_FAULTS, **faults}
        )

    async def save(self, request: Request, session: str, fields: LimitsFields) -> Response:
        account = await self._account(session)
        try:
            overrides, zone = self._asked(request, account, fields)
        except WrongFields as wrong:
            if is_htmx(request):  # the form stays, with what was typed
                return self._pages.show(request, "faults.html", 400, faults={**_NO_FAULTS, **wrong.faults})
            return await self._page(request, session, self._as_it_is(account), fields, wrong.faults)
        await self._services.changing.override(session, overrides, zone)
        return self._pages.done(request, "anti_ban.saved", then=f"/anti-ban/{session}")

    async def _page(
        self,
        request: Request,
        session: str,
        shown: Preview,
        fields: LimitsFields,
        faults: Mapping[str, str] | None = None,
        filled: str | None = None,
    ) -> Response:
        services = self._services
        profile = (await self._account(session)).profile
        return self._pages.show(
            request,
            "anti_ban/editor.html",
            400 if faults else 200,
            session=session,
            limits=await services.reading.limits(session),
            sessions=sorted(await services.reading.sessions_of(profile.phone)),
            fields=fields,
            faults={**_NO_FAULTS, **(faults or {})},
            wrong=bool(faults),
            default_zone=services.zone.key,
            zones=_zones(),
            table=shown.table,
            seconds=seconds,
            said=self._said(request, shown),
            filled=filled,
            is_overridden=profile.is_overridden,
        )

    async def _account(self, session: str) -> Account:
        services = self._services
        return (await services.store.accounts.look(session=session, now=services.clock())).account

    def _level(self, account: Account) -> TrustLevel:
        return self._services.policy.table.level(account.profile.first_connected_at, self._services.clock())

    def _asked(self, request: Request, account: Account, fields: LimitsFields) -> tuple[Overrides, str | None]:
        return fields.asked(self._services.policy.table.levels[self._level(account)], self._pages.texts(request))

    def _look(self, account: Account, overrides: Overrides, zone: str | None) -> Preview:
        services = self._services
        where = ZoneInfo(zone) if zone else services.zone
        return preview(services.policy, account, overrides, where, services.clock())

    def _as_it_is(self, account: Account) -> Preview:
        return self._look(account, account.profile.overrides, account.profile.zone.key)

    def _said(self, request: Request, shown: Preview) -> PreviewWords:
        return preview_words(shown, self._pages.texts(request), self._pages.formats(request))


@cache
def _zones() -> tuple[str, ...]:
    return tuple(sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/")))
