"""What each event of a worker does here. Told twice, late or out of turn, it has its effect once or not at all.

The effect comes first, then the note that it was had: a crash in between repeats an effect that changes nothing the
second time. Only a received message is passed on by that very note.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from switchboard.domain.clock import Clock
from switchboard.domain.errors import InvalidRequest
from switchboard.domain.ids import message_id_of
from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.orchestrator.link_events import LinkEvents
from switchboard.orchestrator.models import (
    AuthFailureData,
    ConnectedData,
    DisconnectedData,
    EventBody,
    FailedData,
    PairingData,
    PingData,
    ProxyErrorData,
    QrData,
    ReceiptData,
    ReceivedData,
    SentData,
    StatusData,
)
from switchboard.orchestrator.settlement import Settlement
from switchboard.store import Store
from switchboard.store.worker_calls import Told

_log = structlog.get_logger(__name__)
_KEPT_BYTES = 4096

_SHAPES: Mapping[str, type[BaseModel]] = {
    "QR_CODE": QrData,
    "PAIRING_CODE": PairingData,
    "CONNECTED": ConnectedData,
    "DISCONNECTED": DisconnectedData,
    "STATUS_CHANGE": StatusData,
    "PROXY_ERROR": ProxyErrorData,
    "AUTH_FAILURE": AuthFailureData,
    "MESSAGE_SENT": SentData,
    "MESSAGE_FAILED": FailedData,
    "MESSAGE_DELIVERED": ReceiptData,
    "MESSAGE_READ": ReceiptData,
    "MESSAGE_RECEIVED": ReceivedData,
    "PING": PingData,
}
# What a session's page shows of an event: never a code that links a phone, never a text.
_SHOWN: Mapping[str, tuple[str, ...]] = {
    "QR_CODE": ("expiresAt",),
    "PAIRING_CODE": ("expiresAt",),
    "CONNECTED": ("phoneNumber", "fingerprint"),
    "DISCONNECTED": ("reason",),
    "STATUS_CHANGE": ("status",),
    "PROXY_ERROR": ("code",),  # the detail is a worker's own words, and might name what it should not
    "AUTH_FAILURE": ("code",),
}

# What is told to those who follow live, besides the change of state: there is something new to show.
_ANNOUNCED: Mapping[str, str] = {"QR_CODE": "session.qr", "PAIRING_CODE": "session.pairing_code"}

Effect = Callable[[EventBody, Any], Awaitable[object]]
Data = TypeVar("Data", bound=BaseModel)


class WorkerEvents:
    def __init__(self, store: Store, settlement: Settlement, links: LinkEvents, clock: Clock) -> None:
        self._store = store
        self._settlement = settlement
        self._links = links
        self._clock = clock
        self._state_effects: Mapping[str, Effect] = {
            "QR_CODE": links.qr,
            "PAIRING_CODE": links.pairing_code,
            "CONNECTED": links.connected,
            "DISCONNECTED": links.disconnected,
            "STATUS_CHANGE": links.status_change,
            "PROXY_ERROR": links.proxy_error,
            "AUTH_FAILURE": links.auth_failure,
        }
        self._message_effects: Mapping[str, Effect] = {
            "MESSAGE_SENT": self._sent,
            "MESSAGE_FAILED": self._failed,
            "MESSAGE_DELIVERED": lambda event, data: self._receipt(event, data, Status.DELIVERED),
            "MESSAGE_READ": lambda event, data: self._receipt(event, data, Status.READ),
        }

    async def handle(self, event: EventBody) -> None:
        shape = _SHAPES.get(event.type)
        data: Any = _read(shape, event.data) if shape else _checked(event.data)
        if event.type == "PING":  # proof of life counts now or never: it has no number, and is not kept
            await self._links.ping(event, data)
            return
        told = _told(event, about_state=event.type in self._state_effects)
        news = await self._store.worker_calls.heard(told, self._clock())
        if news == "TWICE":
            return
        effect = self._state_effects.get(event.type) or self._message_effects.get(event.type)
        if effect and news == "NEW":
            await effect(event, data)
        await self._keep(event, told, data, news)

    async def _keep(self, event: EventBody, told: Told, data: Any, news: str) -> None:
        calls = self._store.worker_calls
        if event.type == "MESSAGE_RECEIVED":
            await calls.keep(told, self._clock(), event.type, "", "message.received", _passed_on(data))
            return
        if event.type not in _SHAPES:
            _log.info("worker.unknown_event", session=event.sessionId, type=event.type)
        announced = _ANNOUNCED.get(event.type, "") if news == "NEW" else ""
        await calls.keep(told, self._clock(), event.type, _to_show(event, late=news == "LATE"), announced)

    async def _sent(self, event: EventBody, data: SentData) -> None:
        await self._settlement.confirmed(event.sessionId, data.messageId, Status.SENT, event.timestamp)

    async def _failed(self, event: EventBody, data: FailedData) -> None:
        kind = FailureClass(data.kind)
        await self._settlement.failed(event.sessionId, data.messageId, data.attempt, kind, data.error, data.until)

    async def _receipt(self, event: EventBody, data: ReceiptData, status: Status) -> None:
        message_id = data.messageId or message_id_of(data.whatsappId or "")
        if message_id is None:  # written on the phone itself, not through us
            return
        await self._settlement.confirmed(event.sessionId, message_id, status, data.timestamp)


def _told(event: EventBody, about_state: bool) -> Told:
    """Numbered events are known by their number, others by all they say."""
    if event.stream is not None and event.sequence is not None:
        mark = f"{event.stream}:{event.sequence}"
    else:
        whole = json.dumps([event.type, event.timestamp, event.data], sort_keys=True)
        mark = "sha-" + hashlib.sha256(whole.encode()).hexdigest()[:32]
    return Told(event.sessionId, event.stream or "", event.sequence, mark, about_state, event.timestamp)


def _to_show(event: EventBody, late: bool) -> str:
    """As JSON for the session's page; empty for what is not kept there."""
    if event.type in _SHAPES and event.type not in _SHOWN:
        return ""
    names = _SHOWN.get(event.type, event.data)
    shown = {name: event.data[name] for name in names if name in event.data} | ({"late": True} if late else {})
    text = json.dumps(shown, ensure_ascii=False)
    return text if len(text.encode()) <= _KEPT_BYTES else json.dumps({"tooLong": len(text.encode())})


def _passed_on(data: ReceivedData) -> dict[str, str | int]:
    return {
        "from": data.sender,
        "whatsappId": data.whatsappId,
        "text": data.text,
        "writtenAt": data.timestamp,
        "backfilled": int(data.backfilled),
    }


def _checked(data: dict[str, Any]) -> dict[str, Any]:
    """Of an unknown event at least this much: that it can be shown."""
    try:
        json.dumps(data, allow_nan=False)
    except ValueError:
        raise InvalidRequest("data: holds a number that JSON does not know", "data") from None
    return data


def _read(kind: type[Data], data: dict[str, Any]) -> Data:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(["data", *map(str, first["loc"])])
        raise InvalidRequest(f"{field}: {first['msg'].removeprefix('Value error, ')}", field) from None
