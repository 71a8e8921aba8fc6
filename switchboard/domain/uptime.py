"""When a session was up: what its changes of state say about a stretch of time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from switchboard.domain.sessions import State


@dataclass(frozen=True, slots=True)
class Span:
    """It was in this state from `start` until `end`."""

    state: State
    start: int
    end: int


def strip(changes: Sequence[tuple[int, State]], start: int, end: int) -> list[Span]:
    """The spans of these changes (oldest first) that lie between the two moments.

    They touch each other. What was before the first change nobody knows: no span covers it.
    """
    return list(_joined(_cut(changes, start, end)))


def _cut(changes: Sequence[tuple[int, State]], start: int, end: int) -> Iterator[Span]:
    ends = [at for at, _ in changes[1:]] + [end]
    for (at, state), until in zip(changes, ends, strict=False):
        span = Span(state, max(at, start), min(until, end))
        if span.start < span.end:
            yield span


def _joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Neighbours of one state are one span: what lay between them took no time."""
    last: Span | None = None
    for span in spans:
        if last is not None and last.state is span.state:
            last = Span(last.state, last.start, span.end)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def share_up(spans: Sequence[Span]) -> float | None:
    """The share of the known time that it was connected, from 0 to 1; None if nothing is known."""
    known = sum(span.end - span.start for span in spans)
    up = sum(span.end - span.start for span in spans if span.state is State.CONNECTED)
    return up / known if known else None
