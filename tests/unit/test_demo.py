"""The demo without running it: whom it writes to, where it keeps things, when it refuses, and what it shows."""

import io
import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import phonenumbers
import pytest
from rich.console import Console
from typer.testing import CliRunner

from switchboard.cli import build
from switchboard.cli.demo import alive, own_tools, picture
from switchboard.dashboard.services import PhoneRefused
from switchboard.demo.phone import NUMBERS, newcomer
from switchboard.demo.scenario import CUSTOMERS, SHOPS, letters
from switchboard.demo.simulator import Ready, Simulator
from switchboard.demo.stage import SETTINGS, DemoFailed, check_port, own_folder
from switchboard.domain.phones import normalise
from switchboard.domain.trust import TrustLevel
from switchboard.settings import Settings
from tests.support.node_build import require_build, require_node

SESSION: dict[str, Any] = {
    "sessionId": "worker_1",
    "name": "Corner Bakery",
    "status": "connected",
    "paused": False,
    "phone": "12125550102",
    "proxyId": "proxy_1",
    "sentToday": 3,
    "queueSize": 1,
    "limits": {"daily": 300},
    "lastPing": None,
    "reason": None,
}


@pytest.mark.parametrize("number", [*SHOPS, *CUSTOMERS[::97], *NUMBERS[::13]])
def test_everyone_in_the_demo_has_a_number_that_is_kept_for_fiction(number: str) -> None:
    assert number[4:9] == "55501"
    assert len(number) == 11
    assert normalise(number) == number
    assert phonenumbers.is_valid_number(phonenumbers.parse(f"+{number}"))


def test_nobody_is_both_a_shop_and_a_customer() -> None:
    assert not set(SHOPS) & set(CUSTOMERS)
    assert not set(NUMBERS) & {*SHOPS, *CUSTOMERS}


def test_each_phone_that_scans_for_a_visitor_is_a_new_persons() -> None:
    known: set[str] = set(SHOPS)
    for _ in NUMBERS:
        number, name = newcomer(known)
        assert number not in known
        assert name
        known.add(number)
    with pytest.raises(PhoneRefused):
        newcomer(known)


def test_everyone_gets_one_letter_before_anyone_gets_a_second() -> None:
    written = [to for to, _ in islice(letters(random.Random(7)), len(CUSTOMERS) * 2)]
    assert set(written[: len(CUSTOMERS)]) == set(CUSTOMERS) == set(written[len(CUSTOMERS) :])


def test_letters_have_no_gaps_left_in_them() -> None:
    assert not [text for _, text in islice(letters(random.Random(7)), 200) if "{" in text]


def test_the_folder_is_emptied_each_time_unless_it_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "demo"
    with own_folder(folder, keep=False):
        (folder / "sessions").mkdir()
        (folder / "secrets.json").write_text("{}")
        (folder / "elsewhere").symlink_to(tmp_path)
    with own_folder(folder, keep=True):
        assert (folder / "secrets.json").exists()
    with own_folder(folder, keep=False):
        assert [entry.name for entry in folder.iterdir()] == [".demo"]
    assert tmp_path.exists()


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text("precious")
    with pytest.raises(DemoFailed, match="not a demo's"), own_folder(tmp_path, keep=False):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["secrets.json"]


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with own_folder(tmp_path / "demo", keep=False):
        (tmp_path / "demo" / "store").mkdir()
        with pytest.raises(DemoFailed, match="a demo runs in"), own_folder(tmp_path / "demo", keep=False):
            pass
        assert (tmp_path / "demo" / "store").exists()


def test_a_port_that_is_taken_is_told_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DemoFailed, match=rf"port {port} can't be used .* PORT=\d+ make demo"):
            check_port(port)
    check_port(port)


def test_a_simulator_that_is_started_again_asks_for_the_same_ports(tmp_path: Path) -> None:
    said = (
        '{"whatsapp": 1, "control": 2, "ca": "/x/ca.pem", '
        '"proxies": [{"n": 2, "port": 4, "user": "b"}, {"n": 1, "port": 3, "user": "a"}]}'
    )
    ready = Ready.parse(said)
    assert (ready.ca, ready.proxies) == (Path("/x/ca.pem"), (3, 4))
    given = " ".join(Simulator(tmp_path, ["a:x", "b:y"], ["--answer"], ports=ready.ports()).arguments())
    assert given.endswith(
        "--until-stdin-closes --answer --proxy a:x --proxy b:y --port 1 --control-port 2 --proxy-port 3 --proxy-port 4"
    )


