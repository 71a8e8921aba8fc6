"""API keys: make one, whose secret is shown once, and revoke one. The list is part of the settings."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages import new_keys
from switchboard.dashboard.pages.settings import HERE, SettingsPage
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.errors import NotFound
from switchboard.domain.hours import DAY_MS
from switchboard.store.api_keys import SCOPES, digest

_REMEMBERED_MS = 30 * DAY_MS
"""As long as a sign-in may last: a form from before it is refused anyway."""

Short = Annotated[str, Form(max_length=200)]
Names = Annotated[str, Form(max_length=10_000)]
Scopes = Annotated[list[str], Form(default_factory=list, max_length=len(SCOPES))]
KeyId = Annotated[str, Path(pattern="^[0-9a-f]{12}$")]


def api_key_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    page = SettingsPage(pages, services)

    @router.post(f"{HERE}/keys")
    async def create(
        request: Request, scopes: Scopes, name: Short = "", sessions: Names = "", rate: Short = "", once: Short = ""
    ) -> Response:
        draft = new_keys.read(name, scopes, sessions, rate)
        if faults := draft.faults(await services.store.sessions.ids()):
            return await page.show(request, faults, draft, once)
        if once and not await is_new(once):  # the page with the secret was loaded again
            return pages.done(request, "settings.sent_before", then=HERE)
        key, secret = await services.store.api_keys.create(
            draft.name, frozenset(draft.scopes), frozenset(draft.sessions), int(draft.rate)
        )
        # Not by a redirect: the secret is in this one answer and nowhere else.
        return pages.show(request, "settings/key.html", key=key, secret=secret)

    async def is_new(once: str) -> bool:
        now = services.clock()
        return await services.store.sign_ins.spend(digest(f"key form {once}"), now + _REMEMBERED_MS, now)

    @router.post(f"{HERE}/keys/{{key}}/revoke")
    async def revoke(request: Request, key: KeyId) -> Response:
        if not await services.store.api_keys.revoke(key):
            raise NotFound(f"There is no key '{key}'.")
        return pages.done(request, "settings.revoked", then=HERE, id=key)

    return router
