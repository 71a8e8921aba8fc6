"""What every answer of the dashboard tells the browser not to allow."""

import secrets

from fastapi import Response

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_UNLESS_SAID = {
    "Cache-Control": "no-store",
    # Not no-referrer: a form would then be sent with "Origin: null", which is what another site's would be, too.
    "Referrer-Policy": "same-origin",
}


def new_nonce() -> str:
    return secrets.token_urlsafe(16)


def protect(response: Response, nonce: str) -> None:
    response.headers["Content-Security-Policy"] = _policy(nonce)
    response.headers.update(_ALWAYS)
    for name, value in _UNLESS_SAID.items():
        response.headers.setdefault(name, value)


def _policy(nonce: str) -> str:
    """Scripts and styles are our own files, or were written by us into this very answer; modules that a file
    imports are files, too. Not 'strict-dynamic': it would turn 'self' off and let scripts load from anywhere."""
    return "; ".join((
        "default-src 'none'",
        f"script-src 'self' 'nonce-{nonce}'",
        f"style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    ))  # fmt: skip
