"""Node under the memory limit of the process runner: it starts with the usual one, and can't grow past it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from switchboard.runners.node import V8_FLAGS, Node
from switchboard.runners.process import ProcessRunner
from switchboard.runners.spec import WorkerSpec
from switchboard.wiring import system_clock
from tests.support.node_build import require_node
from tests.support.serving import until

pytestmark = pytest.mark.anyio

# Threads, machine code and a fetch (WebAssembly): all that maps memory of its own. Then it grows, if it is told to.
BUSY = """
const { pbkdf2 } = require('crypto'), { promisify } = require('util'), { existsSync, writeFileSync } = require('fs')
const kept = []
const grow = () => existsSync('grow') ? kept.push(Buffer.alloc(8 << 20, 1)) : 0
Promise.all(Array.from({ length: 8 }, () => promisify(pbkdf2)('a', 'b', 1000, 32, 'sha512')))
  .then(() => fetch('http://127.0.0.1:1').catch(() => {}))
  .then(() => { writeFileSync('ready', ''); setInterval(grow, 5) })
"""


@pytest.fixture
def node() -> Node:
    return require_node()


@pytest.fixture
def runner(node: Node, tmp_path: Path) -> Iterator[ProcessRunner]:
    (tmp_path / "busy.cjs").write_text(BUSY)
    made = ProcessRunner(
        [node.program, *V8_FLAGS, str(tmp_path / "busy.cjs")],
        sessions_dir=tmp_path / "sessions",
        run_dir=tmp_path / "run",
        log_dir=tmp_path / "logs",
        reserved_mb=node.reserved_mb,
        clock=system_clock,
    )
    yield made
    for seen in asyncio.run(made.list()):
        asyncio.run(made.stop(seen.handle))


async def test_node_runs_with_the_usual_memory_and_ends_when_it_wants_more(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions" / "worker_1"
    handle = await runner.start(WorkerSpec("worker_1", 1, {"SESSION_ID": "worker_1"}, memory_mb=512))
    await until((folder / "ready").exists)
    seen = await runner.inspect(handle)
    assert seen is not None
    assert seen.running
    (folder / "grow").touch()

    async def ended() -> bool:
        now = await runner.inspect(handle)
        if now is not None and now.running and now.memory_bytes:
            assert now.memory_bytes < 620 << 20, "it grows past its limit"
        return now is not None and not now.running

    await until(ended, 30)
    await runner.stop(handle)
