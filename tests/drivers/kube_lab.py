"""The whole lab, hardware and Kubernetes, as processes of their own, for contract tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from gpucloud.drivers import DriverError
from inventory.drivers.bmh import Hosts
from inventory.drivers.kube import Kube
from tests.drivers.lab import RACK, LabProcess

SERVERS = ("bare-metal-1", "bare-metal-2")
NAMESPACE = "default"


class KubeLab(LabProcess):
    """Ready when the constructor returns: APIs answer, hosts are available."""

    def __init__(self, folder):
        self.folder = folder
        rack = json.loads(RACK.read_text())
        rack["servers"] = [one for one in rack["servers"] if one["name"] in SERVERS]
        (folder / "rack.json").write_text(json.dumps(rack))
        self._environment = {
            **os.environ,
            "GPUCLOUD_DATA": str(folder),
            "LAB_SPEED": "200",
            "LAB_RACK": str(folder / "rack.json"),
        }
        self.rack = {one["name"]: one for one in rack["servers"]}
        self._run("setup").wait(30)
        self.doors = json.loads((folder / "doors.json").read_text())
        self.credentials = json.loads((folder / "lab/credentials.json").read_text())
        self.kubeconfig = (folder / "lab/kube/kubeconfig").read_text()
        self._process, self._kube = self._run("hardware"), self._run("kube")
        self.kube = Kube(self.kubeconfig)
        self.hosts = Hosts(self.kube, NAMESPACE)
        try:
            self._wait()
            until(self._all_available, 40)
        except BaseException:
            self.close()
            raise

    def _run(self, module):
        command = [sys.executable, "-m", f"gpucloud.lab.{module}"]
        return subprocess.Popen(command, env=self._environment, cwd=RACK.parents[2])

    def _all_available(self):
        try:
            seen = [host.state for host in self.hosts.list({})]
        except DriverError:
            return False
        return seen == ["available"] * len(SERVERS)

    @property
    def image(self):
        return f"{self.doors['images']}/{json.loads(RACK.read_text())['images'][0]['file']}"

    def close(self):
        for process in (self._process, self._kube):
            process.terminate()
        for process in (self._process, self._kube):
            process.wait(10)


def until(look, seconds=20.0):
    """Ask again until the answer is true; return it."""
    end = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < end, f"not within {seconds} s: {look}"
        time.sleep(0.05)
    return answer


def finish(step, seconds=30.0):
    """Call a driver's step as the engine does, as often as it asks, until it is done."""
    end = time.monotonic() + seconds
    while True:
        try:
            progress = step()
        except DriverError as error:
            if error.permanent or time.monotonic() > end:
                raise
            time.sleep(0.2)
            continue
        if progress.done:
            return progress
        assert time.monotonic() < end, progress.detail
        time.sleep(min(progress.wait, 0.3))
