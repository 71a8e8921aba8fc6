"""Workers as plain processes of this machine. Needs nothing installed; ends none of them when it ends itself.

What it keeps: `run_dir/<id>.json` says which process it is, `run_dir/<id>.lock` is held by the worker itself (see
`records.py`), and the worker carries a mark (see `family.py`). Any two of the three may be lost.
"""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from switchboard.runners.base import AlreadyRunning, Handle, Observed, RunnerUnavailable, StartFailed
from switchboard.runners.ends import Ends
from switchboard.runners.family import (
    POLL_S,
    RUNNER,
    VARIABLE,
    Family,
    Launch,
    leader_of,
    leads,
    remains,
    send,
    workers,
)
from switchboard.runners.logs import rotate
from switchboard.runners.pids import alive, identify, memory_of
from switchboard.runners.records import Records, checked
from switchboard.runners.spec import WorkerSpec

# The worker's program runs only after a line came through stdin, which is sent when the record is on the disk. If we
# die before, the other end closes, `read` fails, and nothing has run. Its stdin is then /dev/null, the pipe is gone.
# RLIMIT_DATA counts private writable memory, so it holds what is used and not most of what V8 reserves (as RLIMIT_AS
# would). What it reserves as writable from the start (see `node.py`) is put on top.
_SHIM = f"""
read -r go && [ "$go" = go ] || exit 125
ulimit -d "$1"
export {VARIABLE}="$$ $2"
shift 2
exec "$@" </dev/null
"""

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")


