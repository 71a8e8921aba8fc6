"""The texts of the pages, by language. A text is found by its file and its name: `sessions.title`.

Catalogues are TOML, one file for each page: `locales/<language>/<page>.toml`. A text that depends on a number is a
table with the plural forms of its language (`one`, `two`, `many`, `other`), chosen by the value called `n`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from babel import Locale

_FOLDER = Path(__file__).parent / "locales"
DEFAULT = "en"
NAMES: Mapping[str, str] = {"en": "English", "he": "עברית"}
"""The languages there are, each called by its own name."""

Text = str | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Texts:
    """All texts of one language."""

    language: str
    texts: Mapping[str, Text]

    @property
    def direction(self) -> str:
        return "rtl" if Locale.parse(self.language).text_direction == "rtl" else "ltr"

    def __call__(self, key: str, **values: object) -> str:
        text = self.texts[key]
        if not isinstance(text, str):
            n = values.get("n", 0)
            form = Locale.parse(self.language).plural_form(n if isinstance(n, int | float) else 0)
            text = text.get(form) or text["other"]
        return text.format_map(values) if values else text

    def lenient(self, key: str, values: Mapping[str, object]) -> str:
        """For values from elsewhere, which may lack what the text names."""
        text = self.texts[key]
        return text.format_map(_Lenient(values)) if isinstance(text, str) else self(key, **values)

    def has(self, key: str) -> bool:
        return key in self.texts


class _Lenient(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "…"


class Catalogue:
    def __init__(self, folder: Path = _FOLDER) -> None:
        self._languages = {language: Texts(language, _read(folder / language)) for language in NAMES}

    def __getitem__(self, language: str) -> Texts:
        return self._languages[language]

    def choose(self, wanted: str | None, accepted: str | None) -> Texts:
        """By the switch, else by what the browser asks for, else English."""
        if wanted in self._languages:
            return self._languages[wanted]
        for language in _by_preference(accepted or ""):
            if language in self._languages:
                return self._languages[language]
        return self._languages[DEFAULT]


def _read(folder: Path) -> dict[str, Text]:
    texts: dict[str, Text] = {}
    for path in sorted(folder.glob("*.toml")):
        texts |= {f"{path.stem}.{name}": text for name, text in tomllib.loads(path.read_text("utf-8")).items()}
    return texts


def _by_preference(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first; `iw` is what old browsers call Hebrew."""
    ranked: list[tuple[float, int, str]] = []
    for place, part in enumerate(header.split(",")[:20]):
        tag, _, weight = part.strip().partition(";q=")
        try:
            rank = float(weight or 1)
        except ValueError:
            continue
        language = tag.partition("-")[0].lower()
        ranked.append((-rank, place, {"iw": "he"}.get(language, language)))
    return [language for _, _, language in sorted(ranked)]
