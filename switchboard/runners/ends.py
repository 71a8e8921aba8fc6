"""Being told at once that a process ended, one's own child or not. Where the kernel can't (no pidfd), nobody is told:
whoever cares looks now and then all the same."""

import asyncio
import os
from contextlib import suppress

from switchboard.runners.pids import Identity, alive


class Ends:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._watched: dict[Identity, int] = {}

    def watch(self, process: Identity) -> None:
        if process in self._watched or not hasattr(os, "pidfd_open"):
            return
        with suppress(OSError):
            descriptor = os.pidfd_open(process.pid)
            if not alive(process):  # it ended before we looked, and its pid may be another's by now
                os.close(descriptor)
                return
            self._watched[process] = descriptor
            asyncio.get_running_loop().add_reader(descriptor, self._ended, process)

    def _ended(self, process: Identity) -> None:
        descriptor = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        self.event.set()
