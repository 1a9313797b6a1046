"""A hardware lab inside a test: real doors, a stubbed Ironic and tenant API, time run fast."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import Path

import aiohttp
from aiohttp import web

from gpucloud.lab import acts, place, setup
from gpucloud.lab.hardware.__main__ import Process

SPEED = "1000"
TOKEN = "abcdef.0123456789abcdef"
BEARER = "kubelet-bearer"
VIP = "192.168.100.2:8443"
SERVER = "bare-metal-1"
SECONDS = 20.0


class Ironic:
    """Ironic's door: hands out one job per MAC and keeps what the ramdisk says."""

    def __init__(self, endpoints):
        self.jobs, self.beats, self.results, self.without_lease = {}, [], [], set()
        self.endpoints = endpoints

    def application(self):
        app = web.Application()
        app.router.add_get("/dhcp", self.dhcp)
        app.router.add_post("/v1/lookup", self.lookup)
        app.router.add_post("/v1/heartbeat", self.heartbeat)
        app.router.add_post("/v1/result", self.result)
        app.router.add_get("/endpoints", self.list_endpoints)
        return app

    async def dhcp(self, request):
        if request.query["mac"] in self.without_lease:
            return web.json_response({}, status=404)
        return web.json_response({"ip": "10.10.0.11/22", "gateway": "10.10.0.1", "dns": []})

    async def lookup(self, request):
        job = self.jobs.get((await request.json())["mac"])
        if job is None:
            return web.json_response({}, status=404)
        return web.json_response({"node": "node-1", "job": job})

    async def heartbeat(self, request):
        self.beats.append(await request.json())
        return web.Response(status=204)

    async def result(self, request):
        self.results.append(await request.json())
        return web.Response(status=204)

    async def list_endpoints(self, request):
        return web.json_response(self.endpoints)


class TenantApi:
    """As much of a tenant's Kubernetes API as a kubelet touches."""

    def __init__(self):
        self.tokens, self.nodes = {TOKEN}, {}

    def application(self):
        app = web.Application()
        app.router.add_get("/node/join", self.join)
        app.router.add_post("/api/v1/nodes", self.create)
        app.router.add_patch("/api/v1/nodes/{name}", self.patch)
        app.router.add_patch("/api/v1/nodes/{name}/status", self.patch)
        return app

    async def join(self, request):
        if request.query.get("token") not in self.tokens:
            return web.Response(status=403)
        return web.Response(text=f"#!/bin/sh\n# kubelet-token: {BEARER}\n")

    async def create(self, request):
        assert request.headers["Authorization"] == f"Bearer {BEARER}"
        node = await request.json()
        name = node["metadata"]["name"]
        if name in self.nodes:
            return web.json_response({}, status=409)
        self.nodes[name] = node
        return web.json_response(node, status=201)

    async def patch(self, request):
        node = self.nodes[request.match_info["name"]]
        body = await request.json()
        node["status"].update(body.get("status", {}))
        node["metadata"]["labels"].update(body.get("metadata", {}).get("labels", {}))
        return web.json_response(node)

    def is_ready(self, name):
        node = self.nodes.get(name, {"status": {"conditions": []}})
        return any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in node["status"]["conditions"]
        )


