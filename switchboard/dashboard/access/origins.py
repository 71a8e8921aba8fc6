"""Where a request comes from, and where an answer may lead: other sites may neither act here nor be led to."""

from urllib.parse import quote, urlsplit

from fastapi import Request
from starlette.routing import Match

from switchboard.domain.errors import Forbidden

SIGN_IN = "/sign-in"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_PATH = 2000


def refuse_cross_site(request: Request) -> None:
    """Whatever changes something must come from a page of ours. A browser says so, in one of three ways."""
    if request.method in SAFE_METHODS or _from_here(request):
        return
    raise Forbidden("This came from a page of another site; nothing was done.", reason="cross_site")


def _from_here(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    # Browsers send it only over https and to localhost.
    origin = request.headers.get("origin") or request.headers.get("referer")
    return origin is not None and is_own(request, origin)


def is_own(request: Request, url: str) -> bool:
    """By host and port only: behind a proxy that speaks https, we are asked by http."""
    try:
        asked = urlsplit(url)
        port = asked.port or _DEFAULT_PORTS[asked.scheme]
        own = urlsplit(f"{asked.scheme}://{request.headers.get('host', '')}")
        return asked.hostname is not None and (asked.hostname, port) == (
            own.hostname,
            own.port or _DEFAULT_PORTS[asked.scheme],
        )
    except (ValueError, KeyError):
        return False


def local_path(path: str | None) -> str | None:
    """The path, if it leads to a page of ours and nowhere else in any browser's reading of it."""
    if not path or len(path) > _LONGEST_PATH or not path.startswith("/") or path.startswith("//"):
        return None
    return path if path.isprintable() and not set(path) & {"\\", " "} else None


def sign_in_url(request: Request) -> str:
    """The sign-in, which afterwards leads to the page that this request belongs to."""
    page = local_path(_page_of(request))
    return SIGN_IN if page in {None, "/"} else f"{SIGN_IN}?next={quote(page or '', safe='/')}"


def _page_of(request: Request) -> str | None:
    """Not what was asked for, if that is something to be done, but where it was asked."""
    if request.method in SAFE_METHODS:
        return _path(str(request.url))
    url = request.headers.get("referer")
    return _path(url) if url and is_own(request, url) else None


def page_above(request: Request) -> str:
    """The nearest page on the way from an address that is none up to the first one."""
    path = request.url.path
    while path := path.rpartition("/")[0]:
        asked = {**request.scope, "method": "GET", "path": path}
        if any(route.matches(asked)[0] is Match.FULL for route in request.app.routes):
            return path
    return "/"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def is_from_a_person(request: Request) -> bool:
    """A browser that wants a page, or a page that wants a part of it: neither can read JSON to anybody."""
    return is_htmx(request) or "text/html" in request.headers.get("accept", "")


def is_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"
