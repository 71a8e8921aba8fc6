"""The demo's own Switchboard, as a process: what `switchboard up` runs, ending by itself when the demo does.

Run as a module, with its settings in the environment and a pipe as its stdin.
"""

import os
import signal
import sys
import threading

from switchboard.demo.phone import CONTROL_PORT, DemoPhone
from switchboard.runtime import run
from switchboard.settings import load_settings

_PARTS = frozenset({"gateway", "dispatcher", "orchestrator"})


def _end_with_the_demo() -> None:
    """Our stdin closes when the demo lets go of it, or is killed. Then it is as if a person pressed Ctrl-C."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
    run(load_settings(env_file=None), _PARTS, DemoPhone(int(os.environ[CONTROL_PORT])))
