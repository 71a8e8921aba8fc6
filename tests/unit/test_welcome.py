"""The next step that a start tells: it must be the one that gets a person to the scan."""

from pathlib import Path

import pytest

from switchboard.settings import Settings
from switchboard.welcome import Scene, for_another_terminal, next_steps, own_command, place_of_the_key


def told(worker_missing: str | None = None, proxies: int = 0, sessions: int = 0, allow_direct: bool = False) -> str:
    return "\n".join(next_steps(Scene(worker_missing, proxies, sessions, allow_direct), "switchboard"))


def test_without_a_proxy_the_first_step_is_to_add_one() -> None:
    words = told()
    assert words.index("switchboard proxies add") < words.index("switchboard sessions new")
    assert "ALLOW_DIRECT=true" in words


def test_with_a_proxy_the_next_step_is_the_scan() -> None:
    assert "proxies add" not in told(proxies=1)
    assert "switchboard sessions new   shows a QR code" in told(proxies=1)


def test_connecting_directly_is_said_out_loud() -> None:
    assert told(allow_direct=True).startswith("There is no proxy: sessions connect directly")
    assert "proxies add" not in told(allow_direct=True)


def test_who_has_sessions_is_told_nothing() -> None:
    assert told(sessions=3) == ""


def test_without_a_worker_nothing_else_is_of_use() -> None:
    words = told("It is not built: `make run` builds it.", proxies=2, sessions=3)
    assert words == (
        "Sessions can be made, but there is no worker to run for them. It is not built: `make run` builds it."
    )


def test_settings_that_only_this_environment_has_are_typed_again() -> None:
    given = {
        "ORCH_PORT": "3100",
        "DATA_DIR": "/srv/my data",
        "ORCH_HOST": "127.0.0.1",
        "API_KEY": "secret",
        "HOME": "/x",
    }
    assert for_another_terminal("switchboard", given) == "DATA_DIR='/srv/my data' ORCH_PORT=3100 switchboard"
    assert for_another_terminal("switchboard", {"ORCH_PORT": "3000", "DATA_DIR": ""}) == "switchboard"


def test_the_command_is_written_as_it_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "home" / ".venv" / "bin" / "switchboard"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command(str(program), tmp_path / "home") == ".venv/bin/switchboard"
    assert own_command(str(program), tmp_path / "elsewhere") == str(program)
    assert own_command("-c", tmp_path) == "switchboard"
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command(str(program), tmp_path) == "switchboard"


def test_where_the_key_is_says_nothing_of_the_folders_around_it(tmp_path: Path) -> None:
    near = Settings(_env_file=None, data_dir=tmp_path / "data")
    assert place_of_the_key(near, tmp_path) == "data/secrets.json"
    assert place_of_the_key(near, tmp_path / "elsewhere") == "$DATA_DIR/secrets.json"
    assert place_of_the_key(Settings(_env_file=None, data_dir=tmp_path, api_key="sk_given"), tmp_path) is None
