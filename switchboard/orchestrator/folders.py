"""The sessions' folders: where each worker keeps its auth data. Never read here, only put aside or removed."""

import asyncio
import fcntl
import shutil
from pathlib import Path
from typing import TextIO

_KEPT_ASIDE = 2
"""Of one session: enough to look into what happened, and no museum."""


class SessionFolders:
    def __init__(self, sessions_dir: Path) -> None:
        self._folder = sessions_dir
        self._aside = sessions_dir / ".aside"

    async def put_aside(self, session: str, now: int) -> None:
        """Its auth data is no good any more. It is not destroyed: somebody may want to know."""
        await asyncio.to_thread(self._put_aside, session, now)

    async def remove(self, session: str) -> None:
        await asyncio.to_thread(self._remove, session)

    def _put_aside(self, session: str, now: int) -> None:
        folder = self._folder / session
        if folder.exists():
            self._aside.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.rename(self._aside / f"{session}.{now}")
        for old in self._of(session)[:-_KEPT_ASIDE]:
            shutil.rmtree(old)

    def _remove(self, session: str) -> None:
        self._put_aside(session, 0)  # out of the way in one move, should removing be cut short
        for old in self._of(session):
            shutil.rmtree(old)

    def _of(self, session: str) -> list[Path]:
        """By age. A session's id holds no dot, so no other's folder is among them."""
        found = [path for path in self._aside.glob(f"{session}.*") if path.suffix[1:].isdigit()]
        return sorted(found, key=lambda path: int(path.suffix[1:]))


class FolderLock:
    """Of several orchestrators on one data folder, one starts workers. The lock ends with the process that has it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def hold(self) -> bool:
        if self._file is None:
            file = self._path.open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._file = file
        return True
