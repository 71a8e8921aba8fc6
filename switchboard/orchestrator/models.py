"""The worker protocol's shapes, as in `protocol/schemas`. Unknown event types pass: they are kept, not refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Moment = Annotated[int, Field(ge=10**11, lt=10**14)]
MessageId = Annotated[str, Field(pattern=r"^[0-9a-f]{18}$")]
Reason = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.:-]{0,63}$")]
Failure = Literal["retryable", "not_on_whatsapp", "refused", "rate_limited", "restricted", "unconfirmed"]


class Signer(BaseModel):
    """Whom a body says it is from, before its signature is checked."""

    sessionId: str


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sessionId: str = Field(min_length=1, max_length=64)


class ClaimBody(_Body):
    instance: str = Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")
    waitMs: int = Field(25_000, ge=0, le=60_000)


class AckBody(_Body):
    messageId: MessageId
    attempt: int = Field(ge=1)
    timestamp: Moment


class NackBody(AckBody):
    kind: Failure = Field(alias="class")
    error: Reason
    until: Moment | None


class EventBody(_Body):
    type: str = Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")
    timestamp: Moment
    sequence: int | None = Field(None, ge=0)
    data: dict[str, Any]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SentData(_Data):
    messageId: MessageId


class FailedData(_Data):
    messageId: MessageId
    attempt: int = Field(ge=1)
    kind: Failure = Field(alias="class")
    error: Reason
    until: Moment | None = None


class ReceiptData(_Data):
    messageId: MessageId | None = None
    whatsappId: str | None = Field(None, min_length=1, max_length=128)
    timestamp: Moment


class ConnectedData(_Data):
    phoneNumber: str = Field(pattern=r"^[1-9][0-9]{4,14}$")
    jid: str
    fingerprint: str | None = None


class DisconnectedData(_Data):
    reason: Reason
