"""The whole demo from outside: start, resume, restart of its parts, refusal, stop."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucloud.doors import read_doors
from gpucloud.supervisor.leftovers import end_leftovers, leftovers

pytestmark = pytest.mark.demo

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = {
    *("supervisor", "valkey", "web", "worker-engine", "worker-bulk", "sweep", "fleet", "sealer"),
    *("watcher", "door", "lab-hardware", "lab-kube"),
}
LISTEN = "0A"


class Demo:
    """One data folder and the demo on it, if it runs."""

    def __init__(self, data: Path, port: int) -> None:
        self.data, self.port = data, port
        self.process: subprocess.Popen[str] | None = None
        self.first_words = ""

    def launch(self) -> subprocess.Popen[str]:
        # Settings take a process that pytest started for a test of their own.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        env = {
            **inherited,
            "GPUCLOUD_DATA": str(self.data),
            "PORT": str(self.port),
            "LAB_SPEED": "200",
        }
        env.pop("DATABASE_URL", None)
        env.pop("REDIS_URL", None)
        command = [sys.executable, "-m", "gpucloud.supervisor"]
        return subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def start(self) -> str:
        """Start it and return what it said up to the accounts."""
        self.process = self.launch()
        assert self.process.stdout
        said = ""
        for text in self.process.stdout:
            said += text
            if "Ctrl-C stops" in text:
                return said
        raise AssertionError(f"The demo did not start:\n{said}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def pid(self, name: str) -> int | None:
        try:
            return int((self.data / "run" / f"{name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def get(self, path: str, token: str = "") -> tuple[int, bytes]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()

    def alive(self) -> bool:
        try:
            return self.get("/livez")[0] == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    demo = Demo(tmp_path_factory.mktemp("demo").resolve(), port)
    demo.first_words = demo.start()
    yield demo
    if demo.process and demo.process.poll() is None:
        demo.stop()
    end_leftovers(demo.data)


def wait_for(condition: Callable[[], object], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def listening_addresses(pids: set[int]) -> set[str]:
    """Local addresses, in hexadecimal, on which these processes listen."""
    inodes = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(handle) if handle.is_symlink() else ""
            if found := re.fullmatch(r"socket:\[(\d+)\]", target):
                inodes.add(found[1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == LISTEN and fields[9] in inodes:
                addresses.add(fields[1].split(":")[0])
    return addresses


def test_it_says_where_it_is_and_who_may_come_in(demo: Demo):
    assert f"Ready: http://127.0.0.1:{demo.port} " in demo.first_words
    password = (demo.data / "demo-password").read_text().strip()
    for name in ("admin", "support", "auditor", "owner", "owner1", "owner2", password):
        assert name in demo.first_words
    for name in ("demo-password", "demo-token", "doors.json", "keys/encryption.key"):
        assert stat.S_IMODE((demo.data / name).stat().st_mode) == 0o600


def test_every_process_has_a_pid_file_and_a_beat(demo: Demo):
    assert {path.stem for path in (demo.data / "run").glob("*.pid")} == NAMES
    assert {path.stem for path in (demo.data / "run").glob("*.beat")} == NAMES


def test_only_127_0_0_1_listens(demo: Demo):
    assert listening_addresses({*leftovers(demo.data), demo.process.pid}) == {"0100007F"}


def test_the_token_of_the_demo_opens_rest_to_the_rack(demo: Demo):
    token = (demo.data / "demo-token").read_text().strip()
    status, body = demo.get("/api/v1/servers/", token)
    assert status == 200
    names = {server["name"] for server in json.loads(body)["results"]}
    assert names >= {*(f"bare-metal-{n}" for n in range(1, 5)), *(f"dgx-0{n}" for n in range(1, 5))}


def test_a_second_start_on_the_same_data_is_refused(demo: Demo):
    second = demo.launch()
    said, _ = second.communicate(timeout=20)
    assert second.returncode == 1
    assert "already runs on" in said
    assert demo.alive()


def test_every_process_comes_back_after_kill_9(demo: Demo):
    names = NAMES - {"supervisor"}
    wait_for(lambda: all(demo.pid(name) for name in names))
    before = {name: demo.pid(name) for name in names}
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(demo.pid(name) not in (None, old) for name, old in before.items()))
    wait_for(lambda: all((demo.data / f"run/{name}.beat").exists() for name in NAMES))
    wait_for(demo.alive)


def test_a_killed_supervisor_is_followed_by_a_clean_and_quick_start(demo: Demo):
    left = set(leftovers(demo.data))
    demo.process.kill()
    demo.process.communicate()
    doors = read_doors(demo.data)
    said = demo.start()
    assert not left & set(leftovers(demo.data))
    assert read_doors(demo.data) == doors
    seconds = re.search(r"after ([0-9.]+) s", said)
    assert seconds
    assert float(seconds[1]) < 10


def test_a_stop_leaves_no_process(demo: Demo):
    assert demo.stop(signal.SIGINT) == 0
    assert leftovers(demo.data) == {}
    assert list((demo.data / "run").glob("*.pid")) == []
