"""The reference of the API at /docs, made from the document that /openapi.json answers. For everyone, as that is."""

import re
from typing import Any

from fastapi import APIRouter, Request, Response
from markupsafe import Markup, escape

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.api.document import HERE, Reference, reference_of
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


class Printed:
    """The reference in each language. Long, open to everyone and always the same: it is rendered once."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._reference: Reference | None = None
        self._by_language: dict[str, str] = {}

    def reference(self, document: dict[str, Any]) -> Reference:
        if self._reference is None:
            self._reference = reference_of(document)
        return self._reference

    def operations(self, request: Request, reference: Reference) -> Markup:
        language = self._pages.texts(request).language
        if language not in self._by_language:
            printed = self._pages.html(request, "api_reference/groups.html", reference=reference)
            self._by_language[language] = printed
        return Markup(self._by_language[language].replace(HERE, escape(_address(request))))  # noqa: S704 - ours, escaped


def api_reference_pages(gate: Gate, pages: Pages, _: Services) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)
    printed = Printed(pages)

    @router.get("/docs")
    async def docs(request: Request) -> Response:
        # With the menu around it for those who have one.
        request.state.visitor = await gate.visitors.recognise(request)
        reference = printed.reference(request.app.openapi())
        operations = printed.operations(request, reference)
        return pages.show(request, "api_reference/page.html", reference=reference, operations=operations)

    return router


def _address(request: Request) -> str:
    """Where this page was asked for. It is pasted into shells: anything but a plain address is not repeated."""
    address = str(request.base_url).rstrip("/")
    return address if _ADDRESS.fullmatch(address) else "http://localhost:3000"
