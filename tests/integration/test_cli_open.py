"""`switchboard open`, and what a start announces: a link for the person at the terminal, and for nobody else."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from switchboard.cli import build
from switchboard.runtime import _announce
from switchboard.secrets import Secrets
from switchboard.settings import Settings
from tests.support.board import Board, opened_board
from tests.support.dashboard import SECRET, dashboard_app
from tests.support.serving import free_port, serving

ALL = frozenset({"gateway", "dispatcher", "orchestrator"})


def run() -> Result:
    return CliRunner().invoke(build(), ["open"])


@pytest.fixture(autouse=True)
def _installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))


def keep_secrets(folder: Path, secret: str) -> None:
    (folder / "data").mkdir()
    kept = {"api_key": "sk_x", "webhook_secret": "whsec_x", "dashboard_secret": secret}
    (folder / "data" / "secrets.json").write_text(json.dumps(kept))


async def served_to(board: Board, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, list[int]]:
    """What the command says, and how the server answers to what it printed, twice."""
    async with serving(dashboard_app(board)) as served:
        port = served.url.rpartition(":")[2]
        monkeypatch.setenv("ORCH_PORT", port)
        said = await asyncio.to_thread(run)
        link = said.stdout.strip()
        answers: list[int] = []
        async with httpx.AsyncClient(trust_env=False) as http:
            for _ in range(2 if link else 0):
                http.cookies.clear()
                headers = {"Origin": f"http://localhost:{port}"}
                answers.append((await http.post(link, headers=headers)).status_code)
        return said, answers


@pytest.mark.anyio
async def test_it_prints_a_link_that_opens_this_installation_once(
    valkey_url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_secrets(tmp_path, SECRET)
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        said, answers = await served_to(board, monkeypatch)
    assert said.exit_code == 0, said.stderr
    assert said.stdout.startswith("http://localhost:")
    assert answers == [303, 410], "the command has not used it up"


@pytest.mark.anyio
async def test_a_link_that_would_open_nothing_is_not_printed(
    valkey_url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_secrets(tmp_path, "of another installation")
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        said, _ = await served_to(board, monkeypatch)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "does not know this installation's secret" in said.stderr


def test_nothing_that_answers_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_secrets(tmp_path, SECRET)
    monkeypatch.setenv("ORCH_PORT", str(free_port()))
    assert "is it running? switchboard up" in run().stderr


def test_no_secrets_are_made_where_none_are(tmp_path: Path) -> None:
    said = run()
    assert said.exit_code == 2
    assert "Start Switchboard first" in said.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("to_person", [True, False])
def test_a_start_shows_a_link_to_a_person_and_none_to_a_log(
    to_person: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, api_key=SecretStr("sk_x"))
    secrets = Secrets("sk_x", "whsec_x", SECRET, frozenset())
    _announce(settings, secrets, ALL, [], to_person=to_person)
    said = capsys.readouterr().out
    assert ("Dashboard: http://localhost:3000/open/" in said) is to_person
    assert ("switchboard open" in said) is not to_person
    assert "sk_x" not in said
    assert SECRET not in said


def test_a_start_without_the_dashboard_names_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, api_key=SecretStr("sk_x"))
    for parts in (frozenset({"gateway"}), frozenset({"dispatcher"})):
        _announce(settings, Secrets("sk_x", "whsec_x", SECRET, frozenset()), parts, [], to_person=True)
    assert "Dashboard" not in capsys.readouterr().out
