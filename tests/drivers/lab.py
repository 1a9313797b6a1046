"""The lab's hardware as a process of its own, with a rack of two servers, for contract tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

RACK = Path(__file__).parents[2] / "gpucloud/lab/rack.json"
SERVERS = ("bare-metal-2", "dgx-01")


class LabProcess:
    """Started by the constructor, ready when it returns; `faults` and `acts` are the lab's own."""

    def __init__(self, folder):
        self.folder = folder
        rack = json.loads(RACK.read_text())
        rack["servers"] = [one for one in rack["servers"] if one["name"] in SERVERS]
        (folder / "rack.json").write_text(json.dumps(rack))
        self._environment = {
            **os.environ,
            "GPUCLOUD_DATA": str(folder),
            "LAB_SPEED": "500",
            "LAB_RACK": str(folder / "rack.json"),
        }
        command = [sys.executable, "-m", "gpucloud.lab.setup"]
        subprocess.run(command, env=self._environment, cwd=RACK.parents[2], check=True)
        self.rack = {one["name"]: one for one in rack["servers"]}
        self.doors = json.loads((folder / "doors.json").read_text())
        self.credentials = json.loads((folder / "lab/credentials.json").read_text())
        command = [sys.executable, "-m", "gpucloud.lab.hardware"]
        self._process = subprocess.Popen(command, env=self._environment, cwd=RACK.parents[2])
        self._wait()

    def _wait(self):
        until = time.monotonic() + 20
        while True:
            try:
                self.ask("GET", "/servers")
                return
            except OSError:
                if time.monotonic() > until or self._process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.05)

    def ask(self, verb, path, body=None):
        token = (self.folder / "lab/token").read_text().strip()
        request = urllib.request.Request(
            self.doors["lab"] + path,
            method=verb,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def faults(self, server, **values):
        self.ask("PUT", f"/servers/{server}/faults", values)

    def acts(self, actor, verb):
        lines = (self.folder / "lab/acts/hardware.jsonl").read_text().splitlines()
        acts = [json.loads(line) for line in lines]
        return [act for act in acts if act["actor"] == actor and act["verb"] == verb]

    def close(self):
        self._process.terminate()
        self._process.wait(10)
