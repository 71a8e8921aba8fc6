"""What tests with real workers need: Node, and the worker and the simulator built. `make test` sees to it.

Without it such a test is skipped with the reason on a laptop, and fails where CI=true.
"""

import os
from typing import NoReturn

import pytest

from switchboard.demo import simulator
from switchboard.runners.node import Node, WorkerMissing, built, default_worker, find_node


def require_node() -> Node:
    try:
        return find_node()
    except WorkerMissing as missing:
        _do_without(missing)


def require_build() -> None:
    try:
        default_worker()
        built(simulator.MAIN)
    except WorkerMissing as missing:
        _do_without(missing)


def _do_without(missing: WorkerMissing) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(str(missing))
    pytest.skip(str(missing))
