"""The settings as they are shown: every one of them in one theme, with a meaning in every language."""

from collections import Counter
from pathlib import Path

import pytest

from switchboard.dashboard.catalogue import NAMES, Catalogue
from switchboard.dashboard.pages.configuration import THEMES, by_theme, meaning_of
from switchboard.secrets import Secrets
from switchboard.settings import Settings

CATALOGUE = Catalogue()
PROXY = {"PROXY_URL_1": "socks5h://u:p@198.51.100.7:1080"}


def effective(**given: object) -> tuple[dict[str, str], dict[str, str]]:
    settings = Settings(_env_file=None, **given)  # type: ignore[arg-type]
    return settings.effective(), settings.defaults()


def test_every_setting_is_in_exactly_one_theme() -> None:
    """A new setting belongs somewhere: name it in THEMES, and say what it means in locales/*/variables.toml."""
    assert Counter(name for names in THEMES.values() for name in names) == Counter(Settings.model_fields.keys())


@pytest.mark.parametrize("language", NAMES)
def test_every_setting_has_a_meaning(language: str) -> None:
    shown, _ = effective(proxy_urls=PROXY)
    assert [name for name in shown if not CATALOGUE[language].has(meaning_of(name))] == []


@pytest.mark.parametrize("language", NAMES)
def test_every_theme_has_a_name_and_no_meaning_is_left_over(language: str) -> None:
    texts = CATALOGUE[language]
    assert all(texts.has(f"settings.theme_{theme}") for theme in (*THEMES, "other"))
    shown, _ = effective(proxy_urls=PROXY)
    said = {key for key in texts.texts if key.startswith("variables.")}
    assert said == {meaning_of(name) for name in shown}


def test_what_was_changed_comes_with_what_it_would_be() -> None:
    shown, defaults = effective(max_text=100, data_dir=Path("/srv/switchboard"), pace={"cold": {"daily": 7}})
    found = {one.name: one.default for _, variables in by_theme(shown, defaults) for one in variables}
    changed = {name: default for name, default in found.items() if default is not None}
    assert changed == {"MAX_TEXT": "4095", "DATA_DIR": "data", "PACE__COLD__DAILY": "20"}


def test_a_folder_in_another_one_is_told_as_such() -> None:
    shown, defaults = effective(data_dir=Path("/srv/switchboard"), backups_dir=Path("/mnt/backups"))
    found = {one.name: one.default for _, variables in by_theme(shown, defaults) for one in variables}
    assert (found["BACKUPS_DIR"], found["SESSIONS_DIR"]) == ("$DATA_DIR/backups", None)


def test_secrets_that_nobody_set_were_made() -> None:
    found = {one.name: one for _, variables in by_theme(*effective()) for one in variables}
    assert {name for name, one in found.items() if one.unset == "settings.made"} == {
        name.upper() for name in Secrets.__slots__ if name != "generated"
    }


def test_a_preset_is_one_change_and_not_fifteen() -> None:
    shown, defaults = effective(pacing_preset="conservative")
    found = {one.name: one.default for _, variables in by_theme(shown, defaults) for one in variables}
    assert {name: default for name, default in found.items() if default is not None} == {"PACING_PRESET": "standard"}


def test_what_no_theme_knows_is_shown_all_the_same() -> None:
    assert [theme for theme, _ in by_theme({"NEW_ONE": "1"}, {"NEW_ONE": "1"})] == ["other"]
