"""A whole worker as a process: the worker protocol on one side, the tiny WhatsApp on the other, its proxy in between.

With the standard library only, so that twenty of them start in a second. In SESSIONS_DIR/.witness it leaves what a
test can't see from outside: every start, and whether two of one session ever ran at the same moment.

A word in `fault` in its folder makes it ill. For one process: silent (no PING), eat (memory without end), linger
(takes a second to end, and leaves what happens then to the next one to tell). At every start, until removed: crash.
"""

import asyncio
import fcntl
import json
import os
import secrets
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.worker_ways import WAIT_MS, Journal, ProxyFailed, Removed, Server, dial, now_ms


class Worker:
    def __init__(self, environment: Mapping[str, str]) -> None:
        sessions = Path(environment["SESSIONS_DIR"])
        self._session = environment["SESSION_ID"]
        self._folder = sessions / self._session
        self._witness = sessions / ".witness"
        self._device = environment["DEVICE_NAME"]
        self._proxy = environment["PROXY_URL"]
        self._auth = self._folder / "auth.json"
        self._server = Server(environment["WEBHOOK_URL"], self._session, environment["WEBHOOK_SECRET"])
        self._journal = Journal(self._folder)
        self._instance = secrets.token_hex(8)
        self._writer: asyncio.StreamWriter | None = None
        self._open = self._over = False
        self._heard_at: int | None = None
        self._illness = ""
        self._acks: dict[str, asyncio.Future[bool]] = {}
        self._order: dict[str, Any] | None = None

    async def run(self) -> None:
        self._bear_witness()
        term = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, term.set)
        with suppress(Removed):
            async with asyncio.TaskGroup() as group:
                serving = [
                    group.create_task(part())
                    for part in (self._fall_ill, self._link, self._tell, self._ping, self._claim)
                ]
                try:
                    ended = asyncio.create_task(term.wait())
                    await asyncio.wait({ended, *serving}, return_when=asyncio.FIRST_COMPLETED)
                    if self._illness == "linger":
                        serving[2].cancel()  # the one that tells
                        await asyncio.sleep(1)
                finally:
                    for task in serving:
                        task.cancel()
        if self._open:
            self._journal.add("DISCONNECTED", {"reason": "stopped"})

    def _bear_witness(self) -> None:
        self._witness.mkdir(exist_ok=True)
        start = {"at": now_ms(), "pid": os.getpid(), "session": self._session, "proxy": self._proxy}
        with (self._witness / "starts").open("ab", buffering=0) as file:
            file.write(json.dumps(start).encode() + b"\n")
        self._alone = (self._witness / f"{self._session}.lock").open("w")
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process dies, and no longer
        except BlockingIOError:
            with (self._witness / "twins").open("a") as file:
                file.write(f"{self._session}\n")

    async def _fall_ill(self) -> None:
        fault = self._folder / "fault"
        while True:
            self._illness = fault.read_text() if fault.exists() else self._illness
            if self._illness == "crash":
                os._exit(3)
            fault.unlink(missing_ok=True)
            if self._illness == "eat":
                self._eaten = [bytearray(1 << 20) for _ in range(4096)]
            await asyncio.sleep(0.05)

    # --- the server's side ---

    async def _tell(self) -> None:
        while True:
            await self._journal.news.wait()
            self._journal.news.clear()
            while self._journal.untold:
                await self._server.call("/api/webhook", self._journal.untold[0])
                self._journal.told()

    async def _ping(self) -> None:
        while True:
            if self._illness != "silent":
                life = {"socketOpen": self._open, "lastInboundAt": self._heard_at}
                event = {"type": "PING", "timestamp": now_ms(), "data": life}
                await self._server.call("/api/webhook", event, repeat=False)
            await asyncio.sleep(1)

    async def _claim(self) -> None:
        outbox = f"/api/worker/sessions/{self._session}/outbox"
        taken_on: dict[str, int] = {}
        while True:
            found = await self._server.call(
                f"{outbox}/claim", {"instance": self._instance, "waitMs": WAIT_MS} | taken_on
            )
            if found and (order := found.get("order")):
                taken_on = {"order": order["id"]}
                self._order = order
                self._obey()
            if found and (message := found["message"]):
                failed = await self._send(message)
                call, more = ("nack", failed | {"until": None}) if failed else ("ack", {})
                attempt = {"messageId": message["messageId"], "attempt": message["attempt"], "timestamp": now_ms()}
                await self._server.call(f"{outbox}/{call}", attempt | more)

    # --- WhatsApp's side ---

    def _say(self, **words: Any) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(words).encode() + b"\n")

    def _obey(self) -> None:
        """At once, or when there is a link to WhatsApp."""
        if self._order is None or self._writer is None:
            return
        order, self._order = self._order, None
        if order["type"] == "logout":
            self._say(logout=True)
        else:
            self._say(pair=order["phone"])

    async def _send(self, message: Mapping[str, Any]) -> dict[str, str]:
        """Nothing if WhatsApp has it, else the failure."""
        if not self._open:
            return {"class": "retryable", "error": "not_connected"}
        self._acks[message["whatsappId"]] = answered = asyncio.get_running_loop().create_future()
        self._say(send=message["whatsappId"], to=message["to"], text=message["text"])
        try:
            if await asyncio.wait_for(answered, 5):
                return {}
        except TimeoutError:
            pass
        return {"class": "unconfirmed", "error": "no_server_ack"}

    async def _link(self) -> None:
        """Connected, and again whenever the network broke; not after WhatsApp itself put an end to it."""
        gap = 0.1
        while not self._over:
            try:
                reader, self._writer = await dial(self._proxy, self._witness / "direct")
                gap = 0.1
                await self._listen(reader)
            except ProxyFailed as failed:
                detail = f"the proxy at {urlsplit(self._proxy).hostname} could not be used"
                self._journal.add("PROXY_ERROR", {"code": failed.code, "detail": detail})
                gap = min(gap * 2, 0.4)
            except OSError:
                pass
            finally:
                self._hang_up()
            await asyncio.sleep(gap)
        await asyncio.Event().wait()

    def _hang_up(self) -> None:
        if self._open and not self._over:
            self._journal.add("DISCONNECTED", {"reason": "connection_lost"})
        self._open = False
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        for answered in self._acks.values():
            if not answered.done():
                answered.set_result(False)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        token = json.loads(self._auth.read_text())["token"] if self._auth.exists() else None
        self._say(device=self._session, token=token)
        self._obey()
        while not self._over and (line := await reader.readline()):
            self._heard_at = now_ms()
            self._hear(json.loads(line))

    def _hear(self, words: Mapping[str, Any]) -> None:
        if "qr" in words:
            self._journal.add("QR_CODE", {"qr": words["qr"], "expiresAt": now_ms() + 60_000})
        elif "code" in words:
            code = {"code": words["code"], "phoneNumber": words["phone"], "expiresAt": now_ms() + 60_000}
            self._journal.add("PAIRING_CODE", code)
        elif "linked" in words:
            self._auth.write_text(json.dumps({"token": words["token"]}))
            self._connected(words["linked"])
        elif "open" in words:
            self._connected(words["open"])
        elif "ack" in words:
            if not (answered := self._acks.pop(words["ack"])).done():
                answered.set_result(True)
        elif "logged_out" in words or "replaced" in words:
            self._over = True
            self._journal.add("DISCONNECTED", {"reason": "logged_out" if "logged_out" in words else "replaced"})

    def _connected(self, phone: str) -> None:
        self._open = True
        device = {"jid": f"{phone}:1@s.whatsapp.net", "fingerprint": self._device}
        self._journal.add("CONNECTED", {"phoneNumber": phone, **device})


if __name__ == "__main__":
    asyncio.run(Worker(os.environ).run())
