"""Sessions from the first scan to the last log-out: the real `switchboard up`, real workers, real proxies.

Only WhatsApp is a tiny one. A scan is never repeated unless the test says so: whatever dies, the link stays.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from tests.support.installation import Installation, alive, installation, now_ms
from tests.support.serving import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PHONE, OTHER, THIRD, FOURTH = (f"97250000000{n}" for n in range(1, 5))


async def test_a_session_has_its_proxy_before_its_qr_and_keeps_it_for_its_phone() -> None:
    async with installation() as it:
        await it.start()
        session = await it.provision(name="Sales")
        assert (session, it.key(f"session:temp:{session}")) == ("worker_1", "proxy_1")
        assert it.keys("proxy:sessions:") == {"proxy_1": {session}}
        assert not it.whatsapp.hellos  # nobody has asked WhatsApp for a code by then
        await it.becomes(session, "qr_ready")
        assert (it.key(f"session:temp:{session}"), it.key(f"phone:proxy:{PHONE}")) == ("proxy_1", None)

        await it.scanned(session, PHONE)
        assert (it.key(f"session:temp:{session}"), it.key(f"phone:proxy:{PHONE}")) == (None, "proxy_1")
        shown = await it.show(session)
        assert (shown["phone"], shown["proxyId"], shown["scanBy"]) == (PHONE, "proxy_1", None)
        await it.send(session, "hello")
        await it.arrives(PHONE, "hello")
        [message] = it.whatsapp.messages
        assert (message.door, it.whatsapp.sent[message.id]) == ("proxy_1", 1)

        # A second session goes to the other proxy, being emptier, until it turns out whose phone it is.
        second = await it.provision()
        assert it.key(f"session:temp:{second}") == "proxy_2"
        await it.becomes(second, "qr_ready")
        it.whatsapp.scan(second, PHONE)
        await until(lambda: it.keys("proxy:sessions:") == {"proxy_1": {session, second}})
        await it.becomes(second, "connected")
        assert (it.whatsapp.scans[second], it.whatsapp.doors_of(second)) == (1, ["proxy_2", "proxy_1"])
        it.check_order()


async def test_the_end_of_a_worker_is_noticed_long_before_the_next_look() -> None:
    async with installation(MONITOR_INTERVAL_MS="600000") as it:
        await it.start()
        session = await it.linked(PHONE)
        worker = it.worker(session)
        os.kill(worker, signal.SIGKILL)
        await it.becomes(session, "disconnected", "worker_exited")
        await it.becomes(session, "connected")
        assert it.worker(session) != worker
        assert it.whatsapp.scans[session] == 1


async def test_workers_outlive_the_program_and_are_found_again() -> None:
    async with installation() as it:
        await it.start()
        session = await it.linked(PHONE)
        worker = it.worker(session)
        await it.send(session, "before")
        await it.arrives(PHONE, "before")

        await it.end(signal.SIGKILL)
        assert alive(worker)
        it.whatsapp.drop(session)  # what happens meanwhile is told later
        await until(lambda: it.whatsapp.doors_of(session) == ["proxy_1", "proxy_1"])
        await it.start()
        await it.send(session, "after SIGKILL")
        await it.arrives(PHONE, "after SIGKILL")
        assert it.worker(session) == worker
        await it.becomes(session, "connected")
        told = [(event["type"], event["data"].get("reason")) for event in await worker_events(it, session)]
        assert told[:3] == [("CONNECTED", None), ("DISCONNECTED", "connection_lost"), ("CONNECTED", None)]

        assert await it.end(signal.SIGTERM) == 0
        assert alive(worker)
        await it.start()
        await it.send(session, "after SIGTERM")
        await it.arrives(PHONE, "after SIGTERM")
        assert it.worker(session) == worker

        assert await it.end(signal.SIGINT) == 0
        assert it.workers() == {}
        await it.start()
        await it.send(session, "after SIGINT")
        await it.arrives(PHONE, "after SIGINT")
        assert it.worker(session) != worker
        assert it.whatsapp.scans[session] == 1
        assert set(it.whatsapp.sent.values()) == {1}
        it.check_order()


async def worker_events(it: Installation, session: str) -> list[Mapping[str, Any]]:
    """Newest first, without the codes."""
    items = (await it.ask("GET", f"/api/sessions/{session}/events"))["items"]
    return [event for event in items if event["type"].isupper() and event["type"] != "QR_CODE"]


async def test_a_dead_proxy_is_replaced_without_a_scan_and_the_queue_goes_on() -> None:
    async with installation() as it:
        await it.start()
        session = await it.linked(PHONE)
        auth = (it.sessions_dir / session / "auth.json").read_text()
        texts = [f"message {n}" for n in range(30)]
        for text in texts[:15]:
            await it.send(session, text)
        await it.arrives(PHONE, texts[3])
        it.break_proxy(0)
        for text in texts[15:]:
            await it.send(session, text)
        await it.arrives(PHONE, *texts)
        assert len(it.whatsapp.messages) == len(texts)  # each id is one message on the recipient's phone
        assert (it.key(f"phone:proxy:{PHONE}"), it.keys("proxy:sessions:")) == ("proxy_2", {"proxy_2": {session}})
        assert (it.sessions_dir / session / "auth.json").read_text() == auth
        assert it.whatsapp.doors_of(session)[-1] == "proxy_2"
        [bad, good] = (await it.ask("GET", "/api/proxies"))["items"]
        assert (bad["status"], good["status"]) == ("BAD", "OK")

        it.heal_proxy(0)

        async def well_again() -> bool:
            return {proxy["status"] for proxy in (await it.ask("GET", "/api/proxies"))["items"]} == {"OK"}

        await until(well_again)
        it.whatsapp.drop(session)  # a fault of the network is not one of the proxy: it stays where it is
        await until(lambda: it.whatsapp.doors_of(session)[-2:] == ["proxy_2", "proxy_2"])
        await it.send(session, "still there")
        await it.arrives(PHONE, "still there")
        assert it.whatsapp.scans[session] == 1
        it.check_order()


async def test_a_failover_never_overfills_a_proxy_and_who_finds_no_place_waits() -> None:
    async with installation(MAX_SESSIONS_PER_PROXY="3") as it:
        await it.start()
        phones = dict(zip([await it.provision() for _ in range(4)], (PHONE, OTHER, THIRD, FOURTH), strict=True))
        for session, phone in phones.items():
            await it.scanned(session, phone)
        moving, staying = it.key("proxy:sessions:proxy_1"), it.key("proxy:sessions:proxy_2")
        assert (len(moving), len(staying)) == (2, 2)
        it.break_proxy(0)  # two look for a place at the same moment, and there is one
        await until(lambda: len(it.key("proxy:sessions:proxy_2")) == 3)
        [waits] = moving - it.key("proxy:sessions:proxy_2")
        await it.becomes(waits, "disconnected", "waiting_for_proxy")
        await until(lambda: set(it.workers()) == set(phones) - {waits})
        assert it.keys("proxy:sessions:") == {"proxy_1": {waits}, "proxy_2": set(phones) - {waits}}

        [free] = sorted(staying)[:1]
        await it.ask("DELETE", f"/api/sessions/{free}")
        await it.becomes(waits, "connected")  # on the place that is free now, its own proxy being dead still
        assert it.whatsapp.doors_of(waits) == ["proxy_1", "proxy_2"]
        assert it.key(f"phone:proxy:{phones[waits]}") == "proxy_2"
        it.check_order()


async def test_the_last_words_of_a_worker_about_its_old_proxy_are_not_held_against_the_new_one() -> None:
    async with installation(proxies=3) as it:
        await it.start()
        session = await it.linked(PHONE)
        it.fall_ill(session, "linger")  # its proxy fails it once more after it was told to end
        await until(lambda: not (it.sessions_dir / session / "fault").exists())
        it.break_proxy(0)
        await until(lambda: len(it.starts(session)) == 2)
        await it.becomes(session, "connected")
        await it.send(session, "here")
        await it.arrives(PHONE, "here")
        assert "PROXY_ERROR" in [event["type"] for event in await worker_events(it, session)]
        assert [proxy["status"] for proxy in (await it.ask("GET", "/api/proxies"))["items"]] == ["BAD", "OK", "OK"]
        assert it.whatsapp.doors_of(session) == ["proxy_1", "proxy_2"]
        it.check_order()


async def test_without_another_proxy_a_session_waits_off_line_and_never_goes_direct() -> None:
    async with installation(proxies=1, ALLOW_DIRECT="true") as it:
        await it.start()
        session = await it.linked(PHONE)
        worker = it.worker(session)
        it.break_proxy(0)
        await it.becomes(session, "disconnected", "waiting_for_proxy")
        await until(lambda: not it.workers())
        assert not alive(worker)
        await it.send(session, "patience")
        hellos = len(it.whatsapp.hellos)
        probes = it.proxies[0].connections
        await until(lambda: it.proxies[0].connections >= probes + 5)  # a second of probing, and nothing else happens
        assert (len(it.whatsapp.hellos), it.workers(), it.whatsapp.messages) == (hellos, {}, [])
        await it.end(signal.SIGKILL)  # nor does a new program think otherwise
        await it.start()
        await it.becomes(session, "disconnected", "waiting_for_proxy")
        assert it.workers() == {}

        it.heal_proxy(0)
        await it.arrives(PHONE, "patience")
        assert (it.whatsapp.scans[session], it.key(f"phone:proxy:{PHONE}")) == (1, "proxy_1")
        it.check_order()


async def test_ill_workers_are_started_again_and_a_crash_loop_is_given_up() -> None:
    async with installation(PING_TIMEOUT_MS="4000", WATCHDOG_INTERVAL_MS="300", WORKER_MEMORY_MB="100") as it:
        await it.start()
        killed, silent, hungry, loops = [await it.linked(phone) for phone in (PHONE, OTHER, THIRD, FOURTH)]
        it.fall_ill(silent, "silent")
        it.fall_ill(hungry, "eat")
        silent_worker = it.worker(silent)
        os.kill(it.worker(killed), signal.SIGKILL)
        await it.becomes(killed, "disconnected", "worker_exited:137")

        it.fall_ill(loops, "crash")
        gaps = []
        for times in range(1, 5):
            gaps.append(await gap_after_end(it, loops, times))
            it.store.hset(f"switchboard:session:{loops}", "notBefore", 0)  # waiting them out takes minutes
        assert [round(gap / 1000) for gap in gaps] == [2, 8, 32, 128]
        await it.becomes(loops, "failed", "crash_loop:worker_exited:3")
        await until(lambda: loops not in it.workers())
        kinds = [event["type"] for event in (await it.ask("GET", f"/api/sessions/{loops}/events"))["items"]]
        assert "session.failed" in kinds

        for session in (killed, hungry, silent):
            await until(lambda session=session: len(it.starts(session)) == 2)  # type: ignore[misc]
            await it.becomes(session, "connected")
            await it.send(session, f"{session} is back")
        for session, phone in ((killed, PHONE), (silent, OTHER), (hungry, THIRD)):
            await it.arrives(phone, f"{session} is back")
        assert not alive(silent_worker)
        assert len(it.starts(loops)) == 5

        (it.sessions_dir / loops / "fault").unlink()
        await it.ask("POST", f"/api/sessions/{loops}/start")
        await it.becomes(loops, "connected")
        assert set(it.whatsapp.scans.values()) == {1}
        it.check_order()


async def gap_after_end(it: Installation, session: str, times: int) -> int:
    """How long after the end of this number its next start is due."""
    await until(lambda: len(it.key(f"session:{session}").get("ends", "").split(",")) == times and ends(it, session))
    record = it.key(f"session:{session}")
    return int(record["notBefore"]) - int(record["ends"].split(",")[-1])


def ends(it: Installation, session: str) -> bool:
    return bool(it.key(f"session:{session}").get("ends"))


async def test_a_link_ends_by_log_out_by_deletion_or_on_the_phone() -> None:
    async with installation(proxies=1) as it:
        await it.start()
        logged_out, deleted, on_the_phone, replaced = [await it.linked(p) for p in (PHONE, OTHER, THIRD, FOURTH)]
        await it.ask("POST", "/api/sessions/provision", 409, json={})  # four is all that a proxy takes

        await it.ask("DELETE", f"/api/sessions/{deleted}")
        assert it.whatsapp.unlinked == [deleted]
        assert deleted not in it.workers()
        assert not (it.sessions_dir / deleted).exists()
        assert (it.key(f"session:{deleted}"), it.key(f"phone:sessions:{OTHER}")) == (None, None)
        assert deleted not in it.key("proxy:sessions:proxy_1")
        await it.ask("GET", f"/api/sessions/{deleted}", 404)

        await it.ask("POST", f"/api/sessions/{logged_out}/logout")
        await until(lambda: it.whatsapp.unlinked == [deleted, logged_out])
        it.whatsapp.log_out(on_the_phone)
        it.whatsapp.replace(replaced)
        await it.becomes(replaced, "failed", "replaced")
        for session in (logged_out, on_the_phone):
            await it.becomes(session, "logged_out")
            folder = it.sessions_dir / session
            await until(lambda folder=folder: not folder.exists())  # type: ignore[misc]
            assert len(list((it.sessions_dir / ".aside").glob(f"{session}.*/auth.json"))) == 1
        await until(lambda: it.workers() == {})

        await it.ask("POST", f"/api/sessions/{on_the_phone}/start")
        await it.scanned(on_the_phone, THIRD)
        await it.ask("POST", f"/api/sessions/{replaced}/start")
        await it.becomes(replaced, "connected")
        assert (it.whatsapp.scans[on_the_phone], it.whatsapp.scans[replaced]) == (2, 1)
        it.check_order()


async def test_a_scan_has_its_time_and_a_pairing_code_does_as_well() -> None:
    async with installation(proxies=1, SCAN_TIMEOUT_MS="3000", MAX_SESSIONS_PER_PROXY="1") as it:
        await it.start()
        session = await it.provision(phone=PHONE)
        assert it.key(f"phone:sessions:{PHONE}") == {session}
        await it.becomes(session, "qr_ready")
        await it.ask("POST", "/api/sessions/provision", 409, json={})
        await it.becomes(session, "stopped", "scan_timeout")
        await until(lambda: it.workers() == {})
        await until(lambda: not it.keys("proxy:sessions:") | it.keys("session:temp:") | it.keys("phone:sessions:"))

        await it.ask("POST", f"/api/sessions/{session}/start")
        await it.becomes(session, "qr_ready")
        assert it.key(f"session:temp:{session}") == "proxy_1"
        answer = await it.ask("POST", f"/api/sessions/{session}/pairing-code", json={"phone": PHONE})
        assert len(answer["code"]) == 8
        it.whatsapp.scan(session, PHONE)
        await it.becomes(session, "connected")
        assert (it.key(f"session:temp:{session}"), it.key(f"phone:sessions:{PHONE}")) == (None, {session})
        it.check_order()


async def test_after_a_reboot_twenty_sessions_come_back_one_by_one_and_nobody_scans() -> None:
    count, interval = 20, 200
    async with installation(proxies=5) as it:
        await it.start()
        sessions = [await it.provision() for _ in range(count)]
        for number, session in enumerate(sessions):
            await until(lambda session=session: it.whatsapp.waiting(session))  # type: ignore[misc]
            it.whatsapp.scan(session, f"9725000001{number:02}")
        await all_connected(it, count)
        it.check_order()
        first = {start.pid for start in it.starts()}

        it.program.process.kill()
        for [worker] in it.workers().values():
            os.kill(worker, signal.SIGKILL)
        os.kill(store_of(it), signal.SIGKILL)
        await it.ended()
        rebooted_at = now_ms()
        await it.start(PROVISIONING_INTERVAL_MS=str(interval))
        await all_connected(it, count)
        assert sorted(it.whatsapp.scans) == sorted(sessions)
        assert set(it.whatsapp.scans.values()) == {1}
        starts = [start for start in it.starts() if start.pid not in first]
        assert len(starts) == count
        moments = sorted(int(it.key(f"session:{session}")["startedAt"]) for session in sessions)
        assert moments[0] > rebooted_at
        assert all(later - earlier > interval / 2 for earlier, later in pairwise(moments)), moments
        assert moments[-1] - moments[0] >= (count - 1) * (interval - 5), moments
        for number, session in enumerate(sessions):
            await it.send(session, f"again {number}")
        await until(lambda: len(it.whatsapp.messages) == count)
        it.check_order()


async def all_connected(it: Installation, count: int) -> None:
    async def there() -> bool:
        await asyncio.sleep(0.1)
        items = (await it.ask("GET", "/api/sessions"))["items"]
        return [session["status"] for session in items] == ["connected"] * count

    await until(there, 40)


def store_of(it: Installation) -> int:
    return int(it.store.info("server")["process_id"])
