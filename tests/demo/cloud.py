"""A running demo as a test sees it: REST from outside, the lab's door and its act logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpucloud.lab.acts import read as read_acts

ROOT = Path(__file__).resolve().parent.parent.parent
PROVISIONING, QUARANTINE, RACK = 10, 4000, 100


def _content(answer: Any) -> Any:
    """JSON as data, any other document as text."""
    text = answer.read()
    if "json" in answer.headers.get("Content-Type", ""):
        return json.loads(text) if text else None
    return text.decode()


class Cloud:
    """One data folder with the demo running on it."""

    def __init__(self, data: Path, port: int, speed: int = 200, **environment: str) -> None:
        self.data, self.port, self.speed, self.environment = data, port, speed, environment
        self.process: subprocess.Popen[str] | None = None

    # -- the demo itself

    def start(self) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        env = {
            **inherited,
            "GPUCLOUD_DATA": str(self.data),
            "PORT": str(self.port),
            "LAB_SPEED": str(self.speed),
            **self.environment,
        }
        for name in ("DATABASE_URL", "REDIS_URL", "GPUCLOUD_TESTING"):
            if name not in self.environment:
                env.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpucloud.supervisor"],
            cwd=ROOT,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout
        said = ""
        for line in self.process.stdout:
            said += line
            if "Ctrl-C stops" in line:
                return
        raise AssertionError(f"The demo did not start:\n{said}")

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=60)

    def kill(self, name: str) -> None:
        """SIGKILL one process of the demo by its pid file."""
        os.kill(int((self.data / "run" / f"{name}.pid").read_text()), signal.SIGKILL)

    # -- REST

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        token = token or (self.data / "demo-token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, _content(answer)
        except urllib.error.HTTPError as error:
            return error.code, _content(error)

    def get(self, path: str) -> Any:
        status, found = self.call("GET", path)
        assert status == 200, (path, status, found)
        return found

    def listed(self, path: str) -> list[Any]:
        return list(self.get(path)["results"])

    # -- the lab

    def lab(self, method: str, path: str, body: Any = None) -> Any:
        doors = json.loads((self.data / "doors.json").read_text())
        token = (self.data / "lab" / "token").read_text().strip()
        request = urllib.request.Request(
            doors["lab"] + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def faults(self, server: str, **faults: Any) -> None:
        self.lab("PUT", f"/servers/{server}/faults", faults)

    def machine(self, server: str) -> Any:
        return self.lab("GET", f"/servers/{server}")

    def acts(self, **match: Any) -> list[dict[str, Any]]:
        """Lines of the hardware's act log, oldest first, whose fields equal `match`."""
        lines = read_acts(self.data / "lab" / "acts" / "hardware.jsonl")
        return [one for one in lines if all(one.get(k) == v for k, v in match.items())]

    def kubectl(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        config = kubeconfig or self.data / "lab" / "kube" / "kubeconfig"
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(config), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def host(self, name: str) -> Any:
        return json.loads(self.kubectl("get", "bmh", "-n", "default", name, "-o", "json"))

    # -- waiting for what the cloud says

    def until(self, what: str, look: Callable[[], Any], seconds: float = 120) -> Any:
        """Look until it is true; the message of a failure says what was seen last."""
        ends = time.monotonic() + seconds
        seen: Any = None
        while time.monotonic() < ends:
            seen = look()
            if seen:
                return seen
            time.sleep(0.3)
        raise AssertionError(f"{what}: not within {seconds} s. {self.story()}")

    def story(self) -> str:
        """Claims and their current steps, for the message of a failed wait."""
        lines = []
        for claim in self.listed("/node-claims/"):
            lines.append(
                f"{claim['name']} {claim['state']} {claim.get('code')} {claim.get('problem')}"
            )
        for operation in self.listed("/operations/")[:8]:
            for step in self.get(f"/operations/{operation['uid']}/")["steps"]:
                if step["state"] not in ("todo", "done"):
                    said = step.get("sentence")
                    lines.append(
                        f"  {operation['operation']} {step['name']} {step['state']}: {said}"
                    )
        return "\n".join(lines)

    def servers_available(self, *names: str) -> bool:
        return all(self.get(f"/servers/{name}/")["state"] == "available" for name in names)

    def claims(self, tenant: str, cluster: str) -> list[Any]:
        found = self.listed(f"/node-claims/?tenant={tenant}&cluster={cluster}")
        return [one for one in found if one["state"] != "gone"]

    def create(self, tenant: str, name: str, pools: dict[str, str], **parameters: str) -> Any:
        """Create a cluster of static pools of one server each: {pool name: node type}."""
        status, made = self.call(
            "POST",
            "/clusters/",
            {
                "tenant": tenant,
                "name": name,
                "template": "tenant-virtual-cluster",
                "parameters": parameters,
                "pools": [
                    {
                        "name": pool,
                        "kind": "static",
                        "node_type": node_type,
                        "quantity": 1,
                        "labels": {"workload": pool},
                    }
                    for pool, node_type in pools.items()
                ],
            },
        )
        assert status in (201, 202), made
        return made

    def ready(self, tenant: str, cluster: str, count: int, seconds: float = 180) -> list[Any]:
        """Wait until the cluster has `count` claims and all of them are ready; return them."""

        def look() -> list[Any]:
            claims = self.claims(tenant, cluster)
            failed = [one for one in claims if one["state"] == "failed"]
            assert not failed, (failed, self.story())
            ready = [one for one in claims if one["state"] == "ready"]
            return ready if len(ready) == count else []

        return list(self.until(f"{count} ready claims of {tenant}/{cluster}", look, seconds))

    def gone(self, tenant: str, cluster: str, seconds: float = 240) -> None:
        status, answer = self.call("DELETE", f"/clusters/{tenant}/{cluster}/")
        assert status == 202, answer
        self.until(
            f"{tenant}/{cluster} gone",
            lambda: self.call("GET", f"/clusters/{tenant}/{cluster}/")[0] == 404,
            seconds,
        )
