"""Loads the Lua moves and calls them by name. The typed method of each is in the module of its noun."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

from switchboard.domain.errors import StoreUnavailable
from switchboard.store.client import Redis, is_away, store_errors
from switchboard.store.coalesce import Coalescer
from switchboard.store.keys import lua_prelude

Argument = str | int | float
Call = tuple[str, tuple[Argument, ...]]
_LIB = ("base", "places", "accounts", "messages", "sessions")  # in the order they build on each other
_DEFINES = re.compile(r"^local (?:function )?(\w+)", re.MULTILINE)


@cache
def source(name: str) -> str:
    """The script with what it uses of the key functions and of lua/lib, and no more: all of it runs at every call."""
    folder = files("switchboard.store") / "lua"
    body = (folder / f"{name}.lua").read_text()
    shared = [chunk for part in _LIB for chunk in (folder / "lib" / f"{part}.lua").read_text().split("\n\n")]
    chunks = [*lua_prelude().splitlines(), *shared]
    used: list[str] = []
    text = body
    for chunk in reversed(chunks):  # a definition stands before its use
        if any(re.search(rf"\b{name}\b", text) for name in _DEFINES.findall(chunk)):
            used.insert(0, chunk)
            text += chunk
    return "\n".join([*used, body])


@cache
def _digest(name: str) -> str:
    return hashlib.sha1(source(name).encode(), usedforsecurity=False).hexdigest()


class Scripts:
    """Runs moves under one key prefix. A server that lost its script cache is given the source again.

    Calls made while others are under way go out together, in one round trip; each has its own answer.
    """

    def __init__(self, client: Redis, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._calls = Coalescer[Call, Any](self._send)

    async def run(self, name: str, *arguments: Argument) -> Any:
        return _answer(await self._calls.submit((name, arguments)))

    async def run_together(self, calls: Sequence[Call]) -> list[Any]:
        """Several moves in one round trip, one after the other (not one transaction)."""
        return [_answer(answer) for answer in await self._send(calls)]

    async def _send(self, calls: Sequence[Call]) -> list[Any]:
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for name, arguments in calls:
                pipeline.evalsha(_digest(name), 1, self._prefix, *arguments)
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            for index, (name, arguments) in enumerate(calls):
                if isinstance(answers[index], NoScriptError):
                    answers[index] = await self._client.eval(source(name), 1, self._prefix, *arguments)
            return answers


def _answer(answer: Any) -> Any:
    if isinstance(answer, Exception):
        if is_away(answer):
            raise StoreUnavailable from answer
        raise answer
    return answer
