"""Walking the index of all messages, or of all batches, in steps so short that nobody waits for the store."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from switchboard.store.scripts import Scripts


@dataclass(frozen=True, slots=True)
class Found:
    """Ids, and where the walk goes on; None at its end."""

    ids: list[str]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class WalkRules:
    """How many entries one script call looks at, and how many one page does before it is answered as it is."""

    step: int = 1_000
    most: int = 20_000


class Index:
    """What was accepted, by the moment it was."""

    def __init__(self, scripts: Scripts, of: Literal["messages", "batches"], rules: WalkRules) -> None:
        self._scripts = scripts
        self._of = of
        self._rules = rules

    async def find(
        self,
        limit: int,
        cursor: str | None,
        *,
        rows: str = "",
        among: Mapping[str, Collection[str]] | None = None,
        holding: Mapping[str, str] | None = None,
    ) -> Found:
        """Newest first, or the rows of a batch in their order. Fewer than `limit` if it took too long to find them.

        The cursor is the score and id of the last one looked at, so it holds while others come and go.
        """
        found: list[tuple[str, str]] = []
        stand, walked = cursor or "", 0
        step = self._rules.step if among or holding else min(self._rules.step, limit + 1)
        fixed = {
            "index": self._of,
            "rows": rows,
            "step": step,
            "among": {field: sorted(values) for field, values in (among or {}).items()},
            "holding": dict(holding or {}),
        }
        while True:
            asked = fixed | {"after": stand, "wanted": limit + 1 - len(found)}
            ended, stand, some = await self._scripts.run("find", json.dumps(asked))
            found += zip(some[::2], some[1::2], strict=True)
            walked += step
            ids = [one for one, _ in found[:limit]]
            if len(found) > limit:
                return Found(ids, found[limit - 1][1])
            if ended:
                return Found(ids, None)
            if walked >= self._rules.most:
                return Found(ids, stand)

    async def tidy(self, before: int) -> int:
        """How many entries of what is gone left the index, of those that are older than this."""
        kept, removed = 0, 0
        while True:
            seen, gone = map(int, await self._scripts.run("tidy", self._of, before, kept, self._rules.step))
            kept += seen - gone
            removed += gone
            if seen < self._rules.step:
                return removed
