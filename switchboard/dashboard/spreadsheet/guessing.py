"""Which column is the recipient, which the text, which the reference? A first guess that a person can correct."""

import re
from dataclasses import dataclass

from switchboard.dashboard.spreadsheet.cells import folded, looks_like_number, plain_number
from switchboard.dashboard.spreadsheet.sheet import Sheet
from switchboard.domain.phones import PhoneError, normalise

_SAMPLE = 50  # rows; a parse costs some 30 µs and there may be many columns
_LONG_TEXT = 15  # characters; names and order numbers are shorter


@dataclass(frozen=True, slots=True)
class Mapping:
    """The columns, counted from 0, that the parts of a message are in."""

    to: int | None = None
    text: int | None = None
    reference: int | None = None


def guess(sheet: Sheet, default_country: str | None) -> Mapping:
    to = _best([_to_score(sheet, column, default_country) for column in range(len(sheet.columns))], at_least=1)
    texts = [0 if column == to else _text_score(sheet, column) for column in range(len(sheet.columns))]
    text = _best(texts, at_least=0.5)
    names = [0 if column in {to, text} else _named(name, _REFERENCE) for column, name in enumerate(_names(sheet))]
    return Mapping(to, text, _best(names, at_least=1))


def _best(scores: list[float], at_least: float) -> int | None:
    best = max(range(len(scores)), key=lambda column: scores[column], default=None)
    return None if best is None or scores[best] < at_least else best


# By name: the surest words first. Those after the first group also mean other things within a longer name.

_TO = (
    "mobile cell cellphone whatsapp נייד סלולרי סלולארי וואטסאפ",
    "phone telephone tel msisdn recipient טלפון טל נמען",
    "to number no מספר אל",
)
_TEXT = ("text message body msg sms הודעה טקסט תוכן נוסח", "", "content")
_REFERENCE = ("reference ref אסמכתא סימוכין מזהה", "", "id order invoice הזמנה חשבונית")
_NEUTRAL = ("number", "no", "nr", "num", "code", "מספר", "מס", "קוד")
_WORDS = re.compile(r"[^\W_]+")


def _names(sheet: Sheet) -> tuple[str, ...]:
    return sheet.columns if sheet.has_header else ("",) * len(sheet.columns)


def _named(name: str, words: tuple[str, str, str]) -> float:
    """1.6 or 1.5: it is called that. 1.2: words that may mean it are the whole name; 0.5: a part of it."""
    surely, likely, maybe = (group.split() for group in words)
    # `phoneNumber` is two words as well.
    said = _WORDS.findall(folded(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))
    if any(_is_one_of(word, surely) for word in said):
        return 1.6
    if any(_is_one_of(word, likely) for word in said):
        return 1.5
    if any(_is_one_of(word, maybe) for word in said):
        return 1.2 if all(_is_one_of(word, [*maybe, *_NEUTRAL]) for word in said) else 0.5
    return 0


def _is_one_of(word: str, words: list[str]) -> bool:
    return word in words or word.removeprefix("ה") in words  # with its article: הטלפון


# By content


def _filled(sheet: Sheet, column: int) -> list[str]:
    cells = (row[column].strip() for row in sheet.rows[:_SAMPLE])
    return [cell for cell in cells if cell]


def _to_score(sheet: Sheet, column: int, default_country: str | None) -> float:
    """A column full of numbers outweighs a name; of two such, the one with longer numbers (the other counts orders)."""
    cells = _filled(sheet, column)
    numbers = [len(cell) for cell in cells if _is_number(cell, default_country)]
    score = _named(_names(sheet)[column], _TO)
    if numbers:
        score += 2 * len(numbers) / len(cells) + min(0.1, sum(numbers) / len(numbers) / 1000)
    return score


def _is_number(cell: str, default_country: str | None) -> bool:
    if not looks_like_number(cell):
        return False
    try:
        return bool(normalise(plain_number(cell), default_country))
    except PhoneError:
        return False


def _text_score(sheet: Sheet, column: int) -> float:
    """Its name, or else several words and a good length."""
    cells = _filled(sheet, column)
    mean = sum(map(len, cells)) / len(cells) if cells else 0
    wordy = sum(" " in cell or "\n" in cell for cell in cells) * 2 > len(cells)
    by_content = 0.5 + min(0.4, mean / 1000) if wordy and mean >= _LONG_TEXT else 0
    return _named(_names(sheet)[column], _TEXT) + by_content
