"""The orchestrator is killed (SIGKILL) in the middle of each step of what it does to a session.

After a normal start the plan is finished: one worker for each session that should run and never two, places that are
those of the sessions, nothing left of what is gone, and no scan but the first.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.support.installation import OUT_OF_ORDER, Installation, installation
from tests.support.serving import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KILLABLE = (sys.executable, "-m", "tests.support.killable")
RESIDENT = "972500000001"
PROVISIONING = (
    "before provision", "after provision", "before launch", "after launch", "after the claim", "after the spawn",
    "after the record", "after the word", "after the handle", "before connect", "after connect",
)  # fmt: skip
FAILOVER = (
    "before proxy_error", "after proxy_error", "before assign", "after assign", "before the stop", "after a signal",
    "after the worker's end", "after the stop", "after launch", "after the spawn", "after the record",
    "after the word", "before the handle",
)  # fmt: skip
DELETION = (
    "before the stop", "after the worker's end", "before the folder", "after put aside", "after the folder",
    "before forget", "after forget",
)  # fmt: skip
LOGGED_OUT = ("before put aside", "after put aside", "after aside cleared")

_numbers = count(2)


class Mortal:
    """An installation whose program can be told where to die."""

    def __init__(self, it: Installation) -> None:
        self.it = it
        self._kill_at = it.folder / "kill-at"

    async def live(self) -> None:
        await self.it.start(KILLABLE, KILL_AT=str(self._kill_at))

    def arm(self, step: str) -> None:
        draft = self._kill_at.with_suffix(".draft")
        draft.write_text(step)
        draft.replace(self._kill_at)

    @property
    def lives(self) -> bool:
        return self.it.program.process.poll() is None

    async def dies_and_lives_again(self) -> None:
        assert await self.it.ended() == -9
        assert not self._kill_at.exists()
        await self.live()

    async def calms_down(self) -> None:
        """Everything is in order sooner or later, and was never in a disorder that can't pass."""

        def in_order() -> bool:
            try:
                self.it.check_order()
            except AssertionError:
                return False
            return True

        try:
            await until(in_order, 10)
        except AssertionError:
            self.it.check_order()  # says what is wrong

    async def asks(self, method: str, path: str, status: int, key: str = "") -> str | None:
        """The session of the answer; None if there was no answer."""
        try:
            answer = await self.it.ask(method, path, status, headers={"Idempotency-Key": key} if key else {})
            return str(answer["sessionId"])
        except httpx.TransportError:
            return None


@pytest.fixture(scope="module")
async def mortal() -> AsyncIterator[Mortal]:
    """One for all: each life begins by clearing up after the one before. One session is linked from the start."""
    async with installation(proxies=3, MAX_SESSIONS_PER_PROXY="2", PYTHONPATH=str(Path.cwd())) as it:
        mortal = Mortal(it)
        await mortal.live()
        assert await it.linked(RESIDENT) == "worker_1"
        yield mortal


@pytest.fixture
async def it(mortal: Mortal) -> AsyncIterator[Installation]:
    """Alive, whatever the test before left; and the linked session is served afterwards as it was before."""
    if not mortal.lives:
        await mortal.live()
    it = mortal.it
    yield it
    await it.becomes("worker_1", "connected")
    text = f"still here {next(_numbers)}"
    await it.send("worker_1", text)
    await it.arrives(RESIDENT, text)
    await mortal.calms_down()
    assert it.whatsapp.scans["worker_1"] == 1


async def linked(it: Installation) -> tuple[str, str]:
    phone = f"9725000{next(_numbers):05}"
    return await it.linked(phone), phone


@pytest.mark.parametrize("step", PROVISIONING)
async def test_a_provisioning_that_was_cut_short_ends_in_one_session(
    mortal: Mortal, it: Installation, step: str
) -> None:
    before = it.key("sessions")
    phone = f"9725000{next(_numbers):05}"
    mortal.arm(step)
    session = await mortal.asks("POST", "/api/sessions/provision", 201, key=step)
    if step.endswith("connect"):
        assert session is not None
        await until(lambda: it.whatsapp.waiting(session))
        it.whatsapp.scan(session, phone)
    await mortal.dies_and_lives_again()
    again = await mortal.asks("POST", "/api/sessions/provision", 201, key=step)
    assert again is not None
    assert session in (None, again)
    assert it.key("sessions") == before | {again}
    if not it.whatsapp.scans[again]:
        await it.scanned(again, phone)
    await it.becomes(again, "connected")
    await it.send(again, f"{step} {phone}")
    await it.arrives(phone, f"{step} {phone}")
    await mortal.calms_down()
    assert it.whatsapp.scans[again] == 1
    await it.ask("DELETE", f"/api/sessions/{again}")


@pytest.mark.parametrize("step", FAILOVER)
async def test_a_failover_that_was_cut_short_ends_on_another_proxy(mortal: Mortal, it: Installation, step: str) -> None:
    old = (await it.show("worker_1"))["proxyId"]
    number = int(old.removeprefix("proxy_")) - 1
    mortal.arm(step)
    if step.endswith("proxy_error"):  # it finds out when it starts; else a probe may be quicker than its own word
        it.proxies[number].mode = OUT_OF_ORDER
        await it.ask("POST", "/api/sessions/worker_1/restart")
    else:
        it.break_proxy(number)
    try:
        await mortal.dies_and_lives_again()
        await until(lambda: it.key(f"phone:proxy:{RESIDENT}") != old)
        await it.becomes("worker_1", "connected")
        await mortal.calms_down()
        new = (await it.show("worker_1"))["proxyId"]
        assert new != old
        assert [proxy for proxy, sessions in it.keys("proxy:sessions:").items() if "worker_1" in sessions] == [new]
        assert it.whatsapp.doors_of("worker_1")[-1] == new
    finally:
        it.heal_proxy(number)
    await until(lambda: {it.key(f"proxy:proxy_{n}")["status"] for n in (1, 2, 3)} == {"OK"})


@pytest.mark.parametrize("step", DELETION)
async def test_a_deletion_that_was_cut_short_leaves_nothing(mortal: Mortal, it: Installation, step: str) -> None:
    session, phone = await linked(it)
    mortal.arm(step)
    asking = asyncio.create_task(mortal.asks("DELETE", f"/api/sessions/{session}", 200))
    await mortal.dies_and_lives_again()
    await asking
    await until(lambda: session not in it.key("sessions"))
    await mortal.calms_down()
    assert session in it.whatsapp.unlinked
    assert (it.key(f"session:{session}"), it.key(f"phone:sessions:{phone}")) == (None, None)


@pytest.mark.parametrize("step", LOGGED_OUT)
async def test_auth_data_is_put_aside_once_even_if_that_was_cut_short(
    mortal: Mortal, it: Installation, step: str
) -> None:
    session, phone = await linked(it)
    mortal.arm(step)
    it.whatsapp.log_out(session)
    await mortal.dies_and_lives_again()
    await it.becomes(session, "logged_out")
    await until(lambda: "aside" not in it.key(f"session:{session}"))
    assert len(list((it.sessions_dir / ".aside").glob(f"{session}.*/auth.json"))) == 1
    assert not (it.sessions_dir / session).exists()
    await mortal.calms_down()
    await it.ask("POST", f"/api/sessions/{session}/start")
    await it.scanned(session, phone)
    await it.ask("DELETE", f"/api/sessions/{session}")
