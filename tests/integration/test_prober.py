"""A proxy is tried against real servers on loopback: each way to fail has its own name, its time limit and a clean end.

On both event loops: the program runs on uvloop, most tests on asyncio's own.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from switchboard.domain.proxies import ProxyUrl
from switchboard.orchestrator.prober import Prober, Verdict
from tests.support.serving import free_port, until
from tests.support.socks5 import GOOD, NO_METHOD, Mode, Place, Socks5Server, Step, Trouble, socks5_server

pytestmark = pytest.mark.anyio

WHATSAPP = ("web.whatsapp.com", 443)
USER, PASSWORD = "anna-of-the-proxy", "hunter2:@/ש"
PATIENT = Prober(timeout_s=30)
IMPATIENT = Prober(timeout_s=0.5)
AT = {
    Step.ACCEPT: "at the greeting",
    Step.GREETING: "at the greeting",
    Step.AFTER_GREETING: "at the user and password",
    Step.AUTH: "at the user and password",
    Step.AFTER_AUTH: "when asked for web.whatsapp.com:443",
    Step.CONNECT: "when asked for web.whatsapp.com:443",
}


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    before = running_tasks() | open_sockets()
    yield
    await until(lambda: running_tasks() | open_sockets() <= before, within_s=5)


def running_tasks() -> set[str]:
    tasks = asyncio.all_tasks()
    return {task.get_name() for task in tasks if "TestRunner" not in repr(task.get_coro())}  # those are anyio's


def open_sockets() -> set[str]:
    """By their inodes. Only those of a network: uvloop makes pairs of its own whenever it is run."""
    network = "".join(Path("/proc/self/net", name).read_text() for name in ("tcp", "tcp6"))
    numbers = {line.split()[9] for line in network.splitlines()}
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return found & {f"socket:[{number}]" for number in numbers}


@pytest.fixture
async def whatsapp() -> AsyncIterator[Place]:
    """Stands for WhatsApp: says back what it hears."""
    talks: set[asyncio.Task[None]] = set()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while some := await reader.read(1000):
                writer.write(some)
        except ConnectionResetError:
            pass
        finally:
            writer.transport.abort()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(echo(reader, writer))
        talks.add(talk)
        talk.add_done_callback(talks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()
    await until(lambda: not talks)


@pytest.fixture
async def server(whatsapp: Place) -> AsyncIterator[Socks5Server]:
    async with socks5_server(USER, PASSWORD, {WHATSAPP: whatsapp}) as server:
        yield server


@pytest.fixture
async def open_server(whatsapp: Place) -> AsyncIterator[Socks5Server]:
    """It asks for no credentials."""
    async with socks5_server(leads_to={WHATSAPP: whatsapp}) as server:
        yield server


def known(server: Socks5Server, host: str = "127.0.0.1") -> ProxyUrl:
    return ProxyUrl(host, server.port, server.user, server.password)


async def probed(
    server: Socks5Server, mode: Mode = GOOD, prober: Prober = PATIENT, proxy: ProxyUrl | None = None
) -> Verdict:
    """The verdict, once the server has seen that the connection is over."""
    server.mode = mode
    verdict = await prober.probe(proxy or known(server))
    await until(lambda: not server.open, within_s=5)
    shown = repr(verdict)
    assert USER not in shown
    assert PASSWORD not in shown
    assert "hunter2" not in shown
    assert verdict.ok == (verdict.code == "ok")
    assert verdict.took_ms >= 0
    assert verdict.detail.endswith(".")
    return verdict


# --- Good proxies


async def test_a_good_proxy_is_ok_and_was_asked_for_the_name(server: Socks5Server) -> None:
    verdict = await probed(server)
    assert verdict.code == "ok", verdict
    assert verdict.detail == f"The proxy at 127.0.0.1:{server.port} leads to web.whatsapp.com:443."
    assert server.asked == [WHATSAPP], "the name, not an address that was looked up here"
    assert server.offered == [b"\x02"]


async def test_a_proxy_without_credentials_is_offered_none(open_server: Socks5Server) -> None:
    assert (await probed(open_server)).ok
    assert open_server.offered == [b"\x00"]
    assert open_server.asked == [WHATSAPP]


async def test_the_longest_credentials_are_carried_whole(server: Socks5Server) -> None:
    server.user, server.password = "u" * 255, "p" * 255
    assert (await probed(server)).ok


@pytest.mark.parametrize("bound", ["ipv4", "ipv6", "domain"])
async def test_whatever_address_it_is_bound_to_is_fine(server: Socks5Server, bound: str) -> None:
    assert (await probed(server, Mode(bound=bound))).ok


async def test_an_answer_in_single_bytes_is_an_answer(server: Socks5Server) -> None:
    assert (await probed(server, Mode(drip_s=0, bound="domain"))).ok


async def test_the_wrong_version_that_many_put_in_front_of_a_welcome_is_forgiven(server: Socks5Server) -> None:
    assert (await probed(server, Mode(auth_version=5))).ok


async def test_a_proxy_at_an_ipv6_address_and_one_with_a_name(whatsapp: Place) -> None:
    async with socks5_server(USER, PASSWORD, {WHATSAPP: whatsapp}, host="::1") as server:
        verdict = await probed(server, proxy=known(server, "::1"))
        assert verdict.ok
        assert f"[::1]:{server.port}" in verdict.detail
    async with socks5_server(USER, PASSWORD, {WHATSAPP: whatsapp}) as server:
        assert (await probed(server, proxy=known(server, "localhost"))).ok


# --- Those that cannot be reached


async def test_where_nobody_listens_it_is_unreachable() -> None:
    verdict = await PATIENT.probe(ProxyUrl("127.0.0.1", free_port(), USER, PASSWORD))
    assert (verdict.ok, verdict.code) == (False, "unreachable")
    assert "Nobody listens" in verdict.detail


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
async def test_a_host_that_nobody_knows_is_unreachable(host: str) -> None:
    verdict = await PATIENT.probe(ProxyUrl(host, 1080, USER, PASSWORD))
    assert verdict.code == "unreachable"
    assert "could not be resolved" in verdict.detail


async def test_a_host_that_does_not_even_take_the_connection_is_given_up_in_time() -> None:
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full: the kernel ignores who comes now
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        verdict = await IMPATIENT.probe(ProxyUrl("127.0.0.1", listener.getsockname()[1]))
    assert verdict.code == "timeout"
    assert "on connecting" in verdict.detail


async def test_what_this_machine_lacks_is_not_blamed_on_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def exhausted(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(asyncio, "open_connection", exhausted)
    with pytest.raises(OSError, match="too many open files"):
        await PATIENT.probe(ProxyUrl("127.0.0.1", 1))


# --- Those that fail on the way


@pytest.mark.parametrize("step", Step)
async def test_a_proxy_that_hangs_is_given_up_in_time_and_it_is_said_where(server: Socks5Server, step: Step) -> None:
    verdict = await probed(server, Mode(Trouble.HANG, step), IMPATIENT)
    assert verdict.code == "timeout"
    assert f"did not answer within 0.5 s {AT[step]}" in verdict.detail


async def test_a_proxy_that_answers_ever_so_slowly_is_given_up_too(server: Socks5Server) -> None:
    """Each answer comes in time; all of them together do not."""
    assert (await probed(server, Mode(drip_s=0.06), IMPATIENT)).code == "timeout"


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("trouble", [Trouble.RESET, Trouble.CLOSE])
async def test_a_connection_that_breaks_is_told_from_one_that_hangs(
    server: Socks5Server, trouble: Trouble, step: Step
) -> None:
    verdict = await probed(server, Mode(trouble, step))
    assert verdict.code == "reset", verdict
    if trouble is Trouble.CLOSE or step not in (Step.ACCEPT, Step.AFTER_GREETING, Step.AFTER_AUTH):
        assert AT[step] in verdict.detail  # else the reset may overtake what came before it


async def test_a_reset_that_is_noticed_before_the_next_word_is_no_crash(
    server: Socks5Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = asyncio.open_connection

    async def connect_too_late(*args: Any, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(*args, **options)
        await until(writer.is_closing)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", connect_too_late)
    assert (await probed(server, Mode(Trouble.RESET, Step.ACCEPT))).code == "reset"


async def test_a_web_server_is_not_socks(server: Socks5Server) -> None:
    verdict = await probed(server, Mode(http=True))
    assert verdict.code == "not_socks"
    assert "no SOCKS5 answer at the greeting" in verdict.detail


@pytest.mark.parametrize("step", [Step.GREETING, Step.AUTH, Step.CONNECT])
async def test_a_single_strange_byte_is_enough_to_know(server: Socks5Server, step: Step) -> None:
    verdict = await probed(server, Mode(garbage_at=step))
    assert verdict.code == "not_socks"
    assert AT[step] in verdict.detail


async def test_a_bound_address_of_an_unknown_kind_is_not_socks(server: Socks5Server) -> None:
    assert (await probed(server, Mode(bound="unknown"))).code == "not_socks"


async def test_a_proxy_may_take_none_of_what_it_is_offered(server: Socks5Server) -> None:
    verdict = await probed(server, NO_METHOD)
    assert verdict.code == "no_auth_method"
    assert "takes no user and password" in verdict.detail


async def test_credentials_that_are_missing_here_are_named(server: Socks5Server) -> None:
    verdict = await probed(server, proxy=ProxyUrl("127.0.0.1", server.port))
    assert verdict.code == "no_auth_method"
    assert "without a user and password" in verdict.detail


async def test_a_proxy_that_skips_the_credentials_it_was_offered_is_not_trusted(server: Socks5Server) -> None:
    assert (await probed(server, Mode(method=0))).code == "no_auth_method"


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), (USER, "")])
async def test_a_wrong_user_or_password_is_rejected(server: Socks5Server, user: str, password: str) -> None:
    wrong = ProxyUrl("127.0.0.1", server.port, user, password)
    assert (await probed(server, proxy=wrong)).code == "auth_rejected"


async def test_a_proxy_may_reject_what_was_right_yesterday(server: Socks5Server) -> None:
    verdict = await probed(server, Mode(rejects_everyone=True))
    assert verdict.code == "auth_rejected"
    assert "rejected the user or the password" in verdict.detail
    assert (await probed(server, GOOD)).ok


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        (1, "general failure"),
        (2, "rules"),
        (3, "network is unreachable"),
        (4, "host is unreachable"),
        (5, "refused the connection"),
        (6, "TTL"),
        (7, "command"),
        (8, "host names"),
        (9, "reply 9"),
        (255, "reply 255"),
    ],
)
async def test_a_refusal_is_told_in_words(server: Socks5Server, reply: int, meaning: str) -> None:
    verdict = await probed(server, Mode(reply=reply))
    assert verdict.code == "connect_refused"
    assert "refused to connect to web.whatsapp.com:443: " in verdict.detail
    assert meaning in verdict.detail


# --- The connection's end


ENDINGS = {
    "good": GOOD,
    "no method": NO_METHOD,
    "http": Mode(http=True),
    "refused": Mode(reply=1),
    "rejected": Mode(rejects_everyone=True),
    "hangs": Mode(Trouble.HANG, Step.CONNECT),
    "closes": Mode(Trouble.CLOSE, Step.CONNECT),
    "resets": Mode(Trouble.RESET, Step.CONNECT),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_connection_is_over_when_the_verdict_is_there(
    server: Socks5Server, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed, not left to the garbage collector: this test holds on to it."""
    held: list[asyncio.StreamWriter] = []
    connect = asyncio.open_connection

    async def connect_and_hold(
        host: str, port: int, **options: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(host, port, **options)
        if port == server.port:
            held.append(writer)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", connect_and_hold)
    server.mode = ENDINGS[ending]
    await IMPATIENT.probe(known(server))
    assert [writer.is_closing() for writer in held] == [True]
    await until(lambda: not server.open, within_s=5)


# --- Many who ask at once


async def test_callers_of_the_same_proxy_share_one_probe(server: Socks5Server) -> None:
    verdicts = await asyncio.gather(*(PATIENT.probe(known(server)) for _ in range(5)))
    assert server.connections == 1
    assert all(verdict is verdicts[0] for verdict in verdicts)
    assert (await probed(server)).ok
    assert server.connections == 2, "a later caller asks anew"


async def test_another_password_is_another_probe(server: Socks5Server) -> None:
    old = ProxyUrl("127.0.0.1", server.port, USER, "old")
    verdicts = await asyncio.gather(PATIENT.probe(known(server)), PATIENT.probe(old))
    assert [verdict.code for verdict in verdicts] == ["ok", "auth_rejected"]


@pytest.mark.parametrize("gone", [0, 1])
async def test_a_caller_that_gives_up_takes_nothing_from_the_others(server: Socks5Server, gone: int) -> None:
    server.mode = Mode(Trouble.HANG, Step.CONNECT)
    callers = [asyncio.create_task(IMPATIENT.probe(known(server))) for _ in range(3)]
    await until(lambda: server.connections == 1)
    callers[gone].cancel()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(outcomes.pop(gone), asyncio.CancelledError)
    assert [outcome.code for outcome in outcomes if isinstance(outcome, Verdict)] == ["timeout", "timeout"]
    assert server.connections == 1


async def test_when_the_last_caller_is_gone_so_is_the_probe(server: Socks5Server) -> None:
    server.mode = Mode(Trouble.HANG, Step.CONNECT)
    callers = [asyncio.create_task(PATIENT.probe(known(server))) for _ in range(2)]
    await until(lambda: len(server.asked) == 1)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    server.mode = GOOD
    assert (await PATIENT.probe(known(server))).ok, "a new caller is not caught in the old probe's end"
    await until(lambda: not server.open, within_s=5)


# --- The server behind these tests


async def tunnel(port: int, host: str, far_port: int) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
    """A client written anew: what the server answers to a request without credentials, and the way through it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + far_port.to_bytes(2))
    assert await reader.readexactly(2) == b"\x05\x00"
    _, reply, *_ = await reader.readexactly(10)
    return reply, reader, writer


async def test_the_server_relays_both_ways_until_it_is_cut(open_server: Socks5Server) -> None:
    reply, reader, writer = await tunnel(open_server.port, *WHATSAPP)
    assert reply == 0
    sent = os.urandom(200_000)
    writer.write(sent)
    assert await reader.readexactly(len(sent)) == sent
    assert open_server.relaying == 1
    open_server.drop_all()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.transport.abort()
    await until(lambda: open_server.relaying == 0)
    assert (await probed(open_server)).ok


async def test_the_server_passes_on_that_one_side_has_finished(open_server: Socks5Server) -> None:
    _, reader, writer = await tunnel(open_server.port, *WHATSAPP)
    writer.write(b"last words")
    writer.write_eof()
    assert await reader.read() == b"last words"
    writer.transport.abort()


async def test_the_server_lets_nothing_out_of_this_machine(open_server: Socks5Server, whatsapp: Place) -> None:
    for host, port, expected in (("example.com", 443, 2), ("192.0.2.1", 80, 2), (*whatsapp, 0), ("localhost", 1, 5)):
        reply, _, writer = await tunnel(open_server.port, host, port)
        writer.transport.abort()
        assert reply == expected, host


async def test_the_server_runs_as_a_process_too(whatsapp: Place) -> None:
    arguments = ["--user", USER, "--password", PASSWORD, "--map", f"web.whatsapp.com:443=127.0.0.1:{whatsapp[1]}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.socks5", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 20))
        assert (await PATIENT.probe(ProxyUrl("127.0.0.1", port, USER, PASSWORD))).ok
        assert (await PATIENT.probe(ProxyUrl("127.0.0.1", port, USER, "wrong"))).code == "auth_rejected"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
