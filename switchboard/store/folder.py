"""The folder of the embedded store on disk: its files, its locks, and where its socket fits.

Not for what runs in it; see `server.py`.
"""

import fcntl
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

_SOCKET_PATH_MAX = 100  # the kernel takes 107 bytes on Linux, 103 on macOS


@dataclass(frozen=True, slots=True)
class StoreFolder:
    data_dir: Path

    @property
    def path(self) -> Path:
        return self.data_dir / "store"

    @property
    def log(self) -> Path:
        return self.path / "valkey.log"

    @property
    def owner_lock(self) -> Path:
        return self.path / "owner.lock"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def socket(self) -> Path:
        """In the folder; when that path is too long for a socket, in a short one that is as private."""
        beside = self.path / "valkey.sock"
        if len(os.fsencode(beside)) <= _SOCKET_PATH_MAX:
            return beside
        # Not $TMPDIR: every process that uses this data folder must come to the same path.
        name = hashlib.sha256(os.fsencode(self.data_dir.resolve())).hexdigest()[:16]
        return Path(f"/tmp/switchboard-{os.geteuid()}-{name}/valkey.sock")  # noqa: S108 - see prepare()

    def prepare(self) -> None:
        """Make the folders, for this user only."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.path.chmod(0o700)
        if self.socket.parent != self.path:
            _private_temporary(self.socket.parent)

    def last_words(self) -> str:
        """The end of the server's log, in one line."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 2000))
            lines = file.read().decode(errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-5:] if line.strip())


def _private_temporary(folder: Path) -> None:
    """Anyone may have made a folder of this name before us, or a link: only our own will do."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to someone else")
    folder.chmod(0o700)


def try_lock(path: Path) -> int | None:
    """A handle that holds the lock until every process that has it closed it; None when it is taken."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise
    return handle
