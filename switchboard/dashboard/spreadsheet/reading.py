"""Reads the bytes of a CSV as whatever program wrote them: its encoding, its delimiter, its header."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from switchboard.dashboard.spreadsheet.cells import folded, looks_like_number
from switchboard.dashboard.spreadsheet.sheet import Sheet, SheetError

DELIMITERS = (",", ";", "\t", "|")
MOST_COLUMNS = 256
_SAMPLE = 50  # rows that settle the delimiter
_LONGEST_LINE = 131_072  # characters; a cell may not be longer either, says the csv module
_END = "\x01"  # no text that is accepted holds it


def read(raw: bytes, *, most_rows: int = 10_000, most_bytes: int = 20_000_000) -> Sheet:
    """The rows of a CSV file; blank ones are skipped, and so are columns at the end that are empty everywhere."""
    if len(raw) > most_bytes:
        raise SheetError("too_large", most=most_bytes)
    text, encoding = _decode(raw)
    if not text.strip():
        raise SheetError("empty")
    text, delimiter = _delimiter(text)
    records = list(islice(_filled(text, delimiter), most_rows + 2))
    if not records:
        raise SheetError("no_columns")
    has_header = not any(map(looks_like_number, records[0].cells))
    rows = records[1:] if has_header else records
    if not rows:
        raise SheetError("empty")
    if len(rows) > most_rows:
        raise SheetError("too_many_rows", most=most_rows)
    return _sheet(records[0] if has_header else None, rows, encoding, delimiter)


# Encoding

_BINARY = {b"PK\x03\x04": "xlsx", b"\xd0\xcf\x11\xe0": "xls", b"%PDF": "pdf"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_HEBREW_WORD = re.compile(r"(?<![A-Za-z])[א-ת]{2}")


def _decode(raw: bytes) -> tuple[str, str]:
    kind = next((kind for magic, kind in _BINARY.items() if raw.startswith(magic)), None)
    if kind:
        raise SheetError("not_text", kind=kind)
    text, encoding = _decoded(raw)
    if _CONTROL.search(text):
        raise SheetError("not_text", kind="binary")
    return text, encoding


def _decoded(raw: bytes) -> tuple[str, str]:
    try:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # what Excel calls "Unicode text"
            return raw.decode("utf-16"), "utf-16"
        return raw.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return _decoded_by_windows(raw)


def _decoded_by_windows(raw: bytes) -> tuple[str, str]:
    """Hebrew if it then has Hebrew words: an accent within a Latin word would be a Hebrew letter there."""
    for encoding in ("cp1255", "cp1252"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding != "cp1255" or _HEBREW_WORD.search(text):
            return text, encoding
    return raw.decode("latin-1"), "latin-1"


# Delimiter

_EXCEL_HINT = re.compile(r"sep=([,;\t|])\r?\n", re.IGNORECASE)


def _delimiter(text: str) -> tuple[str, str]:
    """The text without Excel's hint, and the delimiter that cuts its rows most evenly."""
    hint = _EXCEL_HINT.match(text)
    if hint:
        return text[hint.end() :], hint[1]
    return text, max(DELIMITERS, key=lambda delimiter: _evenness(text, delimiter))


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    """The share of rows with the usual number of cells, if that is more than one; then, the fewest quotes cut open."""
    lines = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    try:
        sample = list(islice(filter(None, lines), _SAMPLE))
    except csv.Error:  # it does not follow where a quote closes
        return 0, 0
    widths = Counter(map(len, sample))
    usual, times = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    if usual < 2:
        return 0, 0
    return times / len(sample), -sum(cell.count('"') % 2 for row in sample for cell in row)


# Rows


def _lines(text: str) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        if len(line) > _LONGEST_LINE:  # nobody typed that, and it would be cut into millions of cells
            raise SheetError("not_text", kind="unknown")
        yield line


class _Record(NamedTuple):
    line: int
    cells: list[str]  # up to the last one that is filled
    width: int  # with the empty ones behind it


def _filled(text: str, delimiter: str) -> Iterator[_Record]:
    for line, cells in enumerate(_records(text, delimiter), 1):
        width = min(len(cells), MOST_COLUMNS)
        while cells and not cells[-1].strip():
            cells.pop()
        if len(cells) > MOST_COLUMNS:
            raise SheetError("too_many_columns", most=MOST_COLUMNS)
        if cells:
            yield _Record(line, cells, width)


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    """Every row, blank ones too, until the mark behind the last: a quote that never closes swallows that as well."""
    lines = csv.reader(chain(_lines(text), [_END]), delimiter=delimiter)
    for line in count(1):
        try:
            cells = next(lines)
        except csv.Error:  # a cell of very many lines
            raise SheetError("open_quote", line=line) from None
        if cells == [_END]:
            return
        if cells and _END in cells[-1]:
            raise SheetError("open_quote", line=line)
        yield cells


def _sheet(header: _Record | None, rows: Sequence[_Record], encoding: str, delimiter: str) -> Sheet:
    width = header.width if header else _usual_width(rows)
    overlong = frozenset(row.line for row in rows if len(row.cells) > width)
    filled = max(len(row.cells) for row in rows)
    width = min(width, max(filled, len(header.cells) if header else 0))
    return Sheet(
        columns=_names(header.cells if header else [], width),
        rows=tuple((*row.cells[:width], *[""] * (width - len(row.cells))) for row in rows),
        lines=tuple(row.line for row in rows),
        has_header=header is not None,
        encoding=encoding,
        delimiter=delimiter,
        overlong=overlong,
    )


def _usual_width(rows: Sequence[_Record]) -> int:
    widths = Counter(row.width for row in rows)
    return max(widths, key=lambda width: (widths[width], width))


def _names(cells: Sequence[str], width: int) -> tuple[str, ...]:
    """One name per column, each only once: a placeholder has to mean one of them."""
    names: dict[str, str] = {}
    for number in range(1, width + 1):
        given = " ".join(cells[number - 1].split()) if number <= len(cells) else ""
        name, copy = given or str(number), 1
        while folded(name) in names:
            copy += 1
            name = f"{given or number} ({copy})"
        names[folded(name)] = name
    return tuple(names.values())
