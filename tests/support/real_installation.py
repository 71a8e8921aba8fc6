"""A whole Switchboard with its real workers, behind the simulator's proxies, and the simulated WhatsApp behind those.

    async with real_installation(proxies=2) as it:
        session = await it.linked("972501112233")
        message = await it.send(session, "hello", to="972509876543")
        await it.arrives("972501112233", "hello")
        await it.reaches(message, "delivered")

Program, workers, proxies and WhatsApp are processes: each may be killed (`it.program`, `it.worker`, `it.whatsapp`).
"""

import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from switchboard.runners.node import MAIN
from tests.support.node_build import require_build
from tests.support.premises import Premises
from tests.support.serving import until
from tests.support.whatsapp import SimulatorRefused, WhatsApp, whatsapp

_LISTENING = "0A"


class RealInstallation(Premises):
    WORKER = str(MAIN)
    PATIENCE_S = 45  # a worker needs a second of the processor to start, and there may be many at once

    def __init__(self, folder: Path, simulated: WhatsApp, **settings: str) -> None:
        trust = {"NODE_EXTRA_CA_CERTS": str(simulated.ready.ca)}
        super().__init__(folder, simulated.proxy_urls, **trust | settings)
        self.whatsapp = simulated

    # --- what a customer and an operator do ---

    async def scanned(self, session: str, phone: str) -> None:
        await self.becomes(session, "qr_ready")

        async def scans() -> bool:  # what is shown may be the code before the one that WhatsApp takes by now
            shown = await self._http.get(f"/api/sessions/{session}/qr")
            if not shown.is_success:
                return False
            try:
                await self.whatsapp.scan(shown.json()["qr"], phone)
            except SimulatorRefused:
                return False
            return True

        await until(scans, self.PATIENCE_S)
        await self.becomes(session, "connected")

    async def arrives(self, phone: str, *texts: str, within_s: float | None = None) -> None:
        """What the account sent is shown on the phones it was sent to."""
        seen: set[str] = set()

        async def there() -> bool:
            seen.update(await self.whatsapp.texts(sender=phone))
            return set(texts) <= seen

        try:
            await until(there, within_s or self.PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"of {phone} should arrive {sorted(set(texts) - seen)}") from None

    async def status(self, message: str) -> dict[str, Any]:
        return dict(await self.ask("GET", f"/api/v1/messages/{message}/status"))

    async def reaches(self, message: str, *statuses: str, within_s: float | None = None) -> dict[str, Any]:
        """The message is in one of these states: as it is then."""
        shown: dict[str, Any] = {}

        async def there() -> bool:
            shown.update(await self.status(message))
            return shown["status"] in statuses

        try:
            await until(there, within_s or self.PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"{message} should be {' or '.join(statuses)} and is {shown}") from None
        return shown

    # --- what can be seen ---

    def log_of(self, session: str) -> str:
        """What its worker wrote."""
        path = self.folder / "data" / "logs" / f"{session}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    async def check_once_each(self, phone: str, *texts: str) -> None:
        """All of these are shown on the phones the account wrote to, each once, and nothing else is."""
        assert sorted(await self.whatsapp.texts(sender=phone)) == sorted(texts)

    def check_order(self) -> None:
        super().check_order()
        self.check_behind_proxies()

    def check_behind_proxies(self) -> None:
        """Each worker talks with the proxies and with Switchboard, and with nobody else."""
        allowed = {("127.0.0.1", port) for port in (*self.whatsapp.ready.proxies, self.port)}
        for session, workers in self.workers().items():
            for pid in workers:
                strange = remotes(pid) - allowed
                assert not strange, f"the worker of {session} talks with {strange}"


def remotes(pid: int) -> set[tuple[str, int]]:
    """Who this process has TCP connections with, or tries to, from nothing but /proc."""
    inodes: set[str] = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    found: set[tuple[str, int]] = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[9] in inodes and columns[3] != _LISTENING:
                found.add(_place(columns[2], family))
    return found


def _place(text: str, family: socket.AddressFamily) -> tuple[str, int]:
    """As the kernel writes it: words of four bytes, each in the machine's order."""
    address, port = text.split(":")
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    host = socket.inet_ntop(family, b"".join(words))
    return host.removeprefix("::ffff:"), int(port, 16)


@asynccontextmanager
async def real_installation(
    proxies: int = 2, *options: str, start: bool = True, **settings: str
) -> AsyncIterator[RealInstallation]:
    """Started, unless told not to. `options` are the simulator's, `settings` the program's. Nothing outlives this."""
    require_build()
    with tempfile.TemporaryDirectory(prefix="sb-", ignore_cleanup_errors=True) as folder:
        async with whatsapp(Path(folder) / "whatsapp", proxies, *options) as simulated:
            made = RealInstallation(Path(folder), simulated, **settings)
            try:
                if start:
                    await made.start()
                yield made
            finally:
                await made.close()
