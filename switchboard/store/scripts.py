"""Loads the Lua moves and calls them by name. The typed method of each is in the module of its noun."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import lua_prelude

Argument = str | int | float


@cache
def source(name: str) -> str:
    folder = files("switchboard.store") / "lua"
    shared = (folder / "lib.lua").read_text()
    return lua_prelude() + shared + (folder / f"{name}.lua").read_text()


@cache
def _digest(name: str) -> str:
    return hashlib.sha1(source(name).encode(), usedforsecurity=False).hexdigest()


class Scripts:
    """Runs moves under one key prefix. A server that lost its script cache is given the source again."""

    def __init__(self, client: Redis, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def run(self, name: str, *arguments: Argument) -> Any:
        async with store_errors():
            try:
                return await self._client.evalsha(_digest(name), 1, self._prefix, *arguments)
            except NoScriptError:
                return await self._client.eval(source(name), 1, self._prefix, *arguments)

    async def run_together(self, calls: Sequence[tuple[str, tuple[Argument, ...]]]) -> list[Any]:
        """Several moves in one round trip, one after the other (not one transaction)."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for name, arguments in calls:
                pipeline.evalsha(_digest(name), 1, self._prefix, *arguments)
            answers = await pipeline.execute(raise_on_error=False)
            for index, (name, arguments) in enumerate(calls):
                if isinstance(answers[index], NoScriptError):
                    answers[index] = await self.run(name, *arguments)
                elif isinstance(answers[index], Exception):
                    raise answers[index]
            return list(answers)
