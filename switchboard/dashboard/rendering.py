"""From a template and its values to an answer: the language, the frame, what was just done, and what went wrong."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import switchboard
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.catalogue import NAMES, Catalogue, Texts
from switchboard.dashboard.formats import Formats
from switchboard.dashboard.navigation import MENU
from switchboard.dashboard.static import Static
from switchboard.dashboard.words import Words
from switchboard.domain.clock import Clock
from switchboard.domain.errors import SwitchboardError

_TEMPLATES = Path(__file__).parent / "templates"
_FLASH = "switchboard_said"
LANGUAGE = "switchboard_language"


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page says besides its own: that this is the demo, and what nobody may overlook."""

    demo: bool = False
    direct: Callable[[], bool] = lambda: False
    """Sessions connect without a proxy right now."""
    secrets_file: str | None = None
    """Where the API key is kept, as one types it where Switchboard was started; None if it was given to us."""
    open_command: str = "switchboard open"
    """What makes a link that signs in, as one types it there."""


class Pages:
    def __init__(
        self, catalogue: Catalogue, static: Static, signer: Signer, zone: ZoneInfo, clock: Clock, frame: Frame
    ) -> None:
        self._signer = signer
        self._catalogue = catalogue
        self._static = static
        self._zone = zone
        self._clock = clock
        self._frame = frame
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            auto_reload=False,  # the texts are read once, too: never new templates with old texts
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {
            "static": static.url,
            "menu": MENU,
            "languages": NAMES,
            "version": switchboard.__version__,
        }
        self._templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False}

    def texts(self, request: Request) -> Texts:
        return self._catalogue.choose(request.cookies.get(LANGUAGE), request.headers.get("accept-language"))

    def formats(self, request: Request) -> Formats:
        return Formats(self.texts(request).language, self._zone)

    def html(self, request: Request, template: str, /, **values: object) -> str:
        """A piece of a page."""
        texts = self.texts(request)
        visitor = getattr(request.state, "visitor", None)
        formats = Formats(texts.language, self._zone)
        frame: dict[str, object] = {
            "t": texts,
            "f": formats,
            "words": Words(texts, formats),
            "lang": texts.language,
            "dir": texts.direction,
            "nonce": getattr(request.state, "nonce", ""),
            "visitor": visitor,
            "csrf": visitor.csrf if visitor else "",
            "path": request.url.path,
            "url": _here(request),
            "frame": self._frame,
            "now": self._clock(),
            "zone": self._zone.key,
            "toasts": self._flashed(request, texts),
        }
        return self._templates.get_template(template).render(frame | values)

    def show(self, request: Request, template: str, /, status: int = 200, **values: object) -> Response:
        response = HTMLResponse(self.html(request, template, **values), status)
        if _FLASH in request.cookies and not is_htmx(request):
            response.delete_cookie(_FLASH)
        return response

    def done(
        self, request: Request, key: str, /, then: str | None = None, tone: str = "good", **values: object
    ) -> Response:
        """Something was done: says so, here or on the page to go to `then`. What the page shows is loaded anew.

        `tone` is "warn" where it came out otherwise than one hopes.
        """
        if then is None and is_htmx(request):
            return self._toast(request, tone, self.texts(request)(key, **values), 200)
        response = Response(status_code=200 if is_htmx(request) else 303)
        response.headers["HX-Redirect" if is_htmx(request) else "Location"] = then or "/"
        said = self._signer.sign(_FLASH, json.dumps([key, values, tone]))
        response.set_cookie(_FLASH, said, max_age=60, httponly=True, samesite="lax")
        return response

    def _flashed(self, request: Request, texts: Texts) -> list[Mapping[str, str]]:
        """What the page before wanted to be said here. Only our own words count."""
        said = self._signer.open(_FLASH, request.cookies.get(_FLASH, ""))
        if said is None or is_htmx(request):
            return []
        key, values, tone = json.loads(said)
        return [{"tone": tone, "message": texts(key, **values)}] if texts.has(key) else []

    def error(self, request: Request, error: Exception, status: int) -> Response:
        """A page of its own, or a word in the corner if only a part of a page was asked for."""
        message = self.explain(request, error)
        headers = {"Retry-After": str(retry)} if (retry := _retry_after(error)) else {}
        if is_htmx(request):
            response = self._toast(request, "bad", message, status)
        else:
            response = self.show(request, "error.html", status, code=status, message=message)
        response.headers.update(headers)
        return response

    def explain(self, request: Request, error: Exception) -> str:
        """In the reader's language where the catalogue knows the error, else in our own words."""
        texts = self.texts(request)
        if not isinstance(error, SwitchboardError):
            nowhere = getattr(error, "status_code", 500) in {404, 405}
            return texts("errors.NOT_FOUND" if nowhere else "errors.INTERNAL_ERROR")
        key = f"errors.{error.code}"
        if texts.has(key):
            return texts.lenient(key, error.details)
        return error.message

    def _toast(self, request: Request, tone: str, message: str, status: int) -> Response:
        body = self.html(request, "toast.html", tone=tone, message=message)
        headers = {"HX-Retarget": "#toasts", "HX-Reswap": "afterbegin", "HX-Reselect": ".toast"}
        return HTMLResponse(body, status, headers=headers | ({"HX-Trigger": "changed"} if tone != "bad" else {}))


def _here(request: Request) -> str:
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def _retry_after(error: Exception) -> int | None:
    details = getattr(error, "details", {})
    retry = details.get("retryAfter") if isinstance(details, dict) else None
    return retry if isinstance(retry, int) else None
