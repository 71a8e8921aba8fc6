"""Linking a phone from a terminal: shows the code, keeps it fresh, and waits for the scan."""

import time
from typing import Any

from rich.align import Align
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from switchboard.cli import show, words
from switchboard.cli.client import ApiError, Client

_LOOK_S = 0.5
_FRAME, _BARE = (8, 10), (0, 2)  # columns and lines around a code, as we like it and at least
_AWAY_S = 60.0
_STEPS = "On the phone: WhatsApp › Settings › Linked devices › Link a device"
_WAITING = {"starting", "qr_ready", "disconnected"}


class Linking:
    def __init__(self, client: Client, console: Console, session: str, pair: str | None = None) -> None:
        self._client = client
        self._console = console
        self._session = session
        self._pair = pair
        self._pairing_code: dict[str, Any] | None = None

    def wait(self) -> bool:
        """Until it is linked (True), or can't be any more. Ctrl-C leaves the session waiting."""
        if not self._console.is_terminal:
            self._console.print(f"Show its code in a terminal: switchboard sessions scan {self._session}")
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            item = self._follow(live)
        self._console.print(outcome(item))
        return bool(item["status"] in ("connected", "paused", "restricted"))

    def _follow(self, live: Live) -> dict[str, Any]:
        """The session once it waits no more. A server that is away for a moment is waited for."""
        heard = time.monotonic()
        while True:
            try:
                item: dict[str, Any] = self._client.get(f"/api/sessions/{self._session}")
                if item["status"] not in _WAITING:
                    return item
                live.update(self.frame(item, self._code(item)))
                heard = time.monotonic()
            except ApiError as error:
                if error.status or time.monotonic() - heard > _AWAY_S:
                    raise
                live.update(Spinner("dots", text=Text(" Switchboard does not answer; trying again …")))
            time.sleep(_LOOK_S)

    def _code(self, item: dict[str, Any]) -> str | None:
        if item["status"] != "qr_ready":
            return None
        if self._pair:
            if self._pairing_code is None or show.left(self._pairing_code["expiresAt"]) == "0:00":
                self._pairing_code = self._ask_for_pairing_code()
            return str(self._pairing_code["code"]) if self._pairing_code else None
        try:
            return str(self._client.get(f"/api/sessions/{self._session}/qr")["qr"])
        except ApiError as error:
            if error.code == "QR_NOT_READY":
                return None
            raise

    def _ask_for_pairing_code(self) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._client.post(
                f"/api/sessions/{self._session}/pairing-code", {"phone": self._pair}
            )
        except ApiError as error:
            if error.code in ("QR_NOT_READY", "INVALID_TRANSITION"):  # not yet, or linked by now: look again
                return None
            raise
        return answer

    def frame(self, item: dict[str, Any], code: str | None) -> RenderableType:
        waiting = f" waiting for the phone, {show.left(item['scanBy'])} left"
        if code and not self._pair and not self._fits(code, _FRAME) and self._fits(code, _BARE):
            return Group(show.qr(code), Spinner("dots", text=Text(f"{item['sessionId']}:{waiting}")))
        title = f"[bold]{item['sessionId']}[/bold]" + (f" · {escape(item['name'])}" if item["name"] else "")
        place = (
            "directly, without a proxy" if item["proxyId"] == "direct" else f"through {item['proxyId'] or 'a proxy'}"
        )
        body: list[RenderableType] = [Text(f"Connects {place}.", style="dim"), Text()]
        if code is None:
            body.append(Spinner("dots", text=Text(f" {_doing(item)}")))
        else:
            body += self._shown(item["sessionId"], code)
            body += [Text(), Spinner("dots", text=Text(waiting))]
        return Panel(Group(*body), title=title, title_align="left", border_style="cyan", expand=False, padding=(1, 3))

    def _shown(self, session: str, code: str) -> list[RenderableType]:
        if self._pair:
            spaced = f"{code[:4]}-{code[4:]}"
            return [
                Text(f"{_STEPS} › Link with phone number instead"),
                Text(),
                Align.center(Text(f" {spaced} ", style="bold #000000 on #ffffff")),
            ]
        if self._fits(code, _FRAME):
            return [Text(_STEPS), Text(), Align.center(show.qr(code))]
        columns, lines = (size + frame for size, frame in zip(show.qr_size(code), _BARE, strict=True))
        return [
            Text(f"This window is too small for the code: it needs {columns} columns and {lines} lines."),
            Text("Make it larger, or its letters smaller. Or, in another window:"),
            Text(f"  switchboard sessions qr {session} code.png", style="bold", no_wrap=True),
            Text(f"  switchboard sessions scan {session} --pair NUMBER", style="bold", no_wrap=True),
        ]

    def _fits(self, code: str, around: tuple[int, int]) -> bool:
        columns, lines = (size + more for size, more in zip(show.qr_size(code), around, strict=True))
        return columns <= self._console.width and lines <= self._console.height


def _doing(item: dict[str, Any]) -> str:
    if item["reason"]:
        return words.reason(item["reason"])
    return "starting its worker …" if item["status"] == "starting" else "asking WhatsApp for a code …"


def outcome(item: dict[str, Any]) -> Text:
    session, word = item["sessionId"], item["status"]
    if word in ("connected", "paused", "restricted"):
        limits = item["limits"]
        return Text.assemble(
            ("✓ ", "bold green"),
            (f"{session} is linked to {show.phone(item['phone'])}", "bold"),
            (f"\n  {item['trustLevel']}: {limits['daily']} messages a day, {limits['hours']}", "dim"),
        )
    return Text.assemble(
        ("✗ ", "bold red"),
        (f"{session} is {word}", "bold"),
        f": {words.reason(item['reason']) or word}",
        (f"\n  Try again: switchboard sessions scan {session}", "dim"),
    )
