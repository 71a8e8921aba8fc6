"""The simulated WhatsApp in a test: a process that can be killed and started again, and all that its people can do.

Numbers are E.164 digits without a plus sign; moments are in milliseconds; proxies are counted from 1.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from switchboard.demo.simulator import Simulator, SimulatorRefused

__all__ = ["Account", "Fault", "Proxy", "Shown", "SimulatorRefused", "State", "WhatsApp", "Wire", "whatsapp"]

FaultKind = Literal[
    "login_failure",
    "ack_error",
    "drop_before_ack",
    "drop_message",
    "no_ack",
    "mute",
    "slow",
    "silence",
    "no_prekeys",
    "undecryptable",
    "http_error",
    "passkey",
    "no_receipts",
]
ProxyMode = Literal[
    "none",
    "refuse",
    "close",
    "hang",
    "garbage",
    "no_method",
    "wrong_password",
    "hang_connect",
    "reply",
    "slow",
    "freeze",
    "drop",
]


class _View:
    """Made from the JSON of the same fields; names that differ are in `_SPELLED`. What is new there is passed over."""

    _SPELLED: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type] # every view is a dataclass
        return cls(**{name: said.get(cls._SPELLED.get(name, name)) for name in names})


@dataclass(frozen=True, slots=True)
class Account(_View):
    """`online`: its linked device has a socket open. `waiting`: stanzas that wait for it while it has none."""

    _SPELLED: ClassVar[Mapping[str, str]] = {"device_name": "deviceName"}

    phone: str
    lid: str
    name: str
    online: bool
    linked: bool
    banned: bool
    logins: int
    waiting: int
    device_name: str


@dataclass(frozen=True, slots=True)
class Pending(_View):
    """A device that shows a QR code, or that asked for a pairing code (then with the number it was asked for)."""

    kind: Literal["qr", "code"]
    phone: str | None
    since: int


@dataclass(frozen=True, slots=True)
class Shown(_View):
    """A message as the recipient's phone shows it: once for each id, however many `stanzas` came."""

    id: str
    sender: str
    to: str
    text: str
    at: int
    stanzas: int
    delivered: bool
    read: bool

    _SPELLED: ClassVar[Mapping[str, str]] = {"sender": "from"}


@dataclass(frozen=True, slots=True)
class Wire(_View):
    """One stanza as it came. `text` is None if no device of the recipient could read it; `answer` is `ack`, the code
    of an error, or `none`."""

    id: str
    sender: str
    to: str
    at: int
    devices: list[str]
    text: str | None
    answer: str

    _SPELLED: ClassVar[Mapping[str, str]] = {"sender": "from"}


@dataclass(frozen=True, slots=True)
class Fault(_View):
    """One that was set; `hits` says how often it struck."""

    id: int
    kind: FaultKind
    hits: int
    phone: str | None
    code: int | None
    ms: int | None
    request: str | None
    times: int | None


@dataclass(frozen=True, slots=True)
class Asked(_View):
    host: str
    port: int
    at: int


@dataclass(frozen=True, slots=True)
class Proxy:
    """`asked`: the last places that were asked for, as they were written."""

    n: int
    port: int
    mode: ProxyMode
    connections: int
    asked: list[Asked]
    bytes_up: int
    bytes_down: int

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Proxy":
        asked = [Asked.of(one) for one in said["asked"]]
        up, down = said["bytesUp"], said["bytesDown"]
        return cls(said["n"], said["port"], said["mode"], said["connections"], asked, up, down)


@dataclass(frozen=True, slots=True)
class State:
    accounts: dict[str, Account]
    pending: list[Pending]
    faults: list[Fault]
    proxies: list[Proxy]
    requests: dict[str, int]