def test_what_the_demo_allows_grows_with_the_age_of_a_number_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    levels = Settings(_env_file=None).trust_table().levels
    cold, warm, hot = (levels[level] for level in (TrustLevel.COLD, TrustLevel.WARM, TrustLevel.HOT))
    assert cold.daily < warm.daily < hot.daily
    assert cold.per_minute <= warm.per_minute <= hot.per_minute
    assert {str(limits.hours) for limits in levels.values()} == {"00:00-24:00"}


def test_there_is_life_once_all_are_linked_and_something_arrived() -> None:
    assert not alive([], {})
    assert not alive([SESSION, SESSION | {"status": "starting"}], {"delivered": 4})
    assert not alive([SESSION], {"delivered": 0})
    assert alive([SESSION], {"delivered": 1})


def test_the_picture_says_where_to_look_and_what_is_simulated() -> None:
    screen = io.StringIO()
    link = "http://localhost:3100/open/68000000deadbeef." + "x" * 22
    shown = picture(link, 3100, "sk_x", [SESSION], {"sent": 12, "delivered": 11, "read": 4, "queueSize": 2}, ["look"])
    Console(width=200, file=screen).print(shown)
    words = screen.getvalue()
    assert words.index(f"Open {link}\n") < words.index("Corner Bakery"), "first of all"
    assert "http://localhost:3100/docs" in words
    assert "export KEY=sk_x" in words
    assert "Corner Bakery" in words
    assert "12 sent, 11 delivered, 4 read, 2 waiting" in words
    assert "Simulated: WhatsApp, the proxies" in words
    assert "\n  look\n" in words
    assert max(len(line) for line in words.splitlines()) < 120, "no line is filled up to the console's width"


@pytest.mark.parametrize(
    ("mode", "way_out"), [(0o700, "make it yours"), (0o755, "make it yours"), (None, "make .* a folder that you may")]
)
def test_a_folder_that_is_someone_elses_is_told_with_the_way_out(mode: int | None, way_out: str) -> None:
    with TemporaryDirectory() as data:  # not pytest's, which nobody else could see
        Path(data).chmod(0o755)
        folder = Path(data) / "demo"
        if mode:
            with own_folder(folder, keep=False):
                (folder / "sessions").mkdir()
            folder.chmod(mode)
        refused = pytest.raises(DemoFailed, match=rf"^{folder} can't be used \(Permission denied\): {way_out}")
        with somebody_else(), refused, own_folder(folder, keep=False):
            pass


@contextmanager
def somebody_else() -> Iterator[None]:
    if os.geteuid():
        pytest.skip("only root can be somebody else for a moment")
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("port", "dotenv", "settings"),
    [
        (3000, "", "DATA_DIR=data/demo"),
        (3100, "", "DATA_DIR=data/demo ORCH_PORT=3100"),
        (3000, "ORCH_PORT=4000", "DATA_DIR=data/demo ORCH_PORT=3000"),
        (3000, "API_KEY=real", "DATA_DIR=data/demo API_KEY=$KEY"),
        (3000, "MAX_TEXT=x", "DATA_DIR=data/demo"),
    ],
)
def test_our_own_commands_reach_the_demo_and_not_the_real_installation(
    port: int, dotenv: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_node()
    for name in ("ORCH_PORT", "API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(dotenv)
    ours, the_simulators = own_tools(port)
    assert ours == f"{settings} switchboard sessions list"
    assert the_simulators.endswith("simulator/dist/src/main.js state --data data/demo/simulator")


def test_the_demo_takes_either_name_of_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    require_build()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setenv("ORCH_PORT", port)
        monkeypatch.delenv("PORT", raising=False)
        assert f"port {port} can't be used" in CliRunner().invoke(build(), ["demo"]).stderr
        monkeypatch.setenv("PORT", port)
        monkeypatch.setenv("ORCH_PORT", "1")
        assert f"port {port} can't be used" in CliRunner().invoke(build(), ["demo"]).stderr
