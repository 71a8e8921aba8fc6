"""The folder where the process runner leaves its marks: for each session a record of its worker, and a lock.

The lock is inherited by the worker, so it is held for exactly as long as that one lives, whoever else dies. What is
here changes only in the hands of who has the lock, or for a worker that has it. Not for what the records mean; see
`process.py`.
"""

import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from switchboard.runners.base import Handle

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def checked(session_id: str) -> str:
    """An id becomes a path here: whoever let a bad one through, it ends here."""
    if not _ID.fullmatch(session_id):
        raise ValueError(f"not a session id: {session_id!r}")
    return session_id


@dataclass(frozen=True, slots=True)
class Records:
    folder: Path

    def prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def ids(self) -> list[str]:
        """Every session that left a mark, in the order of their names."""
        names = (path.stem for path in self.folder.iterdir() if path.suffix in (".json", ".lock"))
        return sorted({name for name in names if _ID.fullmatch(name)})

    def read(self, session_id: str) -> Handle | None:
        """None when there is none, or it makes no sense: after a crash of the machine a file may hold anything."""
        try:
            handle = Handle.load(self._record(session_id).read_text())
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return handle if handle.session_id == session_id and isinstance(handle.data, dict) else None

    def write(self, handle: Handle) -> None:
        """All or nothing, and on the disk when this returns."""
        draft = self._draft(handle.session_id)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(handle.dump() + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._record(handle.session_id))
        self._sync_folder()

    def remove(self, session_id: str) -> None:
        """All that there is of this session, the lock too. With the lock only."""
        for path in (self._draft(session_id), self._record(session_id), self.lock(session_id)):
            path.unlink(missing_ok=True)

    def remove_draft(self, session_id: str) -> None:
        self._draft(session_id).unlink(missing_ok=True)

    def lock(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.lock"

    def try_lock(self, session_id: str) -> int | None:
        """A descriptor that holds the lock until every process that has it closed it; None when it is taken."""
        while True:
            descriptor = os.open(self.lock(session_id), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_lock(descriptor, session_id):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _is_lock(self, descriptor: int, session_id: str) -> bool:
        """Whoever had it before us may have removed the file; then the lock is another file by now."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.lock(session_id).stat())
        except FileNotFoundError:
            return False

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _record(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.json"

    def _draft(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.draft"
