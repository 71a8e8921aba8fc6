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

from switchboard.cli import show
from switchboard.cli.client import ApiError, Client

_LOOK_S = 0.5
_FRAME = (8, 10)  # columns and lines around a code
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
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            while True:
                item = self._client.get(f"/api/sessions/{self._session}")
                if item["status"] not in _WAITING:
                    break
                live.update(self.frame(item, self._code(item)))
                time.sleep(_LOOK_S)
        self._console.print(outcome(item))
        return bool(item["status"] in ("connected", "paused", "restricted"))

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
            if error.code == "QR_NOT_READY":
                return None
            raise
        return answer

    def frame(self, item: dict[str, Any], code: str | None) -> RenderableType:
        title = f"[bold]{item['sessionId']}[/bold]" + (f" · {escape(item['name'])}" if item["name"] else "")
        place = (
            "directly, without a proxy" if item["proxyId"] == "direct" else f"through {item['proxyId'] or 'a proxy'}"
        )
        body: list[RenderableType] = [Text(f"Connects {place}.", style="dim"), Text()]
        if code is None:
            body.append(Spinner("dots", text=Text(f" {_doing(item)}")))
        else:
            body += self._shown(code)
            body += [Text(), Spinner("dots", text=Text(f" waiting for the phone, {show.left(item['scanBy'])} left"))]
        return Panel(Group(*body), title=title, title_align="left", border_style="cyan", expand=False, padding=(1, 3))

    def _shown(self, code: str) -> list[RenderableType]:
        if self._pair:
            spaced = f"{code[:4]}-{code[4:]}"
            return [
                Text(f"{_STEPS} › Link with phone number instead"),
                Text(),
                Align.center(Text(f" {spaced} ", style="bold #000000 on #ffffff")),
            ]
        columns, lines = (size + frame for size, frame in zip(show.qr_size(code), _FRAME, strict=True))
        if columns > self._console.width or lines > self._console.height:
            return [
                Text(f"This window is too small for the code: it needs {columns} columns and {lines} lines."),
                Text("Make it larger, or its letters smaller. Or link by eight letters: --pair.", style="dim"),
            ]
        return [Text(_STEPS), Text(), Align.center(show.qr(code))]


def _doing(item: dict[str, Any]) -> str:
    if item["reason"]:
        return show.reason(item["reason"])
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
        f": {show.reason(item['reason']) or word}",
        (f"\n  Try again: switchboard sessions scan {session}", "dim"),
    )
