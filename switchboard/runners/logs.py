"""Keeps the log files of workers small. The worker has its file open and is not asked: copy, then cut to nothing."""

import os
import shutil
from pathlib import Path


def rotate(log: Path, max_bytes: int, keep: int) -> None:
    """`keep` old ones stay, `.1` the newest.

    The writer appends (O_APPEND), so after the cut it goes on at the start of the file. What it writes between the end
    of the copy and the cut is lost; what a crash of ours leaves behind is at worst the same lines twice.
    """
    if not log.exists() or log.stat().st_size <= max_bytes:
        return
    if keep > 0:
        draft = log.with_name(f"{log.name}.draft")
        _copy(log, draft)
        for number in range(keep - 1, 0, -1):
            if (older := _old(log, number)).exists():
                older.replace(_old(log, number + 1))
        draft.replace(_old(log, 1))
    os.truncate(log, 0)


def _copy(log: Path, draft: Path) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as target, log.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
    except OSError:
        draft.unlink()  # half a copy on a full disk only makes it fuller
        raise


def _old(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")
