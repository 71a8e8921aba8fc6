"""Few and boring: one real Valkey for the whole run, one key prefix for each test."""

import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from switchboard.store import Store, open_store
from switchboard.store.store import StoreRules
from tests.support.valkey import start_valkey


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """A real server without persistence: what is kept across its death is tested where it matters."""
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        server = start_valkey(Path(folder), "--appendonly", "no")
        try:
            yield f"unix://{folder}/s"
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid.uuid4().hex[:8]}:"


@pytest.fixture
async def store(valkey_url: str, prefix: str) -> AsyncIterator[Store]:
    opened = open_store(valkey_url, prefix, StoreRules(ZoneInfo("UTC")))
    yield opened
    await opened.close()