class WhatsApp(Simulator):
    """Raises SimulatorRefused, in the simulator's own words, for what makes no sense."""

    async def restart(self) -> None:
        """The same data on the same ports. After `kill` or `stop`, or in place of one that runs."""
        await self.stop()
        await self.start()

    # --- what can be seen ---

    async def state(self) -> State:
        said = await self.ask("GET", "/state")
        return State(
            accounts={one["phone"]: Account.of(one) for one in said["accounts"]},
            pending=[Pending.of(one) for one in said["pending"]],
            faults=[Fault.of(one) for one in said["faults"]],
            proxies=[Proxy.of(one) for one in said["proxies"]],
            requests=said["requests"],
        )

    async def account(self, phone: str) -> Account:
        return (await self.state()).accounts[phone]

    async def shown(self, sender: str | None = None, to: str | None = None) -> list[Shown]:
        """What the phones show, newest last."""
        return [Shown.of(one) for one in await self.ask("GET", "/messages", **_between(sender, to))]

    async def texts(self, sender: str | None = None, to: str | None = None) -> list[str]:
        return [message.text for message in await self.shown(sender, to)]

    async def wire(self, sender: str | None = None, to: str | None = None) -> list[Wire]:
        """Every stanza, repeated ones included."""
        return [Wire.of(one) for one in await self.ask("GET", "/wire", **_between(sender, to))]

    async def proxy(self, n: int) -> Proxy:
        return Proxy.of(await self.ask("GET", f"/proxies/{n}"))

    # --- what people do ---

    async def enter_code(self, code: str, phone: str, name: str | None = None) -> None:
        """The owner types the pairing code into the phone."""
        await self.ask("POST", "/enter-code", _given(code=code, phone=phone, name=name))

    async def writes(self, contact: str, to: str, text: str, id: str | None = None) -> str:  # noqa: A002
        """Somebody writes to an account; kept if its device is away. Answers the message's id."""
        given = {"from": contact} | _given(to=to, text=text, id=id)
        return str((await self.ask("POST", "/send", given))["id"])

    async def reads(self, contact: str, sender: str, id: str | None = None) -> int:  # noqa: A002
        """The contact opens the chat: how many messages became read."""
        given = {"from": sender} | _given(contact=contact, id=id)
        return int((await self.ask("POST", "/read", given))["count"])

    async def absent(self, *phones: str, absent: bool = True) -> None:
        """These numbers have no WhatsApp."""
        await self.ask("POST", "/absent", {"phones": list(phones), "absent": absent})

    async def receipts(self, delivered_after_ms: int = 0, read_after_ms: int | None = None) -> None:
        """How fast they come; None: nobody reads by itself."""
        await self.ask("POST", "/behave", {"deliveredAfterMs": delivered_after_ms, "readAfterMs": read_after_ms})

    # --- what WhatsApp does ---

    async def ban(self, phone: str) -> None:
        await self.ask("POST", "/ban", {"phone": phone})

    async def unban(self, phone: str) -> None:
        await self.ask("POST", "/unban", {"phone": phone})

    async def log_out(self, phone: str) -> None:
        """The owner removes the linked device on the phone."""
        await self.ask("POST", "/log-out", {"phone": phone})

    async def replace(self, phone: str) -> None:
        """Another program takes over with the same credentials."""
        await self.ask("POST", "/replace", {"phone": phone})

    async def drop(self, phone: str) -> None:
        """The TCP connection ends without a word."""
        await self.ask("POST", "/drop", {"phone": phone})

    async def stream_error(self, phone: str, code: int) -> None:
        await self.ask("POST", "/stream-error", {"phone": phone, "code": code})

    async def fault(
        self,
        kind: FaultKind,
        *,
        phone: str | None = None,
        code: int | None = None,
        ms: int | None = None,
        request: str | None = None,
        times: int | None = None,
    ) -> Fault:
        """Waits for its moment; without `times` it stays until it is removed."""
        given = _given(kind=kind, phone=phone, code=code, ms=ms, request=request, times=times)
        return Fault.of(await self.ask("POST", "/faults", given))

    async def heal(self, fault: Fault) -> None:
        await self.ask("DELETE", f"/faults/{fault.id}")

    async def struck(self, fault: Fault) -> int:
        """How often it did; one that is used up is no longer known, and has struck `times` times."""
        known = {one.id: one.hits for one in (await self.state()).faults}
        return known.get(fault.id, fault.times or 0)

    # --- what the proxies do ---

    async def break_proxy(self, n: int, mode: ProxyMode = "close", reply: int | None = None, ms: int = 0) -> None:
        """From now on; and whoever uses it is cut off, unless it only gets slow or freezes."""
        await self.ask("POST", f"/proxies/{n}/fault", _given(mode=mode, reply=reply, ms=ms or None))
        if mode not in ("slow", "freeze", "none"):
            await self.drop_proxy(n)

    async def heal_proxy(self, n: int) -> None:
        await self.ask("POST", f"/proxies/{n}/fault", {"mode": "none"})

    async def drop_proxy(self, n: int) -> int:
        """Cuts what goes through it now: how many there were."""
        return int((await self.ask("POST", f"/proxies/{n}/drop"))["count"])


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _between(sender: str | None, to: str | None) -> dict[str, str]:
    return ({"from": sender} if sender else {}) | ({"to": to} if to else {})


@asynccontextmanager
async def whatsapp(data: Path, proxies: int = 0, *options: str) -> AsyncIterator[WhatsApp]:
    """Runs for as long as this lasts; proxy n takes `me` with the password `pw<n>`."""
    made = WhatsApp(data, [f"me:pw{n}" for n in range(1, proxies + 1)], options)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()
