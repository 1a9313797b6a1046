"""One supervised process: its command, its process group, its log, its pid file."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gpucloud.supervisor.pulse import Pulse, beat_pulse

PR_SET_PDEATHSIG = 1
BACKOFF_FIRST = 0.5
BACKOFF_MOST = 30.0
# One that ran this long was well: its next restart need not wait for the ones before.
STEADY_SECONDS = 15.0
LOG_BYTES = 20_000_000


@dataclass(frozen=True)
class Process:
    """What to run. Stages start in order and stop in reverse order."""

    name: str
    command: tuple[str, ...]
    stage: int = 1
    env: Mapping[str, str] = field(default_factory=dict)
    # Given a beat file; by default the process touches it itself.
    pulse: Callable[[Path], Pulse] = beat_pulse
    # Extra condition for "ready", asked after the first sign of life.
    ready: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Patience:
    """How long silence is borne, in seconds."""

    start: float = 30.0
    silence: float = 15.0
    stop: float = 8.0


class Child:
    """A process that should run, and the one that does."""

    def __init__(self, process: Process, data: Path, env: Mapping[str, str]) -> None:
        self.process = process
        self.name = process.name
        self.pid_file = data / "run" / f"{self.name}.pid"
        self.beat_file = data / "run" / f"{self.name}.beat"
        self.log_file = data / "log" / f"{self.name}.log"
        self.ready = False
        self.restart_at = 0.0
        self._env = {**env, **process.env, "GPUCLOUD_PROCESS": self.name}
        self._popen: subprocess.Popen[bytes] | None = None
        self._pulse: Pulse = lambda: False
        self._started = 0.0
        self._heard: float | None = None
        self._failures = 0

    @property
    def running(self) -> bool:
        return self._popen is not None

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    @property
    def exit_code(self) -> int | None:
        """How it ended, unreaped: a zombie keeps its number from strangers until `kill`."""
        if self._popen is None:
            return None
        ended = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def start(self) -> None:
        """Start it in a session and process group of its own."""
        self.beat_file.unlink(missing_ok=True)
        self._pulse = self.process.pulse(self.beat_file)
        with open_log(self.log_file) as log:
            self._popen = subprocess.Popen(
                self.process.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid()),
            )
        self._started, self._heard = time.monotonic(), None
        write_pid(self.pid_file, self._popen.pid)

    def listen(self) -> None:
        """Take note of a sign of life; decide readiness."""
        if self._pulse():
            self._heard = time.monotonic()
        if not self.ready and self._heard is not None:
            self.ready = self.process.ready()

    def complaint(self, patience: Patience) -> str:
        """Why it must be restarted, or an empty string."""
        code = self.exit_code
        if code is not None:
            return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
        now = time.monotonic()
        heard = self._started if self._heard is None else self._heard
        if now - self._started > patience.start and now - heard > patience.silence:
            return f"gave no sign of life for {now - heard:.0f} s"
        return ""

    def forgive(self) -> None:
        """Start the count of silence anew: the supervisor itself was asleep."""
        self._started = time.monotonic()
        self._heard = None

    def bury(self) -> float:
        """Kill what is left of it and plan the restart; return the delay in seconds."""
        if time.monotonic() - self._started > STEADY_SECONDS:
            self._failures = 0
        delay = min(BACKOFF_MOST, BACKOFF_FIRST * 2.0**self._failures)
        self._failures += 1
        self.kill()
        self.restart_at = time.monotonic() + delay
        return delay

    def terminate(self) -> None:
        """Ask the leader to end; its pool is its own business until `kill`."""
        if self._popen:
            os.kill(self._popen.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group now, and reap the leader."""
        if self._popen is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._popen = None
        self.ready = False
        self.pid_file.unlink(missing_ok=True)
        self.beat_file.unlink(missing_ok=True)

    def trim_log(self) -> None:
        """Keep one old log. The writer appends, so cutting the file under it is safe."""
        with suppress(OSError):
            if self.log_file.stat().st_size > LOG_BYTES:
                shutil.copyfile(self.log_file, self.log_file.with_suffix(".log.1"))
                os.truncate(self.log_file, 0)

    def last_lines(self, count: int = 15) -> list[str]:
        """The end of its log, for a message on the screen."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(0, self.log_file.stat().st_size - 8192))
                return log.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            return []


def write_pid(path: Path, pid: int) -> None:
    """Write a pid file that nobody can find half-written."""
    part = path.with_suffix(".pid-part")
    part.write_text(f"{pid}\n")
    part.replace(path)


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; nobody else may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)


def _die_with_parent(parent: int) -> Callable[[], None] | None:
    """Let Linux send SIGTERM when the supervisor dies, even by SIGKILL."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # The parent may have died between fork and prctl.
        if os.getppid() != parent:
            os._exit(1)

    return prepare
