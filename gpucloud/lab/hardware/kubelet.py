"""The kubelet of a tenant's OS: bootstrap, Node object, readiness, heartbeats."""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import aiohttp

from gpucloud.lab.hardware.cloudinit import Wishes
from gpucloud.lab.hardware.disks import Disk
from gpucloud.lab.hardware.machine import Machine

Json = dict[str, Any]

READY_SECONDS = 10.0
HEARTBEAT_WALL_SECONDS = 10.0
RETRY_SECONDS = 5.0
SHORTEST_RETRY = 0.5
BEARER = re.compile(r"^# kubelet-token:\s*(\S+)\s*$", re.MULTILINE)
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class Refused(Exception):
    """The cluster said no; asking again changes nothing."""


class Unreachable(Exception):
    """Nobody answered; asking again may help."""


class Kubelet:
    """Joins the cluster named in the user data and keeps the Node alive."""

    def __init__(
        self, machine: Machine, disk: Disk, wishes: Wishes, address: str, header: Json
    ) -> None:
        self.machine = machine
        self.world = machine.world
        self.disk = disk
        self.wishes = wishes
        self.address = address
        self.header = header
        self.name = wishes.hostname or machine.server.name
        self.version = str(self.world.rack["kubernetes"]["tenant_version"])
        self._credentials: Json = disk.os_files().get("kubelet") or {}
        self._boot_id = str(uuid.uuid4())
        self._ready = False
        self._ready_since = ""
        self._url = ""

    async def run(self) -> None:
        if not self.wishes.vip:
            self.machine.detail = "running, no cluster to join"
            return
        try:
            if not self._credentials:
                await self._until_reached(self._bootstrap)
            await self._until_reached(self._register)
            self.machine.detail = f"node {self.name}"
            await self.world.wait(READY_SECONDS)
            self._ready, self._ready_since = True, _time()
            await self._until_reached(self._renew)
            while True:
                await asyncio.sleep(HEARTBEAT_WALL_SECONDS)
                try:
                    await self._renew()
                except Unreachable:
                    continue
        except Refused as refused:
            self.machine.detail = f"not in the cluster: {refused}"

    async def _until_reached(self, step: Any) -> None:
        while True:
            try:
                await step()
                return
            except Unreachable as reason:
                self.machine.detail = f"waiting for {self.wishes.vip}: {reason}"
                await self.world.wait(RETRY_SECONDS, at_least=SHORTEST_RETRY)

    async def _bootstrap(self) -> None:
        """What the join script of kubeadm does: trade the bootstrap token for a bearer."""
        token = self.wishes.token
        if self.machine.server.faults.get("refuse_join"):
            token = token.partition(".")[0] + ".0000000000000000"
        await self._resolve()
        status, text = await self._call(
            "GET", "/node/join", params={"token": token}, authorised=False
        )
        found = BEARER.search(text) if status == 200 else None
        if not found:
            said = f"the join was answered with {status}"
            self.machine.act("join", None, {"node": self.name, "refused": status})
            raise Refused(said)
        self._credentials = {"bearer": found[1], "vip": self.wishes.vip}
        self.disk.write_os_files({**self.disk.os_files(), "kubelet": self._credentials})

    async def _register(self) -> None:
        await self._resolve()
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": self._labels()},
            "spec": {},
            "status": self._status(),
        }
        status, text = await self._call("POST", "/api/v1/nodes", json=node)
        if status == 409:
            labels = {"metadata": {"labels": self._labels()}}
            path = f"/api/v1/nodes/{self.name}"
            status, text = await self._call("PATCH", path, json=labels, headers=MERGE_PATCH)
        if status not in (200, 201):
            self.machine.act("join", None, {"node": self.name, "refused": status})
            raise Refused(f"the Node was answered with {status}: {text[:200]}")
        # A Node's status is only taken through its own door.
        await self._renew()
        joined = {"node": self.name, "vip": self.wishes.vip, "address": self.address}
        self.machine.act("join", None, joined)

    async def _renew(self) -> None:
        await self._resolve()
        path = f"/api/v1/nodes/{self.name}/status"
        body = {"status": self._status()}
        status, text = await self._call("PATCH", path, json=body, headers=MERGE_PATCH)
        if status == 409 or status >= 500:
            raise Unreachable(f"status answered with {status}")
        if status != 200:
            raise Refused(f"the Node's status was answered with {status}: {text[:200]}")

    async def _resolve(self) -> None:
        """Find who listens on the VIP, and whether frames of its VLAN travel between us."""
        try:
            async with self.world.http.get(f"{self.world.doors['ironic']}/endpoints") as answer:
                endpoints = await answer.json() if answer.status == 200 else []
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unreachable("no endpoint is known") from error
        for endpoint in endpoints:
            if endpoint.get("vip") == self.wishes.vip and self.world.reaches(
                self.machine.server, int(endpoint["vlan"]), str(endpoint["shared_endpoint"])
            ):
                self._url = str(endpoint["url"])
                return
        raise Unreachable("no route to host")

    async def _call(
        self, method: str, path: str, *, authorised: bool = True, **options: Any
    ) -> tuple[int, str]:
        headers = dict(options.pop("headers", {}))
        if authorised:
            headers["Authorization"] = f"Bearer {self._credentials['bearer']}"
        url = self._url.rstrip("/") + path
        try:
            async with self.world.http.request(method, url, headers=headers, **options) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    def _labels(self) -> Json:
        return {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **self.wishes.labels,
        }

    def _status(self) -> Json:
        facts = self.machine.server.facts
        capacity = {
            "cpu": str(sum(processor.threads for processor in facts.processors)),
            "memory": f"{facts.memory_gib}Gi",
            "pods": "110",
        }
        if facts.gpus:
            capacity["nvidia.com/gpu"] = str(len(facts.gpus))
        return {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "conditions": [self._condition()],
            "nodeInfo": {
                "systemUUID": facts.uuid,
                "machineID": facts.uuid.replace("-", ""),
                "bootID": self._boot_id,
                "osImage": str(self.header.get("os", "Linux")),
                "kernelVersion": str(self.header.get("kernel", "unknown")),
                "kubeletVersion": self.version,
                "kubeProxyVersion": "",
                "containerRuntimeVersion": "containerd://2.1.4",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }

    def _condition(self) -> Json:
        self._ready_since = self._ready_since or _time()
        ready = {
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        not_ready = {
            "reason": "KubeletNotReady",
            "message": "container runtime network not ready",
        }
        return {
            "type": "Ready",
            "status": "True" if self._ready else "False",
            "lastHeartbeatTime": _time(),
            "lastTransitionTime": self._ready_since,
            **(ready if self._ready else not_ready),
        }


def _time() -> str:
    """Kubernetes' own format: whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
