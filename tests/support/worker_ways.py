"""The ways of a test's worker: signed calls to the server, a journal of what is to be told, the way to WhatsApp.

With the standard library only; what it does with them is in `session_worker.py`.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

WHATSAPP = ("web.whatsapp.com", 443)
WAIT_MS = 5_000
LONELY_S = 90
"""Without a word from the server: the test that started all this is long gone."""
_OK, _NOT_FOUND, _AWAY = 200, 404, 503

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyFailed(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Removed(Exception):
    """The server knows this session no more."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Server:
    """Signed calls, as protocol/README.md says."""

    def __init__(self, url: str, session: str, secret: str) -> None:
        at = urlsplit(url)
        self._host, self._port = at.hostname or "", at.port or 80
        self._session = session
        self._key = base64.b64decode(secret.removeprefix("whsec_"))
        self._heard = time.monotonic()

    async def call(self, path: str, body: Mapping[str, Any], *, repeat: bool = True) -> dict[str, Any] | None:
        """The answer; None if it was refused, or if the server is away and this is not to be repeated."""
        raw = json.dumps({"sessionId": self._session, **body}).encode()
        while True:
            status, answer = await self._post(path, raw)
            if status == _OK:
                self._heard = time.monotonic()
                return answer
            if status == _NOT_FOUND and answer.get("error") == "SESSION_NOT_FOUND":
                raise Removed
            if status != _AWAY:
                print(f"{path} was answered {status} {answer}", flush=True)  # noqa: T201
                return None
            if not repeat:
                return None
            if time.monotonic() - self._heard > LONELY_S:
                raise Removed
            await asyncio.sleep(0.1)

    async def _post(self, path: str, raw: bytes) -> tuple[int, dict[str, Any]]:
        request, at = f"msg_{secrets.token_hex(8)}", str(int(time.time()))
        digest = hmac.digest(self._key, f"{request}.{at}.".encode() + raw, hashlib.sha256)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(raw)}\r\nwebhook-id: {request}\r\nwebhook-timestamp: {at}\r\n"
            f"webhook-signature: v1,{base64.b64encode(digest).decode()}\r\n\r\n"
        )
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
            try:
                writer.write(head.encode() + raw)
                answer = await asyncio.wait_for(reader.read(), WAIT_MS / 1000 + 10)
            finally:
                writer.transport.abort()
            top, _, rest = answer.partition(b"\r\n\r\n")
            return int(top.split()[1]), json.loads(rest)
        except (OSError, TimeoutError, IndexError, ValueError):  # away, or it died in the middle of its answer
            return _AWAY, {}


class Journal:
    """What happened, numbered, on the disk before it is told; told in order, once, even by the next process."""

    def __init__(self, folder: Path) -> None:
        self._file, self._mark = folder / "journal", folder / "told"
        lines = [json.loads(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []
        self.stream: str = lines[0]["stream"] if lines else secrets.token_hex(8)
        told = int(self._mark.read_text()) if self._mark.exists() else 0
        self.last = len(lines)
        self.untold: list[dict[str, Any]] = lines[told:]
        self.news = asyncio.Event()
        self.news.set()

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        self.last += 1
        event = {"type": kind, "timestamp": now_ms(), "data": data, "stream": self.stream, "sequence": self.last}
        with self._file.open("ab", buffering=0) as file:
            file.write(json.dumps(event).encode() + b"\n")
        self.untold.append(event)
        self.news.set()

    def told(self) -> None:
        draft = self._mark.with_suffix(".draft")
        draft.write_text(str(self.untold.pop(0)["sequence"]))
        draft.replace(self._mark)


async def dial(proxy: str, direct: Path) -> Streams:
    """To WhatsApp, by its name, through the proxy; without one only if the proxy is said to be none."""
    if proxy == "direct":
        return await asyncio.open_connection("127.0.0.1", int(direct.read_text()))
    at = urlsplit(proxy)
    try:
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
    except OSError:
        raise ProxyFailed("proxy_unreachable") from None
    try:
        async with asyncio.timeout(5):
            await _socks(reader, writer, unquote(at.username or "").encode(), unquote(at.password or "").encode())
        return reader, writer
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        writer.transport.abort()
        raise ProxyFailed("proxy_broke_off") from None
    except ProxyFailed:
        writer.transport.abort()
        raise


async def _socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: bytes, password: bytes) -> None:
    writer.write(bytes([5, 1, 2 if user else 0]))
    if (await reader.readexactly(2))[1] == 0xFF:
        raise ProxyFailed("socks_no_method")
    if user:
        writer.write(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await reader.readexactly(2))[1]:
            raise ProxyFailed("socks_auth_failed")
    name, port = WHATSAPP
    writer.write(bytes([5, 1, 0, 3, len(name)]) + name.encode() + port.to_bytes(2))
    if (await reader.readexactly(10))[1]:
        raise ProxyFailed("socks_refused")
