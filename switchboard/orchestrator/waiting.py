"""Waiting for the first of several things to happen."""

import asyncio


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> bool:
    """True once any of them is set; False if the time is over first."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waiting, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for task in waiting:
            task.cancel()
