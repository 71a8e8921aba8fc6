"""A spreadsheet that was read, and what can be wrong with one."""

from dataclasses import dataclass
from typing import Any


class SheetError(ValueError):
    """Why a file or a template can't be used. The code is stable, so that it can be translated.

    empty                 no row with anything to send
    no_columns            lines, but nothing in any cell
    too_large             more than `most` bytes
    too_many_rows         more than `most` rows
    too_many_columns      more than `most` columns
    not_text              a `kind` of file (xlsx, xls, pdf, binary, unknown) that has to be exported as CSV
    open_quote            the quote that opens in the row at `line` never closes
    not_mapped            nobody said which column is the `field`
    template_too_long     it is far longer than a message of `most` characters
    unknown_placeholder   the template asks for `name`, and no column has that name
    """

    def __init__(self, code: str, **details: Any) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


@dataclass(frozen=True, slots=True)
class Sheet:
    """Every row has a cell for every column. `lines`: each row's number as a spreadsheet program shows it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    has_header: bool
    encoding: str
    delimiter: str
    overlong: frozenset[int] = frozenset()
    """Lines with more cells than there are columns: most likely a delimiter within a text that lacks its quotes."""
