"""A worker without WhatsApp: speaks the protocol over real HTTP and treats each message as its script says.

Also a process, for tests that kill it: `python -m tests.support.scripted_worker --help`.
"""

import argparse
import asyncio
import json
import random
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

import httpx
from standardwebhooks import Webhook

FailureClass = Literal["retryable", "not_on_whatsapp", "refused", "rate_limited", "restricted", "unconfirmed"]
AWAY = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
CLAIMED = ("messageId", "whatsappId", "to", "text", "attempt", "leaseUntil")  # as in Claimed
FIRST_GAP_S, LONGEST_GAP_S = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Claimed:
    message_id: str
    whatsapp_id: str
    to: str
    text: str
    attempt: int
    lease_until: int


@dataclass(frozen=True, slots=True)
class Ack:
    """WhatsApp took the message."""


@dataclass(frozen=True, slots=True)
class AckThenDelivered:
    """And it reached the recipient's phone, told by the one id that WhatsApp's receipts know."""


@dataclass(frozen=True, slots=True)
class AckThenRead:
    """And the recipient opened it."""


@dataclass(frozen=True, slots=True)
class Nack:
    kind: FailureClass
    error: str
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """The worker dies with the message in hand, and a new instance takes its place."""


Outcome = Ack | AckThenDelivered | AckThenRead | Nack | Silence
Script = Callable[[Claimed, int], Outcome]


def unreliable(fail_rate: float = 0.0, silence_rate: float = 0.0, seed: int = 1) -> Script:
    """Some attempts fail, some go silent; the same attempt always ends the same way, in any process."""

    def script(message: Claimed, attempt: int) -> Outcome:
        draw = random.Random(f"{seed}:{message.message_id}:{attempt}").random()
        if draw < fail_rate:
            return Nack("retryable", "scripted_failure")
        return Silence() if draw < fail_rate + silence_rate else Ack()

    return script


class ScriptedWorker:
    """Repeats each call until the server answers. May be cancelled at any moment, as a worker may crash."""

    def __init__(
        self,
        base_url: str,
        session_id: str,
        secret: str,
        script: Script | None = None,
        log: Path | None = None,
        instance: str | None = None,
        wait_ms: int = 25_000,
    ) -> None:
        self.session_id = session_id
        self.instance = instance or secrets.token_hex(8)
        self.claimed: list[Claimed] = []
        self._outbox = f"/api/worker/sessions/{session_id}/outbox"
        self._script = script or unreliable()
        self._signer = Webhook(secret)
        self._log, self._wait_ms = log, wait_ms
        self._client = httpx.AsyncClient(base_url=base_url, timeout=wait_ms / 1000 + 10, trust_env=False)
        self._client.headers["content-type"] = "application/json"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def run(self) -> None:
        while True:
            await self.step()

    async def step(self) -> Claimed | None:
        """Claim once, and do what the script says to what came."""
        if message := await self.claim():
            await self.answer(message, self._script(message, message.attempt))
        return message

    async def claim(self) -> Claimed | None:
        body = {"instance": self.instance, "waitMs": self._wait_ms}
        found = (await self._post(f"{self._outbox}/claim", body))["message"]
        if found is None:
            return None
        self._write({name: found[name] for name in CLAIMED if name != "text"})
        self.claimed.append(Claimed(*(found[name] for name in CLAIMED)))
        return self.claimed[-1]

    async def ack(self, message: Claimed) -> dict[str, Any]:
        answer = await self._settle("ack", message, {})
        self._write({"acked": message.message_id, "attempt": message.attempt, **answer})
        return answer

    async def nack(self, message: Claimed, why: Nack) -> dict[str, Any]:
        failure = {"class": why.kind, "error": why.error, "until": why.until}
        return await self._settle("nack", message, failure)

    async def connect(self, phone: str) -> None:
        device = {"jid": f"{phone}:1@s.whatsapp.net", "fingerprint": f"Scripted {self.session_id}"}
        await self.event("CONNECTED", {"phoneNumber": phone, **device})

    async def disconnect(self, reason: str) -> None:
        await self.event("DISCONNECTED", {"reason": reason})

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        await self._post("/api/webhook", {"type": kind, "timestamp": now_ms(), "data": dict(data)})

    async def answer(self, message: Claimed, outcome: Outcome) -> None:
        if isinstance(outcome, Silence):
            self.instance = secrets.token_hex(8)
        elif isinstance(outcome, Nack):
            await self.nack(message, outcome)
        else:
            await self.ack(message)
        if isinstance(outcome, AckThenDelivered | AckThenRead):
            await self._receipt("MESSAGE_DELIVERED", message)
        if isinstance(outcome, AckThenRead):
            await self._receipt("MESSAGE_READ", message)

    async def _receipt(self, kind: str, message: Claimed) -> None:
        await self.event(kind, {"whatsappId": message.whatsapp_id, "timestamp": now_ms()})

    async def _settle(self, call: str, message: Claimed, failure: Mapping[str, Any]) -> dict[str, Any]:
        self._write({"settling": message.message_id, "attempt": message.attempt, "call": call})
        attempt = {"messageId": message.message_id, "attempt": message.attempt, "timestamp": now_ms()}
        return await self._post(f"{self._outbox}/{call}", {**attempt, **failure})

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The same body, signed anew, until the server is there to answer it."""
        text = json.dumps({"sessionId": self.session_id, **body}, ensure_ascii=False)
        gap = FIRST_GAP_S
        while True:
            try:
                response = await self._client.post(path, content=text.encode(), headers=self._headers(text))
            except AWAY:
                response = httpx.Response(httpx.codes.SERVICE_UNAVAILABLE)
            if response.status_code == httpx.codes.OK:
                return dict(response.json())
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                raise httpx.HTTPStatusError(response.text, request=response.request, response=response)
            await asyncio.sleep(gap)
            gap = min(gap * 2, LONGEST_GAP_S)

    def _headers(self, text: str) -> dict[str, str]:
        request_id, now = f"msg_{secrets.token_hex(8)}", datetime.now(UTC)
        return {
            "webhook-id": request_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(request_id, now, text),
        }

    def _write(self, line: Mapping[str, Any]) -> None:
        """One append by one write: a SIGKILL loses no line and leaves no half of one."""
        if self._log is not None:
            text = json.dumps({"at": now_ms(), "session": self.session_id, **line}) + "\n"
            with self._log.open("ab", buffering=0) as file:  # O_APPEND, and write(2) itself
                file.write(text.encode())


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def main() -> None:
    parser = argparse.ArgumentParser(prog="scripted_worker", description=__doc__)
    for name in ("--url", "--session", "--secret", "--phone", "--log"):
        parser.add_argument(name, required=True)
    for name, default in (("--fail-rate", 0.0), ("--silence-rate", 0.0), ("--seed", 1)):
        parser.add_argument(name, type=type(default), default=default)
    given = parser.parse_args()
    script = unreliable(given.fail_rate, given.silence_rate, given.seed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, sys.exit)
    async with ScriptedWorker(given.url, given.session, given.secret, script, Path(given.log)) as worker:
        await worker.connect(given.phone)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