class Rig:
    """The running lab and the words tests speak to it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.doors = place.read_json(data / "doors.json")
        self.api = TenantApi()
        self.ironic = Ironic([])
        self.process: Process | None = None
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        api_port = await self._serve(self.api.application(), 0)
        self.ironic.endpoints.append(
            {
                "cluster": "one",
                "vip": VIP,
                "vlan": 100,
                "shared_endpoint": "knode-1",
                "url": f"http://127.0.0.1:{api_port}",
            }
        )
        await self._serve(self.ironic.application(), place.port_of(self.doors["ironic"]))
        await self.start_lab()

    async def start_lab(self) -> None:
        self.process = Process()
        await self.process.start()

    async def stop_lab(self) -> None:
        if self.process is not None:
            await self.process.stop()
            self.process = None

    async def stop(self) -> None:
        await self.stop_lab()
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, app: web.Application, port: int) -> int:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        return runner.addresses[0][1]

    # What a test does.

    @property
    def machine(self):
        return self.process.machines[SERVER]

    @property
    def server(self):
        return self.machine.server

    def bmc_login(self, server=SERVER):
        login = place.read_json(self.data / "lab/credentials.json")["bmc"][server]
        return login["username"], login["password"]

    async def door(self, method, path, body=None):
        token = (self.data / "lab/token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        url = self.doors["lab"] + path
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, url, json=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json()

    async def fault(self, **faults):
        status, answer = await self.door("PUT", f"/servers/{SERVER}/faults", faults)
        assert status == 200, answer

    async def bmc(self, method, path, body=None, server=SERVER, login=None, headers=None):
        username, password = login or self.bmc_login(server)
        headers = {
            "Authorization": aiohttp.encode_basic_auth(username, password),
            **(headers or {}),
        }
        url = self.doors[f"bmc-{server}"] + "/redfish/v1" + path
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, url, json=body, headers=headers, ssl=False) as answer,
        ):
            text = await answer.text()
            return answer.status, json.loads(text) if text else {}

    async def reset(self, kind):
        path = "/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"
        status, _ = await self.bmc("POST", path, {"ResetType": kind})
        assert status == 204

    async def power_off(self):
        await self.reset("ForceOff")
        await self.until(lambda: not self.machine.is_on)

    async def boot(self, target):
        """Off, override for one boot, on."""
        await self.power_off()
        boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}
        status, _ = await self.bmc("PATCH", "/Systems/System.Embedded.1", {"Boot": boot})
        assert status == 200
        await self.reset("On")
        await self.until(lambda: self.machine.is_on)

    def move(self, vlan, port="swp1"):
        """Put a port into a VLAN at the silicon, as an applied revision would."""
        switch = self.process.world.switches["leaf-1"]
        switch._program(port, {"access": vlan, "untagged": None, "vlans": []})

    def move_to_tenant(self):
        self.move(100, "swp1")
        self.move(100, "swp2")
        switch = self.process.world.switches["leaf-1"]
        switch._program("swp48", {"access": None, "untagged": None, "vlans": [100]})

    async def until(self, true, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, self.acts()[-8:]
            await asyncio.sleep(0.01)

    def acts(self, verb=None):
        found = acts.read(self.data / "lab/acts/hardware.jsonl")
        return [act for act in found if verb in (None, act["verb"])]

    # Jobs.

    def image(self):
        entry = place.read_json(self.data / "lab/rack.json")["images"][0]
        path = self.data / "lab/images" / entry["file"]
        return {
            "url": f"{self.doors['images']}/{entry['file']}",
            "checksum": hashlib.sha256(path.read_bytes()).hexdigest(),
            "checksumType": "sha256",
            "format": "qcow2",
        }

    def deploy_job(self, **changes):
        return {
            "kind": "deploy",
            "image": {**self.image(), **changes},
            "user_data": USER_DATA,
            "network_data": NETWORK_DATA,
            "meta_data": {"uuid": "claim-1"},
        }

    async def install(self, **changes):
        """Boot the ramdisk with a deploy job and wait for what it reports."""
        self.ironic.jobs["52:54:00:10:01:01"] = self.deploy_job(**changes)
        before = len(self.ironic.results)
        await self.boot("Pxe")
        await self.until(lambda: len(self.ironic.results) > before)
        return self.ironic.results[-1]


USER_DATA = f"""#cloud-config
hostname: one-cpu-1
write_files:
- path: /etc/default/kubelet
  content: |
    KUBELET_EXTRA_ARGS=--node-labels=pool=cpu,team=a
runcmd:
- curl -fsSLk "https://{VIP}/node/join?token={TOKEN}" | sh -
"""

NETWORK_DATA = {
    "links": [{"id": "eno1", "type": "phy", "ethernet_mac_address": "52:54:00:10:01:01"}],
    "networks": [
        {
            "id": "tenant",
            "type": "ipv4",
            "link": "eno1",
            "ip_address": "192.168.100.11",
            "netmask": "255.255.255.0",
        }
    ],
    "services": [],
}


def make_data(tmp_path, monkeypatch) -> Path:
    data = tmp_path / "data"
    monkeypatch.setenv("GPUCLOUD_DATA", str(data))
    monkeypatch.setenv("LAB_SPEED", SPEED)
    setup.main()
    return data
