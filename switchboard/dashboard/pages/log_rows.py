"""The event stream as rows that a person reads: which are wanted, and what each says. No HTTP here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from switchboard.dashboard.formats import Formats
from switchboard.dashboard.words import Words
from switchboard.orchestrator.event_routes import shown_fields
from switchboard.store.feed import Entry, Feed

Kind = Literal["", "sessions", "messages", "proxies", "trouble"]

_STEMS: Mapping[str, tuple[str, ...]] = {
    "sessions": ("session.", "account."),
    "messages": ("message.",),
    "proxies": ("proxy.", "inventory."),
}
_TROUBLE = frozenset({
    "session.failed", "session.logged_out", "session.passkey_required", "session.disconnected", "session.paused",
    "session.restricted", "account.paused", "account.restricted", "message.failed", "message.dead",
    "message.unconfirmed", "proxy.bad", "inventory.low",
})  # fmt: skip
_WANTED = frozenset({
    "by_request", "restart", "restart_required", "switchboard_stopped", "failover", "moving_to_own_proxy", "deleting",
})  # fmt: skip
"""Reasons that make no trouble of what has them: somebody asked for it, or it passes at once."""
_AT_ONCE = 500
_MOST_LOOKED_AT = 12_000
"""A little more than are kept."""


class LogQuery(BaseModel):
    """Which rows to show; what is empty does not matter."""

    kind: Kind = ""
    session: str = Field("", pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,63})?$")
    q: str = Field("", max_length=100)

    def fits(self, entry: Entry) -> bool:
        """By all but the search, which is in what the row says."""
        if self.session and entry.fields.get("sessionId") != self.session:
            return False
        if self.kind == "trouble":
            return is_trouble(entry)
        return not self.kind or entry.type.startswith(_STEMS[self.kind])

    def given(self) -> dict[str, str]:
        return {name: value for name, value in (("kind", self.kind), ("session", self.session), ("q", self.q)) if value}


@dataclass(frozen=True, slots=True)
class LogRow:
    id: str
    type: str
    at: str
    what: str
    session: str
    account: str
    message: str
    trouble: bool


class LogRows:
    """Rows in the language of the one who reads."""

    def __init__(self, query: LogQuery, words: Words, formats: Formats) -> None:
        self._query = query
        self._searched = query.q.casefold().split()
        self._words = words
        self._formats = formats

    def row(self, entry: Entry) -> LogRow | None:
        """None if it is not wanted."""
        if not self._query.fits(entry):
            return None
        fields = {name: str(value) for name, value in shown_fields(entry).items()}
        session = fields.pop("sessionId", "")
        row = LogRow(
            entry.id,
            entry.type,
            self._formats.local(_moment(entry)),
            self._words.event(entry.type, fields),
            session,
            fields.get("account", ""),
            fields.get("messageId", ""),
            is_trouble(entry),
        )
        return row if not self._searched or self._found(row) else None

    def _found(self, row: LogRow) -> bool:
        """In whatever the page shows of it, so that the search in the page finds the same."""
        phone = self._formats.phone(row.account) if row.account else ""
        text = f"{row.what} {row.session} {row.account} {phone} {row.message} {row.type}".casefold()
        return all(word in text for word in self._searched)


def is_trouble(entry: Entry) -> bool:
    return entry.type in _TROUBLE and entry.fields.get("reason") not in _WANTED


async def newest(
    feed: Feed, row_of: Callable[[Entry], LogRow | None], limit: int, before: str | None = None
) -> tuple[list[LogRow], str | None]:
    """Up to so many rows, newest first, and where to go on; None at the end of what is kept."""
    rows: list[LogRow] = []
    for _ in range(_MOST_LOOKED_AT // _AT_ONCE):
        page = await feed.before(before, _AT_ONCE)
        for entry in page:
            before = entry.id
            if row := row_of(entry):
                rows.append(row)
            if len(rows) == limit:
                return rows, before
        if len(page) < _AT_ONCE:
            break
    return rows, None


def _moment(entry: Entry) -> int:
    return int(float(entry.fields.get("at") or entry.id.partition("-")[0]))
