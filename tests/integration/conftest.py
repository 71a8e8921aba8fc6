"""A store with a driver: whatever a test did to it, afterwards every message is in exactly one place."""

from collections.abc import AsyncIterator

import pytest

from switchboard.store import Store
from switchboard.store.client import connect
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
