"""Secrets: made once, kept for this user only, never overwritten."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from pydantic import SecretStr

from switchboard.secrets import EVERYWHERE, ensure_secrets
from switchboard.settings import Settings, SettingsError


def settings_in(folder: Path, **given: str) -> Settings:
    secrets: dict[str, Any] = {name: SecretStr(value) for name, value in given.items()}
    return Settings(_env_file=None, data_dir=folder, **secrets)


def test_missing_secrets_are_made_at_the_first_start_and_read_back_later(tmp_path: Path) -> None:
    first = ensure_secrets(settings_in(tmp_path / "data"))
    again = ensure_secrets(settings_in(tmp_path / "data"))
    assert first.generated == {"api_key", "webhook_secret", "dashboard_secret"}
    assert again.generated == frozenset()
    assert replace(again, generated=first.generated) == first


def test_made_secrets_are_long_and_differ_between_installations(tmp_path: Path) -> None:
    one, other = (ensure_secrets(settings_in(tmp_path / name)) for name in ("one", "other"))
    assert one.api_key != other.api_key
    assert one.webhook_secret != other.webhook_secret
    assert one.api_key.startswith("sk_")
    assert len(one.api_key) >= 3 + 43
    kind, _, key = one.webhook_secret.partition("_")
    assert kind == "whsec"
    assert len(base64.b64decode(key, validate=True)) == 32


def test_only_this_user_can_read_them(tmp_path: Path) -> None:
    ensure_secrets(settings_in(tmp_path / "data"))
    assert S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert S_IMODE((tmp_path / "data" / "secrets.json").stat().st_mode) == 0o600


def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    ensure_secrets(settings_in(tmp_path))
    (tmp_path / "secrets.json").chmod(0o644)
    ensure_secrets(settings_in(tmp_path))
    assert S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_given_secrets_win_and_are_not_written(tmp_path: Path) -> None:
    mine = {"api_key": "mine", "webhook_secret": "whsec_bWluZQ==", "dashboard_secret": "mine, and long enough"}
    given = ensure_secrets(settings_in(tmp_path, **mine))
    assert {name: getattr(given, name) for name in mine} == mine
    assert given.generated == frozenset()
    assert not (tmp_path / "secrets.json").exists()


def test_only_the_missing_one_is_made(tmp_path: Path) -> None:
    known = ensure_secrets(settings_in(tmp_path, api_key="mine", dashboard_secret="mine, and long enough"))
    assert known.api_key == "mine"
    assert known.generated == {"webhook_secret"}
    assert json.loads((tmp_path / "secrets.json").read_text()) == {"webhook_secret": known.webhook_secret}


def test_an_installation_from_before_gets_the_one_that_is_new(tmp_path: Path) -> None:
    before = {"api_key": "sk_kept", "webhook_secret": "whsec_a2VwdA=="}
    (tmp_path / "secrets.json").write_text(json.dumps(before))
    known = ensure_secrets(settings_in(tmp_path))
    assert known.generated == {"dashboard_secret"}
    assert len(known.dashboard_secret) >= 43
    assert json.loads((tmp_path / "secrets.json").read_text()) == before | {"dashboard_secret": known.dashboard_secret}


def test_a_secret_no_longer_given_is_made_beside_the_kept_one(tmp_path: Path) -> None:
    before = ensure_secrets(settings_in(tmp_path, api_key="mine"))
    after = ensure_secrets(settings_in(tmp_path))
    assert after.generated == {"api_key"}
    assert after.webhook_secret == before.webhook_secret


@pytest.mark.parametrize("content", ["", "{", "[]", '{"api_key": 5}', '{"api_key": ""}', "\udcff"])
def test_a_broken_file_is_refused_and_left_as_it_is(content: str, tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(content, errors="surrogateescape")
    before = path.read_bytes()
    with pytest.raises(SettingsError, match=r"secrets\.json"):
        ensure_secrets(settings_in(tmp_path))
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").mkdir()
    with pytest.raises(SettingsError, match=r"^DATA_DIR: .*secrets\.json"):
        ensure_secrets(settings_in(tmp_path))


def test_parts_that_start_at_the_same_moment_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        all_known = list(pool.map(lambda _: ensure_secrets(settings_in(tmp_path / "data")), range(8)))
    assert len({known.api_key for known in all_known}) == 1
    assert sum("api_key" in known.generated for known in all_known) == 1


def test_printing_them_shows_nothing(tmp_path: Path) -> None:
    known = ensure_secrets(settings_in(tmp_path))
    assert known.api_key not in repr(known)
    assert known.webhook_secret not in repr(known)
    assert known.dashboard_secret not in repr(known)


def test_a_part_without_the_dashboard_needs_no_secret_of_it(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "nowhere", api_key="sk_given", webhook_secret="whsec_given")
    found = ensure_secrets(settings, EVERYWHERE)
    assert (found.api_key, found.dashboard_secret) == ("sk_given", "")
    assert not (tmp_path / "nowhere").exists()
