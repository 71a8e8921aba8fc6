"""What workers and scripts say, with the moment it was heard. Waiting for a word means waiting for a condition."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass

PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Word:
    """`at` is of `time.perf_counter`."""

    at: float
    text: str


class Hearing:
    def __init__(self) -> None:
        self._words: defaultdict[tuple[str, str], list[Word]] = defaultdict(list)
        self._news = asyncio.Condition()

    async def note(self, who: str, what: str, text: str = "") -> None:
        self._words[who, what].append(Word(time.perf_counter(), text))
        async with self._news:
            self._news.notify_all()

    async def first(self, who: str, what: str, after: float) -> Word:
        """The first that was heard after that moment, maybe still to come."""

        def heard() -> bool:
            return any(word.at > after for word in self._words[who, what])

        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(heard)
        except TimeoutError:
            others = sorted({said for one, said in self._words if one == who})
            raise TimeoutError(f"{who} did not say {what}; ever heard of it: {', '.join(others)}") from None
        return next(word for word in self._words[who, what] if word.at > after)

    def newest(self, who: str, what: str) -> str:
        return self._words[who, what][-1].text
