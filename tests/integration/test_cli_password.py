"""`switchboard password`: typed twice, or read from a pipe; never an argument."""

import asyncio
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner, Result

from switchboard.cli import build, password
from switchboard.dashboard.access.passwords import Passwords
from switchboard.store import open_store
from switchboard.store.store import StoreRules


@pytest.fixture(autouse=True)
def _installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, valkey_url: str, prefix: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", valkey_url)
    monkeypatch.setenv("KEY_PREFIX", prefix)


def run(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(build(), ["password", *words], input=typed)


def is_right(secret: str, url: str, prefix: str) -> bool:
    async def ask() -> bool:
        store = open_store(url, prefix, StoreRules(ZoneInfo("UTC")))
        try:
            return await Passwords(store.sign_ins, lambda: 0).verify(secret) is not None
        finally:
            await store.close()

    return asyncio.run(ask())


def test_a_password_from_a_pipe_is_set_and_cleared(valkey_url: str, prefix: str) -> None:
    assert run("set", typed="a long password \n").exit_code == 0
    assert is_right("a long password ", valkey_url, prefix)
    assert not is_right("a long password", valkey_url, prefix)
    assert run("clear").exit_code == 0
    assert not is_right("a long password ", valkey_url, prefix)


def test_at_a_terminal_it_is_asked_for_twice_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, valkey_url: str, prefix: str
) -> None:
    monkeypatch.setattr(password, "_at_terminal", lambda: True)
    done = run("set", typed="a long password\na wrong one\na long password\na long password\n")
    assert done.exit_code == 0
    assert "a long password" not in done.output
    assert is_right("a long password", valkey_url, prefix)


def test_a_short_one_is_refused_and_changes_nothing(valkey_url: str, prefix: str) -> None:
    run("set", typed="a long password\n")
    refused = run("set", typed="too short\n")
    assert refused.exit_code == 2
    assert "at least 10 characters" in refused.output
    assert "too short" not in refused.output
    assert is_right("a long password", valkey_url, prefix)


def test_it_is_not_taken_as_an_argument() -> None:
    assert run("set", "a long password").exit_code == 2
