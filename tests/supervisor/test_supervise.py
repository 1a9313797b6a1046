"""What the supervisor promises, seen from outside with dummy processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucloud.supervisor.leftovers import end_leftovers, leftovers

DUMMY = Path(__file__).parent / "dummy.py"
ROOT = DUMMY.parent.parent.parent


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start dummy supervisors on one data folder; whatever they leave is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*kinds: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(DUMMY), str(tmp_path), *kinds]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment())
        )
        return started[-1]

    yield start
    for supervisor in started:
        if supervisor.poll() is None:
            supervisor.kill()
        supervisor.communicate()
    end_leftovers(tmp_path)


def wait_for(condition: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def line(supervisor: subprocess.Popen[str], wanted: str) -> str:
    """Read its output up to the line that contains `wanted`."""
    assert supervisor.stdout
    for text in supervisor.stdout:
        if wanted in text:
            return text
    raise AssertionError(f"never said {wanted!r}: {supervisor.communicate()}")


def pid_of(data: Path, name: str) -> int:
    return int((data / "run" / f"{name}.pid").read_text())


def test_a_killed_child_is_restarted(launch, tmp_path):
    supervisor = launch("steady")
    line(supervisor, "ready")
    first = pid_of(tmp_path, "steady")
    os.kill(first, signal.SIGKILL)
    assert "steady ended by signal 9; restart" in line(supervisor, "steady")
    wait_for(lambda: (tmp_path / "run/steady.pid").exists() and pid_of(tmp_path, "steady") != first)
    wait_for(lambda: (tmp_path / "run/steady.beat").exists())


def test_a_child_that_stops_beating_is_restarted(launch, tmp_path):
    supervisor = launch("hung")
    line(supervisor, "ready")
    first = pid_of(tmp_path, "hung")
    line(supervisor, "hung gave no sign of life")
    wait_for(lambda: first not in leftovers(tmp_path))


def test_what_a_dead_child_started_dies_before_the_restart(launch, tmp_path):
    supervisor = launch("family")
    line(supervisor, "ready")
    wait_for(lambda: len(leftovers(tmp_path)) == 2)
    before = set(leftovers(tmp_path))
    os.kill(pid_of(tmp_path, "family"), signal.SIGKILL)
    line(supervisor, "family ended")
    wait_for(lambda: not before & set(leftovers(tmp_path)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_leaves_nothing(launch, tmp_path, number):
    supervisor = launch("steady", "family", "stubborn")
    line(supervisor, "ready")
    supervisor.send_signal(number)
    assert supervisor.wait(15) == 0
    assert leftovers(tmp_path) == {}
    assert list((tmp_path / "run").glob("*.pid")) == []


def test_a_second_signal_stops_at_once(launch, tmp_path):
    supervisor = launch("stubborn")
    line(supervisor, "ready")
    began = time.monotonic()
    supervisor.send_signal(signal.SIGINT)
    time.sleep(0.2)
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(15) == 0
    assert time.monotonic() - began < 0.9
    assert leftovers(tmp_path) == {}


def test_the_next_start_ends_what_a_killed_supervisor_left(launch, tmp_path):
    supervisor = launch("steady", "family", "stubborn")
    line(supervisor, "ready")
    supervisor.kill()
    supervisor.wait()
    before = set(leftovers(tmp_path))
    assert before
    again = launch("steady")
    assert "left over" in line(again, "stubborn")
    line(again, "ready")
    assert not before & set(leftovers(tmp_path))


def test_a_second_supervisor_on_the_same_data_is_refused(launch, tmp_path):
    supervisor = launch("steady")
    line(supervisor, "ready")
    child = pid_of(tmp_path, "steady")
    second = launch("steady")
    said = second.communicate(timeout=15)[1]
    assert second.returncode == 1
    assert f"already runs on {tmp_path.resolve()} (supervisor {supervisor.pid})" in said
    assert pid_of(tmp_path, "steady") == child


def test_a_stranger_with_the_number_of_a_pid_file_is_spared(launch, tmp_path):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/steady.pid").write_text(f"{stranger.pid}\n")
        supervisor = launch("steady")
        line(supervisor, "ready")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_folder_that_cannot_be_used_is_said_in_one_sentence(launch, tmp_path):
    (tmp_path / "run").write_text("a file where a folder should be")
    supervisor = launch("steady")
    said = supervisor.communicate(timeout=15)[1]
    assert supervisor.returncode == 1
    assert "cannot be used" in said
    assert "Traceback" not in said
