"""The simulated WhatsApp as tests use it: its controls, its refusals, and that it survives being killed."""

import os
from pathlib import Path

import httpx
import pytest

from switchboard.demo.simulator import SimulatorFailed
from switchboard.domain.proxies import ProxyUrl
from switchboard.orchestrator.prober import Prober
from tests.support.node_build import require_build
from tests.support.real_installation import remotes
from tests.support.whatsapp import SimulatorRefused, whatsapp

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _built() -> None:
    require_build()


async def test_faults_are_set_seen_and_healed(tmp_path: Path) -> None:
    async with whatsapp(tmp_path) as simulated:
        fault = await simulated.fault("ack_error", phone="972501112233", code=429, times=2)
        assert (await simulated.state()).faults == [fault]
        assert (fault.kind, fault.code, fault.times, fault.hits) == ("ack_error", 429, 2, 0)
        assert await simulated.struck(fault) == 0
        await simulated.heal(fault)
        assert (await simulated.state()).faults == []
        with pytest.raises(SimulatorRefused, match="there is no fault"):
            await simulated.heal(fault)


async def test_what_makes_no_sense_is_refused_in_its_own_words(tmp_path: Path) -> None:
    async with whatsapp(tmp_path) as simulated:
        with pytest.raises(SimulatorRefused, match="phone"):
            await simulated.scan("2@nothing", "not a number")
        with pytest.raises(SimulatorRefused):
            await simulated.scan("2@a,b,c,d", "972501112233")
        with pytest.raises(SimulatorRefused, match="no proxy runs"):
            await simulated.proxy(1)


async def test_its_proxies_lead_to_whatsapp_and_nowhere_else(tmp_path: Path) -> None:
    async with whatsapp(tmp_path, 2) as simulated:
        first, second = (ProxyUrl.parse(url) for url in simulated.proxy_urls)
        assert (await Prober().probe(first)).ok
        assert [(one.host, one.port) for one in (await simulated.proxy(1)).asked] == [("web.whatsapp.com", 443)]
        await simulated.break_proxy(1, "wrong_password")
        assert (await Prober().probe(first)).code == "auth_rejected"
        assert (await Prober().probe(second)).ok
        await simulated.heal_proxy(1)
        assert (await Prober().probe(first)).ok


async def test_after_a_kill_it_is_back_on_the_same_ports(tmp_path: Path) -> None:
    async with whatsapp(tmp_path, 1) as simulated:
        before = simulated.ready
        simulated.kill()
        assert not simulated.running
        with pytest.raises(SimulatorFailed, match="does not answer"):
            await simulated.state()
        await simulated.restart()
        assert simulated.ready == before
        assert (await Prober().probe(ProxyUrl.parse(simulated.proxy_urls[0]))).ok


async def test_who_a_process_talks_with_is_seen_from_outside(tmp_path: Path) -> None:
    async with whatsapp(tmp_path) as simulated, httpx.AsyncClient(trust_env=False) as http:
        await http.get(f"http://127.0.0.1:{simulated.ready.control}/state")
        assert ("127.0.0.1", simulated.ready.control) in remotes(os.getpid())
