"""The dashboard's pages with 1,000 sessions and 100,000 messages, beside the same pages with hardly any, in turns."""

import time
from statistics import median

import httpx

from bench.ground import percentile
from tests.support.premises import API_KEY
from tests.support.seeded_program import SeededProgram, seeded_program

ROUNDS = 25
FEW, MANY = (10, 500), (1_000, 100_000)


def _pages(program: SeededProgram) -> dict[str, str]:
    session, message = program.seeded.one("connected").id, program.seeded.messages.by_status["read"][0]
    to = str(program.store.hget(f"switchboard:message:{message}", "to"))
    return {
        "overview": "/",
        "overview_search": "/?search=worker_7",
        "session": f"/sessions/{session}",
        "proxies": "/proxies",
        "limits": "/anti-ban",
        "limits_one": f"/anti-ban/{session}",
        "send": "/send",
        "messages": "/messages",
        "message": f"/messages/{message}",
        "messages_to": f"/messages?to={to}",
        "messages_none": "/messages?reference=nobody-has-this-one",
        "batches": "/batches",
        "dead_letters": "/dead-letters",
        "log": "/log",
        "health": "/status",
        "settings": "/settings",
    }


async def measure() -> dict[str, float]:
    results: dict[str, float] = {}
    async with (
        seeded_program(*FEW) as few,
        seeded_program(*MANY) as many,
        _Visit(few.url) as small,
        _Visit(many.url) as large,
    ):
        of_few = _pages(few)
        for name, of_many in _pages(many).items():
            results |= await _compare(name, small, of_few[name], large, of_many)
    results["page_slowest_p50_ms"] = max(value for name, value in results.items() if name.endswith("_p50_ms"))
    results["page_largest_kb"] = max(value for name, value in results.items() if name.endswith("_kb"))
    return results


class _Visit:
    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, headers={"Accept": "text/html", "Origin": url}, timeout=60)

    async def __aenter__(self) -> "_Visit":
        answer = await self._http.post("/sign-in", data={"secret": API_KEY})
        assert answer.status_code == 303, answer.text
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def look(self, path: str) -> tuple[float, int]:
        """How long it took in ms, and how large it is."""
        began = time.perf_counter()
        answer = await self._http.get(path)
        took = (time.perf_counter() - began) * 1000
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return took, len(answer.content)


async def _compare(name: str, small: _Visit, of_few: str, large: _Visit, of_many: str) -> dict[str, float]:
    await small.look(of_few)
    _, size = await large.look(of_many)
    few, many = [], []
    for _ in range(ROUNDS):
        few.append((await small.look(of_few))[0])
        many.append((await large.look(of_many))[0])
    return {
        f"page_{name}_p50_ms": median(many),
        f"page_{name}_p95_ms": percentile(many, 0.95),
        f"page_{name}_to_few": median(many) / median(few),
        f"page_{name}_kb": size / 1000,
    }
