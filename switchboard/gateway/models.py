"""The shapes of requests and answers. Rules are elsewhere; this is the edge."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, WithJsonSchema


def _either_name(schema: dict[str, Any]) -> None:
    """Says in the document what `AliasChoices` does: the text comes as `message` or as `text`."""
    [name] = {"message", "text"} & set(schema["properties"])
    other = {"message": "text", "text": "message"}[name]
    schema["properties"][other] = schema["properties"][name] | {"title": other.title()}
    schema["required"].remove(name)
    schema["oneOf"] = [{"required": [name]}, {"required": [other]}]


def _send_schema(schema: dict[str, Any]) -> None:
    _either_name(schema)
    schema["examples"] = [
        {"to": "972509876543", "message": "hello", "sessionId": "worker_1", "reference": "order-17"},
        {"to": "+972 50-987-6543", "text": "hello", "priority": 3},
    ]


_TEXT = Field(validation_alias=AliasChoices("message", "text"), min_length=1, examples=["hello"])
_TO = Field(min_length=1, max_length=40, examples=["972509876543", "+972 50-987-6543"])


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SendRequest(_Request):
    model_config = ConfigDict(json_schema_extra=_send_schema)

    to: str = _TO
    message: str = _TEXT
    sessionId: str | None = Field(None, max_length=64)
    phone: str | None = Field(None, max_length=40)
    priority: Literal[1, 2, 3] = Field(1, description="1 normal, 2 high, 3 urgent")
    scheduledFor: AwareDatetime | None = None
    reference: str | None = Field(None, max_length=200)
    deferrable: bool = Field(False, description="Past the day's limit, queue for the next day.")


class BatchRow(_Request):
    model_config = ConfigDict(json_schema_extra=_either_name)

    to: str = _TO
    text: str = Field(validation_alias=AliasChoices("text", "message"), min_length=1)
    reference: str | None = Field(None, max_length=200)


class BatchRequest(_Request):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [{"to": "972509876543", "text": "hello"}, {"to": "972509876544", "text": "hello"}],
                    "sessionId": "worker_1",
                    "spreadMinutes": 30,
                }
            ]
        }
    )

    # Rows are checked one by one, so that every bad row is reported and not only the first.
    messages: list[Annotated[Any, WithJsonSchema(BatchRow.model_json_schema())]] = Field(min_length=1)
    sessionId: str | None = Field(None, max_length=64)
    phone: str | None = Field(None, max_length=40)
    spreadMinutes: float = Field(0, ge=0, le=7 * 24 * 60)
    priority: Literal[1, 2, 3] = 1
    deferrable: bool = False


class LimitsRequest(_Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"daily": 50, "hours": "09:00-18:00"}]})

    daily: int | None = Field(None, ge=1, le=10_000)
    perMinute: int | None = Field(None, ge=1, le=120)
    baseDelayMs: int | None = Field(None, ge=0, le=3_600_000)
    jitterMs: int | None = Field(None, ge=0, le=3_600_000)
    hours: str | None = Field(None, examples=["07:00-23:00"])
    timezone: str | None = Field(None, examples=["Asia/Jerusalem"])


class SendAnswer(BaseModel):
    queued: bool = True
    messageId: str = Field(examples=["5f0c1d2e3a4b5c6d7e"])
    position: int | None = Field(description="Place in the queue; null while scheduled.", examples=[13])
    estimatedDelivery: datetime | None = Field(description="Null while nobody can know: no sender connected.")


class BatchAnswer(BaseModel):
    queued: int
    batchId: str
    estimatedCompletion: datetime | None


class WaitingAnswer(BaseModel):
    reason: Literal[
        "daily_limit", "minute_limit", "delay", "hours", "disconnected", "paused", "restricted", "scheduled",
        "recipient_hours", "recipient_cap",
    ]  # fmt: skip
    until: datetime | None


class MessageAnswer(BaseModel):
    messageId: str
    status: str
    to: str
    sessionId: str | None
    phone: str | None
    priority: int
    reference: str | None
    batchId: str | None
    attempts: int
    whatsappId: str
    createdAt: datetime
    scheduledFor: datetime | None
    sentAt: datetime | None
    deliveredAt: datetime | None
    readAt: datetime | None
    error: str | None
    waiting: WaitingAnswer | None = None


class MessageList(BaseModel):
    items: list[MessageAnswer]
    nextCursor: str | None


class DeadLetter(MessageAnswer):
    failedAt: datetime = Field(description="When it was given up.")


class DeadLetterList(BaseModel):
    items: list[DeadLetter]
    nextCursor: str | None


class CancelAnswer(BaseModel):
    cancelled: bool = True
    messageId: str


class BatchProgress(BaseModel):
    batchId: str
    sessionId: str | None
    phone: str | None
    total: int
    waiting: int
    sent: int
    delivered: int
    read: int
    failed: int
    cancelled: int
    createdAt: datetime
    cancelledAt: datetime | None
    spreadMinutes: float


class BatchList(BaseModel):
    items: list[BatchProgress]
    nextCursor: str | None


class DayAnswer(BaseModel):
    sessionId: str | None
    date: str
    sent: int
    failed: int
    delivered: int
    read: int
    avgDeliveryTime: int | None = Field(description="ms from sent to delivered")
    queueSize: int | None = Field(description="What waits now; null for days that are over.")
    hours: list[dict[str, int]] | None = Field(None, description="24 entries, with ?by=hour")


class DayList(BaseModel):
    items: list[DayAnswer]
    nextCursor: str | None = None


class LimitsAnswer(BaseModel):
    sessionId: str
    phone: str
    trustLevel: Literal["cold", "warm", "hot"]
    daily: int
    perMinute: int
    baseDelayMs: int
    jitterMs: int
    hours: str
    timezone: str
    overridden: list[str]
    nextLevelAt: datetime | None = Field(description="Null for the highest level.")
    sentToday: int
