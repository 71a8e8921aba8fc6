"""What a single cell says: column names as people repeat them, phone numbers as spreadsheets mangle them."""

import re

_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_FORMULA = re.compile(r'="(.*)"', re.DOTALL)
_FRACTION = re.compile(r"(\d{5,})\.0+")
_NUMBER = re.compile(r"[\s\d()+.\-/\u2010-\u2015]+")
_SCIENTIFIC = re.compile(r"\d(\.\d+)?E\+?\d\d", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}[-/.][01]?\d[-/.][0-3]?\d|[0-3]?\d[-/.][0-3]?\d[-/.]\d{4})( .*)?")


def folded(name: str) -> str:
    """A column's name without what people don't see or care about."""
    return " ".join(_INVISIBLE.sub("", name).casefold().split())


def plain_number(cell: str) -> str:
    """Without what keeps a leading zero (`'050`, `="050"`) and without a fraction, whose zero would be dialled too."""
    bare = _INVISIBLE.sub("", cell).strip()
    formula = _FORMULA.fullmatch(bare)
    bare = (formula[1] if formula else bare).removeprefix("'").strip()
    fraction = _FRACTION.fullmatch(bare)
    return fraction[1] if fraction else bare


def looks_like_number(cell: str) -> bool:
    """It may be a phone number of some country, and is no date."""
    bare = plain_number(cell)
    if _SCIENTIFIC.fullmatch(bare):  # a number that the spreadsheet has spoilt
        return True
    if not _NUMBER.fullmatch(bare) or _DATE.fullmatch(bare):
        return False
    return 7 <= sum(map(str.isdecimal, bare)) <= 17
