"""The worker protocol's shapes, as in `protocol/schemas`. Unknown event types pass: they are kept, not refused."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Moment = Annotated[int, Field(ge=10**12, lt=10**14)]
MessageId = Annotated[str, Field(pattern=r"^[0-9a-f]{18}$")]
WhatsappId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
Phone = Annotated[str, Field(pattern=r"^[1-9][0-9]{6,14}$")]
Reason = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.:-]{0,63}$")]
Failure = Literal["retryable", "not_on_whatsapp", "refused", "rate_limited", "restricted", "unconfirmed"]
SessionStatus = Literal[
    "starting", "qr_ready", "connected", "disconnected", "paused", "restricted", "logged_out", "failed", "stopped",
    "passkey_required",
]  # fmt: skip


def _without_credentials(text: str) -> str:
    if re.search(r"://[^/\s]*@", text):
        raise ValueError("shows credentials")
    return text


class Signer(BaseModel):
    """Whom a body says it is from, before its signature is checked."""

    sessionId: str


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sessionId: str = Field(min_length=1, max_length=64)


class ClaimBody(_Body):
    instance: str = Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")
    waitMs: int = Field(ge=0, le=60_000)
    order: int | None = Field(None, ge=1, description="The last order this worker took on; it is not given again.")


class AckBody(_Body):
    messageId: MessageId
    attempt: int = Field(ge=1)
    timestamp: Moment


class _Failed(BaseModel):
    kind: Failure = Field(alias="class")
    error: Reason
    until: Moment | None

    @model_validator(mode="after")
    def _only_a_restriction_has_an_end(self) -> Self:
        if self.until is not None and self.kind != "restricted":
            raise ValueError("only a restriction has an end (until)")
        return self


class NackBody(AckBody, _Failed):
    pass


class EventBody(_Body):
    type: str = Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")
    timestamp: Moment
    stream: str | None = Field(None, pattern=r"^[A-Za-z0-9]{8,64}$")
    sequence: int | None = Field(None, ge=1, lt=2**53)
    data: dict[str, Any]

    @model_validator(mode="after")
    def _numbered_within_a_stream(self) -> Self:
        if (self.stream is None) != (self.sequence is None):
            raise ValueError("stream and sequence belong together")
        return self


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SentData(_Data):
    messageId: MessageId


class FailedData(_Data, _Failed):
    messageId: MessageId
    attempt: int = Field(ge=1)
    until: Moment | None = None


class ReceiptData(_Data):
    messageId: MessageId | None = None
    whatsappId: WhatsappId | None = None
    timestamp: Moment

    @model_validator(mode="after")
    def _names_a_message(self) -> Self:
        if self.messageId is None and self.whatsappId is None:
            raise ValueError("names neither messageId nor whatsappId")
        return self


class ConnectedData(_Data):
    phoneNumber: Phone
    jid: str = Field(pattern=r"^[0-9]+(:[0-9]+)?@[a-z.]+$")
    fingerprint: str = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _is_one_account(self) -> Self:
        user, _, server = self.jid.partition("@")
        if server == "s.whatsapp.net" and user.partition(":")[0] != self.phoneNumber:
            raise ValueError("jid and phoneNumber name different accounts")
        return self


class DisconnectedData(_Data):
    reason: Reason


class PingData(_Data):
    socketOpen: bool
    lastInboundAt: Moment | None


class QrData(_Data):
    qr: str = Field(min_length=1, max_length=2953, pattern=r"^[ -~]+$")  # as many as a QR code holds
    expiresAt: Moment | None = None


class PairingData(_Data):
    code: str = Field(pattern=r"^[A-Z0-9]{8}$")
    phoneNumber: Phone
    expiresAt: Moment | None = None


class StatusData(_Data):
    status: SessionStatus


class ReceivedData(_Data):
    sender: Phone = Field(alias="from")
    whatsappId: WhatsappId
    text: str
    timestamp: Moment
    backfilled: bool = False


class ProxyErrorData(_Data):
    code: Reason
    detail: Annotated[str, Field(max_length=500), AfterValidator(_without_credentials)]


class AuthFailureData(_Data):
    code: Reason
