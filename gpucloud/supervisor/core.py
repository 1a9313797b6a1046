"""The supervisor: one folder of data, one lock, a set of children kept alive."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from gpucloud.supervisor.child import Child, Patience, Process, write_pid
from gpucloud.supervisor.leftovers import StillThere, end_leftovers

TICK = 0.1
LOOK_SECONDS = 0.5
BEAT_SECONDS = 2.0
TRIM_SECONDS = 30.0


class Refused(Exception):
    """The start is not possible; the text says why and what to do."""


class Stopped(Exception):
    """Somebody asked for the end."""


def say(text: str) -> None:
    """Tell the person at the terminal, who may have closed it."""
    with suppress(OSError):
        print(text, flush=True)


class Supervisor:
    """Use as a context manager: entering takes the data folder, leaving stops every child."""

    def __init__(
        self, data: Path, env: Mapping[str, str], patience: Patience | None = None
    ) -> None:
        self.data = data
        self.env = env
        self.patience = patience or Patience()
        self.children: list[Child] = []
        self._lock: IO[str] | None = None
        self._asked_to_stop = 0
        self._looked = self._beaten = self._trimmed = 0.0

    # -- the folder --------------------------------------------------------------------------

    def __enter__(self) -> Supervisor:
        try:
            for folder in (self.data, self.data / "run", self.data / "log"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take_lock()
            for name in end_leftovers(self.data):
                say(f"Ended {name}, left over from a run that was killed.")
            write_pid(self.data / "run" / "supervisor.pid", os.getpid())
        except (OSError, StillThere) as error:
            raise Refused(f"{self.data} cannot be used: {error}") from error
        self._beat()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._stop_all()
        finally:
            for ending in ("pid", "beat"):
                (self.data / "run" / f"supervisor.{ending}").unlink(missing_ok=True)
            if self._lock:
                self._lock.close()

    def _take_lock(self) -> None:
        # The kernel drops this lock with its holder, however that ends; children do not inherit it.
        lock = (self.data / "run" / "supervisor.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            pid = "?"
            with suppress(OSError):
                pid = (self.data / "run" / "supervisor.pid").read_text().strip()
            raise Refused(
                f"gpucloud already runs on {self.data} (supervisor {pid}). Stop that one first "
                f"(Ctrl-C there, or: kill {pid}), or choose another GPUCLOUD_DATA and PORT."
            ) from None
        self._lock = lock

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_stop += 1

    # -- the children ------------------------------------------------------------------------

    def start(self, processes: Iterable[Process]) -> None:
        """Start processes and keep them from now on."""
        for process in processes:
            self._stop_if_asked()
            child = Child(process, self.data, self.env)
            self.children.append(child)
            child.start()

    def run_once(self, process: Process) -> None:
        """Run a command to its end while watching the others; its failure is ours."""
        child = Child(process, self.data, self.env)
        try:
            child.start()
            while child.exit_code is None:
                self.tick()
            code = child.exit_code
        finally:
            child.kill()
        if code:
            tail = "\n".join(f"  {line}" for line in child.last_lines())
            raise Refused(f"{child.name} ended with code {code}:\n{tail}\nSee {child.log_file}")

    def wait_ready(self, seconds: float) -> None:
        """Watch until every child is ready; say who is late, and go on waiting."""
        deadline = time.monotonic() + seconds
        while waiting := [child for child in self.children if not child.ready]:
            self.tick()
            if time.monotonic() > deadline:
                deadline += seconds
                for child in waiting:
                    say(f"Still waiting for {child.name}; see {child.log_file}")

    def forever(self) -> None:
        """Watch until asked to stop."""
        while True:
            self.tick()

    def tick(self) -> None:
        """One short pause, then whatever is due. Raises Stopped when asked to."""
        before = time.monotonic()
        time.sleep(TICK)
        self._stop_if_asked()
        now = time.monotonic()
        if now - before > 5:
            for child in self.children:
                child.forgive()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look()
        if now - self._beaten >= BEAT_SECONDS:
            self._beaten = now
            self._beat()
        if now - self._trimmed >= TRIM_SECONDS:
            self._trimmed = now
            for child in self.children:
                child.trim_log()

    def _look(self) -> None:
        for child in self.children:
            complaint = ""
            if child.running:
                child.listen()
                complaint = child.complaint(self.patience)
            elif time.monotonic() >= child.restart_at:
                try:
                    child.start()
                except (OSError, subprocess.SubprocessError) as error:
                    complaint = f"did not start ({error})"
            if complaint:
                delay = child.bury()
                say(f"{child.name} {complaint}; restart in {delay:g} s. See {child.log_file}")

    def _beat(self) -> None:
        with suppress(OSError):
            (self.data / "run" / "supervisor.beat").touch()

    def _stop_if_asked(self) -> None:
        if self._asked_to_stop:
            raise Stopped

    def _stop_all(self) -> None:
        for stage in sorted({child.process.stage for child in self.children}, reverse=True):
            crew = [c for c in self.children if c.process.stage == stage and c.running]
            for child in crew:
                child.terminate()
            deadline = time.monotonic() + self.patience.stop
            while any(child.exit_code is None for child in crew):
                # A second Ctrl-C means now.
                if self._asked_to_stop > 1 or time.monotonic() > deadline:
                    break
                time.sleep(0.02)
            for child in crew:
                child.kill()


def refuse(error: Refused) -> int:
    """Print why the start is not possible; the exit code."""
    with suppress(OSError):
        print(error, file=sys.stderr, flush=True)
    return 1
