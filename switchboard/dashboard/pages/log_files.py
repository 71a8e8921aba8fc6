"""The log as a file: what a filter matches, oldest first, for a spreadsheet or for a program."""

import csv
import io
import json
from collections.abc import AsyncIterator, Callable

from switchboard.dashboard.pages.log_rows import LogRow
from switchboard.orchestrator.event_routes import shown_fields
from switchboard.store.feed import Entry, Feed

_COLUMNS = ("time", "type", "what", "session", "account", "message", "id")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MOST_PAGES = 100
"""Of two hundred each: a busy fleet must not make a file that never ends."""

RowOf = Callable[[Entry], LogRow | None]


async def as_csv(feed: Feed, row_of: RowOf) -> AsyncIterator[str]:
    yield "\ufeff" + _line(_COLUMNS)  # or a spreadsheet takes it for another alphabet
    async for row, _ in _matching(feed, row_of):
        yield _line((row.at, row.type, row.what, row.session, row.account, row.message, row.id))


async def as_ndjson(feed: Feed, row_of: RowOf) -> AsyncIterator[str]:
    async for row, entry in _matching(feed, row_of):
        said = {"id": row.id, "type": row.type, **shown_fields(entry), "at": row.at}
        yield json.dumps(said, ensure_ascii=False) + "\n"


async def _matching(feed: Feed, row_of: RowOf) -> AsyncIterator[tuple[LogRow, Entry]]:
    cursor = "0-0"
    for _ in range(_MOST_PAGES):
        page = await feed.after(cursor)
        if not page:
            return
        cursor = page[-1].id
        for entry in page:
            if row := row_of(entry):
                yield row, entry


def _line(cells: tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_inert(cell) for cell in cells])
    return line.getvalue()


def _inert(cell: str) -> str:
    """A cell that a spreadsheet would take for a formula is a text."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
