"""One message per row: its number made whole, its text filled in; and the rows that can't be sent, with the reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from switchboard.dashboard.spreadsheet.cells import folded, plain_number
from switchboard.dashboard.spreadsheet.guessing import Mapping
from switchboard.dashboard.spreadsheet.sheet import Sheet, SheetError
from switchboard.domain.phones import PhoneError, normalise

MOST_REFERENCE = 200
_SHOWN = 60
_MOST_OF_MAX = 4  # a template may be longer than what it makes: names of columns are


@dataclass(frozen=True, slots=True)
class ReadyRow:
    """`index` is the row's number as a spreadsheet program shows it."""

    index: int
    to: str
    text: str
    reference: str | None


@dataclass(frozen=True, slots=True)
class BadRow:
    """Why a row can't be sent; `shown` is what helps a person to find the fault.

    field      code                shown
    row        extra_cells         the row's beginning: a delimiter in its text lacks its quotes
    to         not_a_number        what is there instead
    text       empty_value         the column that the template needs
    text       empty_text
    text       text_too_long       how many characters it has
    reference  reference_too_long  how many characters it has
    to         opted_out           (found by whoever asks the store) they asked not to be written to
    any        refused             (by the gateway) its own sentence
    row        duplicate           the number of the row that says the same to the same
    """

    index: int
    field: str
    code: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Composed:
    good: tuple[ReadyRow, ...]
    bad: tuple[BadRow, ...]


Row = tuple[str, ...]


class _Bad(Exception):
    """Carries what a BadRow says to where its line is known."""

    def __init__(self, field: str, code: str, shown: str = "") -> None:
        super().__init__(code)
        self.row = (field, code, shown)


def compose(
    sheet: Sheet, mapping: Mapping, template: str | None, default_country: str | None, max_text: int
) -> Composed:
    """Every row is either good or bad. With a template its text is that, else the cell of the mapped column."""
    if template is not None and len(template) > _MOST_OF_MAX * max_text:
        raise SheetError("template_too_long", most=max_text)
    to_column = _column(sheet, mapping.to, "to")
    reference = _reader(sheet, mapping.reference, "reference") if mapping.reference is not None else None
    text = _reader(sheet, mapping.text, "text") if template is None else _filler(sheet, template)
    good: dict[tuple[str, str], ReadyRow] = {}
    bad: list[BadRow] = []
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
        try:
            _check_width(sheet, line, row)
            to = _number(row[to_column], default_country)
            said = _checked_text(text(row), max_text)
            ready = ReadyRow(line, to, said, _checked_reference(reference(row)) if reference else None)
            first = good.setdefault((to, said), ready)
            if first is not ready:
                raise _Bad("row", "duplicate", str(first.index))
        except _Bad as reason:
            bad.append(BadRow(line, *reason.row))
    return Composed(tuple(good.values()), tuple(bad))


def _column(sheet: Sheet, column: int | None, field: str) -> int:
    if column is None or not 0 <= column < len(sheet.columns):
        raise SheetError("not_mapped", field=field)
    return column


def _reader(sheet: Sheet, column: int | None, field: str) -> Callable[[Row], str]:
    found = _column(sheet, column, field)
    return lambda row: row[found]


def _check_width(sheet: Sheet, line: int, row: Row) -> None:
    if line in sheet.overlong:
        raise _Bad("row", "extra_cells", _short(f"{sheet.delimiter} ".join(row)))


def _number(cell: str, default_country: str | None) -> str:
    try:
        return normalise(plain_number(cell), default_country)
    except PhoneError:
        raise _Bad("to", "not_a_number", _short(cell)) from None


def _checked_text(text: str, most: int) -> str:
    said = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not said:
        raise _Bad("text", "empty_text")
    if len(said) > most:
        raise _Bad("text", "text_too_long", str(len(said)))
    return said


def _checked_reference(cell: str) -> str | None:
    reference = cell.strip()
    if len(reference) > MOST_REFERENCE:
        raise _Bad("reference", "reference_too_long", str(len(reference)))
    return reference or None


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _SHOWN].split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


# Templates: `Hi {name}`; `{{` and `}}` stand for the braces themselves.

_MARK = re.compile(r"(\{\{|\}\}|\{[^{}]*\}|\{)")


def _filler(sheet: Sheet, template: str) -> Callable[[Row], str]:
    columns = {folded(name): column for column, name in enumerate(sheet.columns)}
    parts = [_part(piece, columns) for piece in _pieces(template)]

    def fill(row: Row) -> str:
        return "".join(part if isinstance(part, str) else _value(sheet, row, part) for part in parts)

    return fill


def _pieces(template: str) -> list[str]:
    pieces = _MARK.split(template)
    opened = pieces.index("{") if "{" in pieces else None
    if opened is not None:
        raise SheetError("unknown_placeholder", name=_short("".join(pieces[opened:])))
    return pieces


def _part(piece: str, columns: dict[str, int]) -> str | int:
    """A text, or the column whose value belongs there."""
    if piece in {"{{", "}}"}:
        return piece[0]
    if not piece.startswith("{"):
        return piece
    name = piece[1:-1]
    if folded(name) not in columns:
        raise SheetError("unknown_placeholder", name=_short(name))
    return columns[folded(name)]


def _value(sheet: Sheet, row: Row, column: int) -> str:
    value = row[column].strip()
    if not value:
        raise _Bad("text", "empty_value", sheet.columns[column])
    return value
