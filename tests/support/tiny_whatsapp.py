"""The smallest thing that can stand where WhatsApp stands: linked devices and messages, as JSON lines, without crypto.

It listens at several doors. Each proxy leads to a door of its own, so every connection tells which way it came.
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

BEAT_S = 0.5
QR_S = 2.0


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    sender: str
    to: str
    text: str
    door: str


@dataclass(frozen=True, slots=True)
class Hello:
    """A device came by this door, with a token or to be linked."""

    door: str
    device: str
    linked: bool


@dataclass(slots=True)
class _Device:
    """One open connection of a device."""

    door: str
    name: str
    writer: asyncio.StreamWriter
    token: str | None = None
    phone: str | None = None
    qr: str = ""

    def say(self, **words: Any) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps(words).encode() + b"\n")


@dataclass(slots=True)
class TinyWhatsApp:
    phones: dict[str, str] = field(default_factory=dict)
    """Of every token that is good."""
    messages: list[Message] = field(default_factory=list)
    """Each once, however often it was sent."""
    sent: Counter[str] = field(default_factory=Counter)
    """How often each id was sent."""
    hellos: list[Hello] = field(default_factory=list)
    scans: Counter[str] = field(default_factory=Counter)
    """How often each device was linked."""
    unlinked: list[str] = field(default_factory=list)
    """The devices that logged out by themselves."""
    twins: list[str] = field(default_factory=list)
    """Devices that came with a token that was in use at that moment."""
    _devices: list[_Device] = field(default_factory=list)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    # --- what a test does ---

    async def door(self, name: str) -> int:
        """Opens one more, and says at which port."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(name, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def scan(self, qr_or_device: str, phone: str) -> None:
        """The person points the phone at the code."""
        [device] = [one for one in self._devices if one.token is None and qr_or_device in (one.qr, one.name)]
        device.token, device.phone = secrets.token_hex(8), phone
        self.phones[device.token] = phone
        self.scans[device.name] += 1
        device.say(linked=phone, token=device.token)

    def log_out(self, phone_or_device: str) -> None:
        """The person removes it on the phone."""
        for device in self._of(phone_or_device):
            self.phones.pop(device.token or "", None)
            device.say(logged_out=True)

    def drop(self, device: str) -> None:
        for one in self._of(device):
            one.writer.transport.abort()

    def replace(self, device: str) -> None:
        for one in self._of(device):
            one.say(replaced=True)

    def online(self, device: str) -> bool:
        return any(one.token in self.phones for one in self._of(device))

    def waiting(self, qr_or_device: str) -> bool:
        """For a scan."""
        return any(one.token is None and one.qr and qr_or_device in (one.qr, one.name) for one in self._devices)

    def doors_of(self, device: str) -> list[str]:
        return [hello.door for hello in self.hellos if hello.device == device]

    def texts(self, sender: str) -> list[str]:
        return [message.text for message in self.messages if message.sender == sender]

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()

    # --- what a device hears ---

    def _of(self, name: str) -> list[_Device]:
        return [one for one in self._devices if name in (one.name, one.phone)]

    async def _serve(self, door: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            first = await reader.readline()
            if first:  # a probe only looks whether the door opens
                await self._talk(door, json.loads(first), reader, writer)
        writer.transport.abort()

    async def _talk(
        self, door: str, hello: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        device = _Device(door, hello["device"], writer, hello["token"])
        self.hellos.append(Hello(door, device.name, device.token is not None))
        if device.token and any(one.token == device.token for one in self._devices):
            self.twins.append(device.name)
        device.phone = self.phones.get(device.token or "")
        if device.phone:
            device.say(open=device.phone)
        elif device.token:
            device.say(logged_out=True)
        self._devices.append(device)
        beats = asyncio.create_task(_beat(device))
        try:
            while line := await reader.readline():
                self._hear(device, json.loads(line))
        finally:
            beats.cancel()
            self._devices.remove(device)

    def _hear(self, device: _Device, words: Mapping[str, Any]) -> None:
        if "pair" in words:
            device.say(code=secrets.token_hex(4).upper(), phone=words["pair"])
        elif "logout" in words:
            self.phones.pop(device.token or "", None)
            self.unlinked.append(device.name)
            device.say(logged_out=True)
        elif "send" in words and device.token in self.phones:
            self._take(device, words["send"], words["to"], words["text"])

    def _take(self, device: _Device, message: str, to: str, text: str) -> None:
        self.sent[message] += 1
        if self.sent[message] == 1:
            self.messages.append(Message(message, device.phone or "", to, text, device.door))
        device.say(ack=message)


async def _beat(device: _Device) -> None:
    """Shows a code, a new one now and then, while it waits for a scan; is heard of in any case."""
    clock = asyncio.get_running_loop().time
    next_qr = clock()
    while True:
        if device.token is None and clock() >= next_qr:
            device.qr = f"2@{secrets.token_hex(12)}"
            device.say(qr=device.qr)
            next_qr = clock() + QR_S
        device.say(beat=True)
        await asyncio.sleep(BEAT_S)


@asynccontextmanager
async def tiny_whatsapp() -> AsyncIterator[TinyWhatsApp]:
    whatsapp = TinyWhatsApp()
    try:
        yield whatsapp
    finally:
        await whatsapp.close()
