"""A whole Switchboard under test: the real program, its real workers and proxies, and a tiny WhatsApp behind them.

The program may be killed and started again; what its workers do is seen from outside (/proc, the store, WhatsApp).
"""

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.premises import API_KEY, ROOT, Premises, alive, now_ms
from tests.support.serving import until
from tests.support.socks5 import GOOD, Mode, Socks5Server, Step, Trouble, socks5_server
from tests.support.tiny_whatsapp import TinyWhatsApp, tiny_whatsapp
from tests.support.worker_ways import WHATSAPP

__all__ = ["API_KEY", "OUT_OF_ORDER", "Installation", "Start", "alive", "installation", "now_ms"]

SCRIPTED = "tests.support.session_worker"
WORKER_COMMAND = f"env PYTHONPATH={ROOT} {sys.executable} -Ssu -m {SCRIPTED}"
OUT_OF_ORDER = Mode(trouble=Trouble.RESET, at=Step.ACCEPT)


@dataclass(frozen=True, slots=True)
class Start:
    """A worker's own note of it."""

    at: int
    pid: int
    session: str
    proxy: str


class Installation(Premises):
    WORKER = SCRIPTED

    def __init__(self, folder: Path, whatsapp: TinyWhatsApp, proxies: Sequence[Socks5Server], **settings: str) -> None:
        urls = [f"socks5h://me:pw{n}@127.0.0.1:{one.port}" for n, one in enumerate(proxies, 1)]
        super().__init__(folder, urls, **{"WORKER_COMMAND": WORKER_COMMAND} | settings)
        self.whatsapp = whatsapp
        self.proxies = proxies
        self.witness = self.sessions_dir / ".witness"

    async def scanned(self, session: str, phone: str) -> None:
        """The QR code that the API shows, scanned; returns once the session is connected."""
        await self.becomes(session, "qr_ready")

        async def scans() -> bool:  # what is shown may be the code before the one that WhatsApp takes by now
            code = (await self._http.get(f"/api/sessions/{session}/qr")).json().get("qr", "")
            good = self.whatsapp.waiting(code)
            if good:
                self.whatsapp.scan(code, phone)
            return good

        await until(scans)
        await self.becomes(session, "connected")

    async def arrives(self, phone: str, *texts: str, within_s: float = 20) -> None:
        await until(lambda: set(texts) <= set(self.whatsapp.texts(phone)), within_s)

    def starts(self, session: str | None = None) -> list[Start]:
        path = self.witness / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [Start(**json.loads(line)) for line in lines]
        return [start for start in found if session in (None, start.session)]

    def fall_ill(self, session: str, fault: str) -> None:
        draft = self.sessions_dir / session / "fault.draft"
        draft.write_text(fault)
        draft.replace(draft.with_name("fault"))

    def break_proxy(self, number: int) -> None:
        """From now on it takes nobody, and whoever uses it is cut off."""
        self.proxies[number].mode = OUT_OF_ORDER
        self.proxies[number].drop_all()

    def heal_proxy(self, number: int) -> None:
        self.proxies[number].mode = GOOD

    def check_order(self) -> None:
        super().check_order()
        self.check_alone_and_behind_proxies()

    def check_alone_and_behind_proxies(self) -> None:
        assert not (self.witness / "twins").exists(), "two workers of one session ran at the same moment"
        assert not self.whatsapp.twins
        assert not [hello for hello in self.whatsapp.hellos if hello.door == "direct"]
        assert {place for one in self.proxies for place in one.asked} <= {WHATSAPP}


@asynccontextmanager
async def installation(proxies: int = 2, **settings: str) -> AsyncIterator[Installation]:
    """Set up, and not started yet. A start may be repeated after an end; nothing of it outlives this."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sb-", ignore_cleanup_errors=True)))
        whatsapp = await stack.enter_async_context(tiny_whatsapp())
        pool = []
        for number in range(1, proxies + 1):
            leads_to = {WHATSAPP: ("127.0.0.1", await whatsapp.door(f"proxy_{number}"))}
            pool.append(await stack.enter_async_context(socks5_server("me", f"pw{number}", leads_to)))
        made = Installation(folder, whatsapp, pool, **settings)
        made.witness.mkdir(parents=True)
        (made.witness / "direct").write_text(str(await whatsapp.door("direct")))
        stack.push_async_callback(made.close)
        yield made
