"""How things look in a terminal: sessions, phone numbers, moments, and a QR code one can scan."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import phonenumbers
import segno
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from switchboard.cli import words

COLOURS = {
    "connected": "green",
    "qr_ready": "cyan",
    "starting": "cyan",
    "paused": "yellow",
    "restricted": "yellow",
    "disconnected": "yellow",
    "stopped": "dim",
}
_QUIET = 2


def console() -> Console:
    """As wide as the terminal; where there is none, wide enough for whatever reads it."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)


def status(shown: str) -> Text:
    return Text(shown, style=COLOURS.get(shown.partition(",")[0], "bold red"))


def phone(digits: str | None) -> str:
    if not digits:
        return ""
    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return f"+{digits}"
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def ago(moment: str | None, now: datetime | None = None) -> str:
    if not moment:
        return ""
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    return "just now" if seconds < 5 else f"{_span(seconds)} ago"


def soon(moment: str | None, now: datetime | None = None) -> str:
    """How long until then, and when that is on this machine's clock."""
    if not moment:
        return ""
    then = datetime.fromisoformat(moment)
    seconds = max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    at = then.astimezone().strftime("%H:%M" if seconds < 86_400 else "%Y-%m-%d %H:%M")
    return f"in {_span(seconds)} ({at})"


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def left(moment: str | None, now: datetime | None = None) -> str:
    """Minutes and seconds until then."""
    if not moment:
        return ""
    seconds = max(0, int((datetime.fromisoformat(moment) - (now or datetime.now(UTC))).total_seconds()))
    return f"{seconds // 60}:{seconds % 60:02d}"


def held(item: dict[str, Any], now: datetime | None = None) -> str:
    return words.hold(item["pausedReason"], soon(item["pausedUntil"], now), item["sessionId"])


def why(item: dict[str, Any]) -> str:
    """All there is to know about a session that does not send."""
    return "; ".join(filter(None, (words.reason(item["reason"]), held(item))))


def sessions(items: list[dict[str, Any]]) -> Table:
    table = Table("session", "name", "status", "phone", "proxy", "sent", "queue", "ping", box=None)
    table.columns[5].justify = table.columns[6].justify = "right"
    for column in table.columns:
        column.no_wrap = True
    table.columns[1].overflow = "ellipsis"
    table.columns[0].min_width = max((len(item["sessionId"]) for item in items), default=0)
    for item in items:
        daily = item["limits"]["daily"] if item["limits"] else None
        table.add_row(
            item["sessionId"],
            escape(item["name"] or ""),
            status(item["status"] + (", paused" if item["paused"] and item["status"] != "paused" else "")),
            phone(item["phone"]),
            item["proxyId"] or "",
            f"{item['sentToday']} of {daily}" if daily else "",
            str(item["queueSize"] or ""),
            ago(item["lastPing"]),
        )
    return table


def details(item: dict[str, Any], events: list[dict[str, Any]]) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="dim")
    table.add_column()
    limits = item["limits"]
    rows: list[tuple[str, str | Text]] = [
        ("session", Text(item["sessionId"] + (f"  {item['name']}" if item["name"] else ""))),
        ("status", status(item["status"])),
        ("why", Text(words.reason(item["reason"]))),
        ("held", Text(held(item))),
        ("phone", phone(item["phone"])),
        ("device name", item["deviceName"] or ""),
        ("proxy", item["proxyId"] or ""),
        ("trust", item["trustLevel"] or ""),
        ("sent today", f"{item['sentToday']} of {limits['daily']}, {limits['hours']}" if limits else ""),
        ("queue", str(item["queueSize"])),
        ("connected", ago(item["connectedAt"])),
        ("last ping", ago(item["lastPing"])),
    ]
    for name, value in rows:
        if value:
            table.add_row(name, value)
    for event in events:
        word = event["data"].get("reason") or event["data"].get("code") or ""
        table.add_row(ago(event["at"]), Text(f"{event['type']}  {word}", style="dim"))
    return table


def proxies(items: list[dict[str, Any]]) -> Table:
    table = Table("proxy", "host", "status", "places", "sessions", "since", box=None)
    for item in items:
        good = item["status"] == "OK"
        table.add_row(
            item["proxyId"],
            item["host"],
            Text("OK", style="green") if good else Text(f"BAD ({item['reason']})", style="bold red"),
            f"{len(item['sessions'])} of {item['capacity']}",
            ", ".join(item["sessions"]),
            ago(item["badAt"]),
        )
    return table


def qr(code: str) -> Text:
    """Two rows of modules to a line, dark on light whatever the terminal's colours are: cameras want it so."""
    matrix = [list(row) for row in segno.make(code, error="l", micro=False).matrix_iter(border=_QUIET)]
    if len(matrix) % 2:
        matrix.append([0] * len(matrix[0]))
    blocks = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
    lines = [
        "".join(blocks[bool(top), bool(bottom)] for top, bottom in zip(upper, lower, strict=True))
        for upper, lower in zip(matrix[::2], matrix[1::2], strict=True)
    ]
    return Text("\n".join(lines), style="#000000 on #ffffff", no_wrap=True)


def save_qr(code: str, file: Path) -> None:
    segno.make(code, error="l", micro=False).save(str(file), scale=8, border=4)


def qr_size(code: str) -> tuple[int, int]:
    """Columns and lines."""
    lines = qr(code).plain.split("\n")
    return len(lines[0]), len(lines)
