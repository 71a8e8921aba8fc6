"""A batch before it is sent: the uploaded file, how its columns are read, and the messages that come of it.

Nothing is kept between two looks at it: the page posts the file and all choices again each time.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from switchboard.dashboard.services import Services
from switchboard.dashboard.spreadsheet import BadRow, Mapping, ReadyRow, Sheet, SheetError, compose, guess, read

BY_TEMPLATE = "template"
_MOST_MINUTES = 7 * 24 * 60


class BatchForm(BaseModel):
    """As it was typed. Columns are counted from 0; `skip` is the number of bad rows a person agreed to leave out."""

    model_config = ConfigDict(frozen=True)

    session: str = ""
    to_column: str = ""
    text_column: str = BY_TEMPLATE
    reference_column: str = ""
    template: str = ""
    spread: str = "0"
    deferrable: bool = False
    skip: str = ""
    token: str = ""
    fresh: bool = False
    """Another file was chosen: its columns are guessed."""

    @property
    def spread_minutes(self) -> float | None:
        """None if it is no number of minutes within a week."""
        try:
            minutes = float(self.spread.strip() or 0)
        except ValueError:
            return None
        return minutes if 0 <= minutes <= _MOST_MINUTES else None

    @property
    def mapping(self) -> Mapping:
        return Mapping(_column(self.to_column), _column(self.text_column), _column(self.reference_column))


@dataclass(frozen=True, slots=True)
class Draft:
    """`rows` would be sent, `bad` ones can't be; `fault` says why there is neither."""

    sheet: Sheet | None = None
    mapping: Mapping = Mapping()  # noqa: RUF009 - frozen
    by_template: bool = True
    rows: Sequence[ReadyRow] = ()
    bad: Sequence[BadRow] = ()
    fault: SheetError | None = None
    lacks_text: bool = False
    """Nobody has written yet what to send."""

    @property
    def repeated(self) -> int:
        """How many recipients would get more than one message."""
        return sum(times > 1 for times in Counter(row.to for row in self.rows).values())

    def without(self, refused: Sequence[BadRow]) -> "Draft":
        """These can't be sent either."""
        lines = {row.index for row in refused}
        rows = [row for row in self.rows if row.index not in lines]
        return replace(self, rows=rows, bad=sorted([*self.bad, *refused], key=lambda row: row.index))


async def draft(raw: bytes, form: BatchForm, services: Services) -> Draft:
    """With those marked who must not be written to."""
    made = await asyncio.to_thread(_draft, raw, form, services)
    unwanted = await services.store.suppressions.among(sorted({row.to for row in made.rows}))
    return made.without([opted_out(row) for row in made.rows if row.to in unwanted])


def opted_out(row: ReadyRow) -> BadRow:
    return BadRow(row.index, "to", "opted_out", row.to)


def _draft(raw: bytes, form: BatchForm, services: Services) -> Draft:
    country = services.default_country
    try:
        sheet = read(raw, most_rows=services.max_rows)
    except SheetError as fault:
        return Draft(fault=fault)
    mapping = guess(sheet, country) if form.fresh else form.mapping
    by_template = mapping.text is None if form.fresh else form.text_column == BY_TEMPLATE
    made = Draft(sheet, mapping, by_template)
    if by_template and not form.template.strip():
        return replace(made, lacks_text=True)
    try:
        composed = compose(sheet, mapping, form.template if by_template else None, country, services.max_text)
    except SheetError as fault:
        return replace(made, fault=fault)
    return replace(made, rows=composed.good, bad=composed.bad)


def _column(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 3 else None
