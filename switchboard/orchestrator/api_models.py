"""The shapes of the session and proxy API. Rules are elsewhere; this is the edge."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from switchboard.domain.ids import is_session_id
from switchboard.domain.sessions import State


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds a control character")
    return text


def _is_session_id(text: str) -> str:
    if not is_session_id(text):
        raise ValueError("1 to 64 letters, digits, _ and -, beginning with a letter or digit")
    return text


Name = Annotated[str, Field(max_length=100), AfterValidator(_printable)]
_PROXY = Field(
    None,
    max_length=1000,
    description="The id of a proxy in the pool, or the socks5h:// URL of one to add.",
    repr=False,
)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ProvisionRequest(_Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Support"}]})

    phone: str | None = Field(None, max_length=40, examples=["972501234567"])
    proxy: str | None = _PROXY
    name: Name | None = None


class CreateRequest(_Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"sessionId": "support-1"}]})

    sessionId: Annotated[str, AfterValidator(_is_session_id)]
    proxyOverride: str | None = _PROXY
    phone: str | None = Field(None, max_length=40)
    name: Name | None = None


class PauseRequest(_Request):
    until: AwareDatetime | None = Field(None, description="Without it: until it is resumed.")


class PairingRequest(_Request):
    phone: str = Field(min_length=1, max_length=40, examples=["972501234567"])


class ProxyRequest(_Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "socks5h://user:password@198.51.100.7:1080"}]})

    url: str = Field(
        min_length=1,
        max_length=1000,
        repr=False,
        description="socks5h://user:password@host:port, or host:port:user:password as providers list it.",
    )


class LimitsShown(BaseModel):
    daily: int
    perMinute: int
    baseDelayMs: int
    jitterMs: int
    hours: str


class SessionAnswer(BaseModel):
    sessionId: str = Field(examples=["worker_1"])
    name: str | None
    status: State
    phone: str | None
    proxyId: str | None = Field(description="Null while it has no place; 'direct' for none on purpose.")
    deviceName: str | None = Field(description="What the phone shows under Linked devices; the same for life.")
    trustLevel: Literal["cold", "warm", "hot"] | None
    limits: LimitsShown | None
    sentToday: int
    queueSize: int
    createdAt: datetime
    connectedAt: datetime | None
    lastPing: datetime | None
    paused: bool = Field(description="Its account is paused, whatever the session's own state.")
    pausedUntil: datetime | None = Field(description="Null if it is not held, or until it is resumed.")
    pausedReason: Literal["by_request", "rate_limited", "restricted"] | None = Field(
        description="Null if it is not held; rate_limited and restricted: WhatsApp said so."
    )
    scanBy: datetime | None = Field(description="A session not scanned by then is stopped.")
    reason: str | None


class SessionList(BaseModel):
    items: list[SessionAnswer]
    nextCursor: str | None
    total: int | None = Field(None, description="How many match; only said where a status or a search was given.")


class FleetAnswer(BaseModel):
    sessions: dict[State, int] = Field(description="How many show which status.", examples=[{"connected": 12}])
    attention: int = Field(description="Sessions that will not go on until a person does something.")
    accounts: int = Field(description="Phones that have a session.")
    sentToday: int
    allowanceToday: int = Field(description="What the accounts may send today, all together.")
    waiting: int = Field(description="Messages in the accounts' queues.")
    scheduled: int
    jobs: int = Field(description="Messages that wait for a sender to be chosen.")
    dead: int = Field(description="Messages that were given up, for a person to decide.")


class DeleteAnswer(BaseModel):
    deleted: bool = Field(description="False if it is still being done.")
    sessionId: str
    unlinked: bool | None = Field(
        description="False: WhatsApp could not be told, so the phone still lists the device; remove it there."
    )


class QrAnswer(BaseModel):
    sessionId: str
    qr: str
    expiresAt: datetime | None


class PairingAnswer(BaseModel):
    sessionId: str
    phone: str
    code: str = Field(examples=["ABCD1234"])
    expiresAt: datetime | None


class EventAnswer(BaseModel):
    id: str
    type: str
    at: datetime
    data: dict[str, Any]


class EventList(BaseModel):
    items: list[EventAnswer]
    nextCursor: str | None


class ProxyAnswer(BaseModel):
    proxyId: str = Field(examples=["proxy_1"])
    host: str = Field(examples=["198.51.100.7:1080"])
    status: Literal["OK", "BAD"]
    badAt: datetime | None
    reason: str | None = Field(description="What was found wrong with it.")
    sessions: list[str]
    capacity: int


class ProxyList(BaseModel):
    items: list[ProxyAnswer]
    nextCursor: None = None


class RemovedAnswer(BaseModel):
    removed: bool = True
    proxyId: str


class ProbeAnswer(BaseModel):
    proxyId: str
    ok: bool
    code: str
    detail: str
    tookMs: int


class InventoryAnswer(BaseModel):
    proxies: int
    bad: int
    capacity: int
    used: int
    free: int = Field(description="How many more sessions the pool can take, on proxies that work.")
    direct: bool = Field(description="The pool is empty and sessions connect without a proxy (ALLOW_DIRECT).")
