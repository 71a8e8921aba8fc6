"""What memory a process really has, from the kernel: and when it has stopped changing."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOKS = 5
LOOK_S = 2.0
STEADY = 0.01
PATIENCE_S = 90


@dataclass(frozen=True, slots=True)
class Footprint:
    """In MB. PSS counts a page that n processes share as 1/n in each; `private` counts it not at all."""

    rss: float
    pss: float
    private: float


def footprint(pid: int) -> Footprint:
    fields: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, amount, *_ = line.split()
        fields[name.removesuffix(":")] = int(amount)
    private = fields["Private_Clean"] + fields["Private_Dirty"]
    return Footprint(fields["Rss"] / 1024, fields["Pss"] / 1024, private / 1024)


async def steady(pids: Sequence[int]) -> list[Footprint]:
    """Of each, once the whole group changed by no more than 1 % over some looks; at the latest when patience ends."""
    seen: list[float] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = await asyncio.to_thread(lambda: [footprint(pid) for pid in pids])
        seen.append(sum(one.rss for one in now))
        last = seen[-LOOKS:]
        if len(last) == LOOKS and max(last) - min(last) <= STEADY * max(last):
            return now
        if time.monotonic() > deadline:
            return now
        await asyncio.sleep(LOOK_S)
