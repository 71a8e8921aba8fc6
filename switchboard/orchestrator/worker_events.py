"""What each event of a worker does here. Every effect may happen twice or out of order and still be right."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from switchboard.domain.clock import Clock
from switchboard.domain.errors import InvalidRequest
from switchboard.domain.ids import message_id_of
from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.orchestrator.models import (
    AuthFailureData,
    ConnectedData,
    DisconnectedData,
    EventBody,
    FailedData,
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

_log = structlog.get_logger(__name__)

# Known, and checked as strictly as the others, but nothing follows from them yet.
_ONLY_TOLD: Mapping[str, type[BaseModel]] = {
    "QR_CODE": QrData,
    "STATUS_CHANGE": StatusData,
    "MESSAGE_RECEIVED": ReceivedData,
    "PROXY_ERROR": ProxyErrorData,
    "AUTH_FAILURE": AuthFailureData,
}

Effect = Callable[[EventBody], Awaitable[None]]
Data = TypeVar("Data", bound=BaseModel)


class WorkerEvents:
    def __init__(self, store: Store, settlement: Settlement, clock: Clock) -> None:
        self._store = store
        self._settlement = settlement
        self._clock = clock
        self._effects: Mapping[str, Effect] = {
            "CONNECTED": self._connected,
            "DISCONNECTED": self._disconnected,
            "PING": self._ping,
            "MESSAGE_SENT": self._sent,
            "MESSAGE_FAILED": self._failed,
            "MESSAGE_DELIVERED": lambda event: self._receipt(event, Status.DELIVERED),
            "MESSAGE_READ": lambda event: self._receipt(event, Status.READ),
        }

    async def handle(self, event: EventBody) -> None:
        effect = self._effects.get(event.type)
        if effect is None:
            if event.type in _ONLY_TOLD:
                _read(_ONLY_TOLD[event.type], event.data)
            _log.info("worker.event_without_effect", session=event.sessionId, type=event.type)
            return
        await effect(event)

    async def _connected(self, event: EventBody) -> None:
        data = _read(ConnectedData, event.data)
        await self._store.accounts.connect(event.sessionId, data.phoneNumber, self._clock())
        _log.info("session.connected", session=event.sessionId)

    async def _disconnected(self, event: EventBody) -> None:
        reason = _read(DisconnectedData, event.data).reason
        await self._store.accounts.disconnect(event.sessionId, self._clock(), reason=reason)
        _log.info("session.disconnected", session=event.sessionId, reason=reason)

    async def _ping(self, event: EventBody) -> None:
        _read(PingData, event.data)
        await self._store.accounts.ping(event.sessionId, self._clock())

    async def _sent(self, event: EventBody) -> None:
        message_id = _read(SentData, event.data).messageId
        await self._settlement.confirmed(event.sessionId, message_id, Status.SENT, event.timestamp)

    async def _failed(self, event: EventBody) -> None:
        data = _read(FailedData, event.data)
        kind = FailureClass(data.kind)
        await self._settlement.failed(event.sessionId, data.messageId, data.attempt, kind, data.error, data.until)

    async def _receipt(self, event: EventBody, status: Status) -> None:
        data = _read(ReceiptData, event.data)
        message_id = data.messageId or message_id_of(data.whatsappId or "")
        if message_id is None:  # written on the phone itself, not through us
            return
        await self._settlement.confirmed(event.sessionId, message_id, status, data.timestamp)


def _read(kind: type[Data], data: dict[str, Any]) -> Data:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(["data", *map(str, first["loc"])])
        raise InvalidRequest(f"{field}: {first['msg'].removeprefix('Value error, ')}", field) from None
