"""The texts: every language has every one of them, and every page finds those that it asks for."""

import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from babel import Locale

import switchboard.dashboard
from switchboard.dashboard.catalogue import NAMES, Catalogue, Text

FOLDER = Path(switchboard.dashboard.__file__).parent
CATALOGUE = Catalogue()
ENGLISH, OTHERS = CATALOGUE["en"], [name for name in NAMES if name != "en"]
ASKED = re.compile(r"""\bt(?:exts\(request\))?\(\s*['"]([a-z_]+\.[A-Za-z_]+)['"]\s*[,)]""")
DONE = re.compile(r"""pages\.done\(\s*request,\s*["']([a-z_]+\.[A-Za-z_]+)["']""")


def forms(text: Text) -> Iterator[str]:
    yield from (text.values() if isinstance(text, Mapping) else [text])


def placeholders(text: Text) -> set[str]:
    return {name for form in forms(text) for _, name, _, _ in string.Formatter().parse(form) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_texts(language: str) -> None:
    assert CATALOGUE[language].texts.keys() == ENGLISH.texts.keys()


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_names_the_same_things(language: str) -> None:
    different = {
        key: (placeholders(text), placeholders(CATALOGUE[language].texts[key]))
        for key, text in ENGLISH.texts.items()
        # A count may be said in words: "one message", "two messages".
        if placeholders(text) - {"n"} != placeholders(CATALOGUE[language].texts[key]) - {"n"}
    }
    assert not different


@pytest.mark.parametrize("language", OTHERS)
def test_what_can_be_counted_in_one_language_can_be_in_all(language: str) -> None:
    counted = {key for key, text in ENGLISH.texts.items() if not isinstance(text, str)}
    assert counted == {key for key, text in CATALOGUE[language].texts.items() if not isinstance(text, str)}


@pytest.mark.parametrize("language", NAMES)
def test_plurals_have_a_form_for_every_number(language: str) -> None:
    known = Locale.parse(language).plural_form.tags | {"other"}
    for key, text in CATALOGUE[language].texts.items():
        if isinstance(text, Mapping):
            assert "other" in text, key
            assert set(text) <= known, key
            for n in (0, 1, 2, 3, 11, 20, 100):
                assert CATALOGUE[language](key, **dict.fromkeys(placeholders(text), "x") | {"n": n})


def test_no_text_is_empty_or_untranslated() -> None:
    hebrew = re.compile(r"[א-ת]")
    plain = {key for key, text in CATALOGUE["he"].texts.items() if not any(hebrew.search(form) for form in forms(text))}
    # What has no words of its own: figures with a unit, names of things.
    assert {
        key for key in plain if re.search(r"[a-z]{4}", re.sub(r"\{\w+\}", "", " ".join(forms(ENGLISH.texts[key]))))
    } == set()
    assert all(form.strip() for text in ENGLISH.texts.values() for form in forms(text))


def test_every_text_that_is_asked_for_is_there() -> None:
    sources = [*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py")]
    asked = {
        (path.name, key) for path in sources for kind in (ASKED, DONE) for key in kind.findall(path.read_text("utf-8"))
    }
    assert len(asked) > 50
    assert {(name, key) for name, key in asked if not ENGLISH.has(key)} == set()


def test_no_words_stand_in_a_template() -> None:
    """Between the tags there is nothing but what comes from a catalogue, or has no language."""
    allowed = {"Switchboard", "–", "·", "×", "/", "%", ":", ",", "+", "…", "(", ")", "→", "-", "."}
    found = {}
    for path in FOLDER.rglob("*.html"):
        bare = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", " ", path.read_text("utf-8"), flags=re.DOTALL)
        bare = re.sub(r"<(script|code|pre|kbd)\b.*?</\1>|<[^>]*>|&\w+;", " ", bare, flags=re.DOTALL)
        if words := [word for word in bare.split() if word.strip("–·×/%:,+…()→-.") and word not in allowed]:
            found[path.name] = words
    assert found == {}


@pytest.mark.parametrize(
    ("wanted", "accepted", "language"),
    [
        (None, None, "en"),
        (None, "he", "he"),
        (None, "iw-IL", "he"),
        (None, "fr-FR,fr;q=0.9", "en"),
        (None, "en;q=0.4, he;q=0.8", "he"),
        (None, "en-US,en;q=0.9,he;q=0.8", "en"),
        ("he", "en", "he"),
        ("xx", "he", "he"),
        (None, ";;q=,,q", "en"),
        (None, "he;q=x,en", "en"),
    ],
)
def test_the_switch_goes_before_the_browser(wanted: str | None, accepted: str | None, language: str) -> None:
    assert CATALOGUE.choose(wanted, accepted).language == language


def test_hebrew_counts_in_its_own_way() -> None:
    hebrew = CATALOGUE["he"]
    asked = [hebrew("proxies.remove_ask", n=n, proxy="proxy_1") for n in (1, 2, 3)]
    assert len(set(asked)) == 3
    assert hebrew.direction == "rtl"
