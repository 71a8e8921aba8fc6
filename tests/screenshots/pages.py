"""The one table of what is photographed: a page's name, where it is, and what is done on it first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.support.browser import Visit

Prepare = Callable[[Visit], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Shot:
    """`path` may name what is in the scene: {session}, {scanning}, {batch}, {message}."""

    name: str
    path: str
    prepare: Prepare | None = None
    signed_in: bool = True


SHOTS = (
    Shot("sign-in", "/sign-in", signed_in=False),
    Shot("overview", "/"),
    Shot("session", "/sessions/{session}"),
    Shot("new-session", "/sessions/{scanning}"),
    Shot("proxies", "/proxies"),
    Shot("anti-ban", "/anti-ban"),
    Shot("send", "/send"),
    Shot("messages", "/messages"),
    Shot("message", "/messages/{message}"),
    Shot("batches", "/batches"),
    Shot("batch", "/batches/{batch}"),
    Shot("dead-letters", "/dead-letters"),
    Shot("log", "/log"),
    Shot("status", "/status"),
    Shot("settings", "/settings"),
)