class ProcessRunner:
    name = RUNNER

    def __init__(
        self,
        command: Sequence[str],
        *,
        sessions_dir: Path,
        run_dir: Path,
        log_dir: Path,
        grace_s: float = 10.0,
        log_max_bytes: int = 5_000_000,
        log_files: int = 3,
        reserved_mb: int = 0,
        missing: str = "WORKER_COMMAND is not set.",
        clock: Callable[[], int],
    ) -> None:
        """`reserved_mb` of what the command maps is never used, and is allowed on top of each worker's memory.
        `missing` says why the command is empty."""
        self._command = command
        self._reserved_mb = reserved_mb
        self._missing = missing
        self._sessions = sessions_dir.resolve()
        self._records = Records(run_dir.resolve())
        self._log_dir = log_dir.resolve()
        self._grace_s = grace_s
        self._log_max_bytes = log_max_bytes
        self._log_files = log_files
        self._clock = clock
        # Only for their exit codes, and so that no zombie stays. Nothing else is known from here.
        self._children: dict[str, tuple[Handle, subprocess.Popen[bytes]]] = {}
        self._ends = Ends()
        self.ended = self._ends.event

    async def start(self, spec: WorkerSpec) -> Handle:
        checked(spec.session_id)
        program = self._program()
        self._reap()
        with self._disk():
            self._prepare(spec.session_id)
            lock = await self._claim(spec.session_id)
            try:
                return self._launch(spec, program, lock)
            finally:
                os.close(lock)  # the worker has its own copy by now, or there is none

    async def stop(self, handle: Handle) -> None:
        session_id = checked(handle.session_id)
        with self._disk():
            self._records.prepare()
            current = self._current(session_id)
            if (leader := leader_of(handle)) is None or current not in (None, handle):
                return
            await Family(handle, leader, self._records.lock(session_id)).end(self._grace_s)
            self._reap()
            await self._forget(handle)

    async def inspect(self, handle: Handle) -> Observed | None:
        with self._disk():
            self._records.prepare()
            current = self._current(checked(handle.session_id))
            return self._observe(handle) if current == handle else None

    async def recover(self, handles: Sequence[Handle]) -> list[Observed]:
        with self._disk():
            self._records.prepare()
            kept = [handle for handle in handles if _alive(handle)]
            for handle in [*kept, *workers(self._sessions)]:
                if not _alive(self._records.read(checked(handle.session_id))):
                    self._records.write(handle)
            for session_id in self._records.ids():
                self._clear_up(session_id)
        return await self.list()

    async def list(self) -> list[Observed]:
        with self._disk():
            self._records.prepare()
            self._reap()
            found = (self._current(session_id) for session_id in self._records.ids())
            return [self._observe(handle) for handle in found if handle]

    async def tend(self) -> None:
        self._reap()
        with self._disk():
            for log in sorted(self._log_dir.glob("*.log")):
                await asyncio.to_thread(rotate, log, self._log_max_bytes, self._log_files)

    def logs(self, session_id: str) -> Path:
        return self._log_dir / f"{checked(session_id)}.log"

    # --- starting ---

    def _program(self) -> str:
        """Looked up here: the shim could only say it in the worker's log."""
        if not self._command:
            raise RunnerUnavailable(f"There is no worker to run. {self._missing}")
        name = self._command[0]
        if (found := shutil.which(name)) is None:
            raise RunnerUnavailable(
                f"The worker's command can't be run: there is no program {name!r} that may be executed."
            )
        return str(Path(found).absolute())

    def _prepare(self, session_id: str) -> None:
        self._records.prepare()
        self._log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._sessions / session_id).mkdir(mode=0o700, exist_ok=True)
        (self._sessions / session_id).chmod(0o700)

    async def _claim(self, session_id: str) -> int:
        """The lock, once nothing of an earlier worker lives. What an ended one left behind is killed for it."""
        deadline = time.monotonic() + self._grace_s
        while True:
            lock = self._records.try_lock(session_id)
            left = remains(self._sessions / session_id)
            lives = _alive(self._records.read(session_id)) or any(map(leads, left))
            if lock is not None and not lives and not left:
                return lock
            if lock is not None:
                os.close(lock)
            # Held though nobody lives: another Switchboard is about to start it, or looks whether it is held.
            if lives or time.monotonic() >= deadline:
                raise AlreadyRunning(f"A worker of session {session_id} is running, or about to.")
            for member in left:
                send(member, signal.SIGKILL)
            await asyncio.sleep(POLL_S)

    def _launch(self, spec: WorkerSpec, program: str, lock: int) -> Handle:
        """Without a pause in between: within one program nobody can come between the claim and the record."""
        folder = self._sessions / spec.session_id
        launch = Launch(folder, spec.generation, self._clock(), secrets.token_hex(8))
        limit_kb = (spec.memory_mb + self._reserved_mb) * 1024
        arguments = [str(limit_kb), launch.mark(), program, *self._command[1:]]
        process, go = self._spawn(spec, arguments, lock)
        try:
            handle = self._release(process, go, launch)
        except BaseException:
            process.kill()
            process.wait()
            self._undo(launch)
            raise
        finally:
            os.close(go)
        self._children[spec.session_id] = (handle, process)
        return handle

    def _release(self, process: subprocess.Popen[bytes], go: int, launch: Launch) -> Handle:
        """First the record, then the word."""
        if (leader := identify(process.pid)) is None:
            raise StartFailed(f"The worker of session {launch.folder.name} was killed before it began.")
        handle = launch.handle(leader)
        self._records.write(handle)
        try:
            os.write(go, b"go\n")
        except BrokenPipeError as error:
            raise StartFailed(f"The worker of session {launch.folder.name} was killed before it began.") from error
        return handle

    def _undo(self, launch: Launch) -> None:
        """An ended worker's record that was not replaced yet stays as it was."""
        session_id = launch.folder.name
        record = self._records.read(session_id)
        if record is None or record.data.get("token") == launch.token:
            self._records.remove(session_id)
        else:
            self._records.remove_draft(session_id)

    def _spawn(self, spec: WorkerSpec, arguments: Sequence[str], lock: int) -> tuple[subprocess.Popen[bytes], int]:
        """The shim, waiting, and the end of the pipe that lets it go."""
        log = os.open(self.logs(spec.session_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        wait, go = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's command
                ["/bin/sh", "-c", _SHIM, "switchboard-worker", *arguments],
                stdin=wait,
                stdout=log,
                stderr=log,
                env=self._environment(spec),
                # Not our own folder: a worker that looks for a .env beside it must not find the server's secrets.
                cwd=self._sessions / spec.session_id,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C is for us, and its group is its own
            )
        except OSError:
            os.close(go)
            raise
        finally:
            os.close(log)
            os.close(wait)
        return process, go

    def _environment(self, spec: WorkerSpec) -> dict[str, str]:
        """From nothing: our own holds the keys of the whole installation."""
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return passed_on | dict(spec.environment) | {"SESSIONS_DIR": str(self._sessions)}

    # --- knowing ---

    def _current(self, session_id: str) -> Handle | None:
        """The last start of this session; when its record is lost or broken, what the worker says itself."""
        if (handle := self._records.read(session_id)) is not None and leader_of(handle):
            return handle
        if (lock := self._records.try_lock(session_id)) is None:
            return next((found for found in workers(self._sessions) if found.session_id == session_id), None)
        self._records.remove(session_id)
        os.close(lock)
        return None

    def _observe(self, handle: Handle) -> Observed:
        running = _alive(handle)
        if running and (leader := leader_of(handle)):
            self._ends.watch(leader)
        return Observed(
            handle=handle,
            running=running,
            started_at=int(handle.data["started_at"]),
            exit_code=None if running else self._exit_code(handle),
            memory_bytes=memory_of(int(handle.data["pid"])) if running else None,
        )

    def _exit_code(self, handle: Handle) -> int | None:
        """As a shell tells it: 128 and the signal's number for one that was killed. Known of our own children only."""
        own, process = self._children.get(handle.session_id, (None, None))
        if process is None or own != handle or (code := process.poll()) is None:
            return None
        return code if code >= 0 else 128 - code

    # --- clearing up ---

    async def _forget(self, handle: Handle) -> None:
        deadline = time.monotonic() + self._grace_s
        while (lock := self._records.try_lock(handle.session_id)) is None:
            if self._current(handle.session_id) != handle:
                return  # it is being started anew already
            if time.monotonic() >= deadline:
                held = self._records.lock(handle.session_id)
                raise RunnerUnavailable(f"Something that a worker started, and that hides, still holds {held}.")
            await asyncio.sleep(POLL_S)
        if self._records.read(handle.session_id) in (None, handle):
            self._records.remove(handle.session_id)
            self._children.pop(handle.session_id, None)
        os.close(lock)

    def _clear_up(self, session_id: str) -> None:
        """What a start that was cut short leaves behind, unless someone else is in the middle of one."""
        if (lock := self._records.try_lock(session_id)) is not None:
            self._records.remove_draft(session_id)
            os.close(lock)

    def _reap(self) -> None:
        for _, process in self._children.values():
            process.poll()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or f"{self._records.folder} or {self._log_dir}"
            raise RunnerUnavailable(f"The process runner can't use {where}: {error.strerror}.") from error


def _alive(handle: Handle | None) -> bool:
    leader = leader_of(handle) if handle else None
    return leader is not None and alive(leader)
