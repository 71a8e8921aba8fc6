"""How this installation is set up, and who may get in: the configuration, the password, sign-ins. Keys: api_keys.py."""

import secrets
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from switchboard.dashboard.access.gate import Gate, visitor_of
from switchboard.dashboard.access.origins import SIGN_IN
from switchboard.dashboard.access.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from switchboard.dashboard.pages.configuration import by_theme
from switchboard.dashboard.pages.new_keys import NewKey
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.errors import InvalidRequest
from switchboard.store.api_keys import SCOPES

HERE = "/settings"

Secret = Annotated[str, Form(max_length=2 * MAX_CHARACTERS)]


class SettingsPage:
    def __init__(self, pages: Pages, services: Services) -> None:
        self._pages = pages
        self._services = services
        self._blank = NewKey("", ("send", "read"), (), services.configuration["API_RATE_PER_MINUTE"])

    async def show(
        self, request: Request, faults: Mapping[str, str] | None = None, draft: NewKey | None = None, once: str = ""
    ) -> Response:
        """With faults, what was sent was refused; a draft is the key that it was to be, `once` the form's token."""
        services = self._services
        return self._pages.show(
            request,
            "settings/page.html",
            400 if faults else 200,
            themes=by_theme(services.configuration, services.defaults),
            has_password=await services.passwords.is_set(),
            least=MIN_CHARACTERS,
            keys=sorted(await services.store.api_keys.list(), key=lambda key: key.name.casefold()),
            scopes=SCOPES,
            draft=draft or self._blank,
            drafting=draft is not None,
            once=once or secrets.token_urlsafe(16),
            faults=faults or {},
        )


def settings_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    page = SettingsPage(pages, services)

    @router.get(HERE)
    async def settings(request: Request) -> Response:
        return await page.show(request)

    @router.post(f"{HERE}/password")
    async def set_password(request: Request, new: Secret = "", again: Secret = "") -> Response:
        if new != again:
            return await page.show(request, {"again": "settings.fault_again"})
        try:
            await services.passwords.change(new, stays=visitor_of(request).digest)
        except InvalidRequest:
            return await page.show(request, {"new": "settings.fault_new"})
        return pages.done(request, "settings.password_changed", then=HERE)

    @router.post(f"{HERE}/password/remove")
    async def remove_password(request: Request) -> Response:
        await services.passwords.clear(stays=visitor_of(request).digest)
        return pages.done(request, "settings.password_removed", then=HERE)

    @router.post(f"{HERE}/sign-out-everywhere")
    async def sign_out_everywhere(request: Request) -> Response:
        await services.store.sign_ins.remove_all()
        response = pages.done(request, "settings.signed_out", then=SIGN_IN)
        await gate.sign_out(request, response)
        return response

    return router
