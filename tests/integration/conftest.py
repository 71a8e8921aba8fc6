"""A store with a driver: whatever a test did to it, afterwards every message is in exactly one place."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from switchboard.store import Store
from switchboard.store.client import connect
from tests.support.board import Board, opened_board
from tests.support.dashboard import Desk, opened_desk
from tests.support.driver import Driver
from tests.support.gateway import Api


@pytest.fixture
async def driver(store: Store, valkey_url: str, prefix: str) -> AsyncIterator[Driver]:
    client = connect(valkey_url)
    driver = Driver(store, client, prefix)
    yield driver
    await driver.audit()
    await client.aclose()


@pytest.fixture
async def api(driver: Driver) -> AsyncIterator[Api]:
    """The gateway over the driver's store, on the driver's clock."""
    api = Api(driver)
    yield api
    await api.close()


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    """The orchestrator over the same store, with workers in memory and a clock of its own."""
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        yield board


@pytest.fixture
async def desk(board: Board) -> AsyncIterator[Desk]:
    """The board's dashboard, signed in."""
    async with opened_desk(board) as desk:
        yield desk
