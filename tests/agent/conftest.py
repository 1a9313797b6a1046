"""A machine on disk, a door over https, and the agent run as the ramdisk runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent import door as stub

AGENT = Path(__file__).parents[2] / "deploy/agent"
MIB = 1 << 20
MARK = b"TENANCY one-gpu-abc12\n"


class MachineOnDisk:
    """A folder as the lab makes it for a ramdisk, with drives a tenant has written on."""

    def __init__(self, folder):
        self.folder = folder
        self.drives = []

    def add(self, name, serial, protocol="NVMe", seconds=0, **verbs):
        path = f"{name}.img"
        block = MARK.ljust(4096, b"\0")
        (self.folder / path).write_bytes(bytes(MIB // 2) + block * (MIB // 2 // 4096))
        defaults = {"sanitize": "ok", "format": "ok", "overwrite": "ok"}
        self.drives.append(
            {
                "name": name,
                "serial": serial,
                "model": "SAMSUNG MZQL2960HCJR-00A07",
                "capacity_bytes": 960197124096,
                "protocol": protocol,
                "path": path,
                "verbs": verbs or defaults,
                "seconds": seconds,
            }
        )
        self.save()

    def save(self):
        known = {
            "uuid": "4c4c4544-0042-4d10-8031-b1c04f4d0001",
            "serial": "BM01X7Q3",
            "macs": ["52:54:00:10:01:01"],
            "drives": self.drives,
            "gpus": [{"model": "NVIDIA L40S"}],
        }
        (self.folder / "machine.json").write_text(json.dumps(known))

    def bytes_of(self, name):
        return (self.folder / f"{name}.img").read_bytes()

    @property
    def is_off(self):
        return (self.folder / "poweroff").exists()


@pytest.fixture
def machine(tmp_path):
    folder = tmp_path / "machine"
    folder.mkdir()
    return MachineOnDisk(folder)


@pytest.fixture
def door(tmp_path):
    made = stub.StubDoor(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make_proxy():
    made = []

    def make(refuse=0):
        made.append(stub.StubProxy(refuse))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture
def start_agent(tmp_path, machine, door):
    """Start the agent as a subprocess, as the ramdisk does."""

    def start(proxy="", ca=None, url=None):
        config = {"door": url or door.url, "key": "once-only", "ca": ca or door.ca}
        text = "GPUCLOUD-AGENT-CONFIG:1\n" + json.dumps(config).ljust(4096)
        (tmp_path / "config").write_text(text)
        command = [sys.executable, "-m", "gpucloud_agent", "--config", str(tmp_path / "config")]
        command += ["--hardware", f"fake:{machine.folder}"]
        environment = {"PYTHONPATH": str(AGENT), "PATH": os.environ["PATH"], "https_proxy": proxy}
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    return start


@pytest.fixture
def run_agent(start_agent):
    def run(**how):
        with start_agent(**how) as process:
            _, words = process.communicate(timeout=30)
        return process.returncode, words

    return run


@pytest.fixture
def wipe(door, run_agent):
    """Run the agent with a wipe plan for these serials; returns what it reported."""

    def run(*serials, samples=32, after="poweroff", **how):
        drives = [{"serial": serial} for serial in serials]
        door.plan = {"operation": "op-1", "verb": "wipe", "drives": drives}
        door.plan |= {"readback_samples": samples, "after": after}
        code, words = run_agent(**how)
        assert code == 0, words
        (result,) = door.told("result")
        return result

    return run


@pytest.fixture
def make_other_ca(tmp_path):
    def make():
        other = tmp_path / "other"
        other.mkdir()
        return stub.make_certificate(other)

    return make
