"""Ironic's door: DHCP, lookup, heartbeat and result for ramdisks, and the node endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from gpucloud.lab.kube.metal3.ironic import Conductor

IP, GATEWAY, DNS = (
    f"metal3.vcluster.com/{name}" for name in ("ip-address", "gateway", "dns-servers")
)

Hosts = Callable[[], list[dict[str, Any]]]
Endpoints = Callable[[], Awaitable[list[dict[str, Any]]]]


class Door:
    """Answers the lab's machines. `wake` makes the operator look at a host at once."""

    def __init__(
        self, conductor: Conductor, hosts: Hosts, endpoints: Endpoints, wake: Callable[[str], None]
    ) -> None:
        self.conductor, self.hosts, self.endpoints, self.wake = conductor, hosts, endpoints, wake

    def application(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/dhcp", self.dhcp),
                web.post("/v1/lookup", self.lookup),
                web.post("/v1/heartbeat", self.heartbeat),
                web.post("/v1/result", self.result),
                web.get("/endpoints", self.list_endpoints),
            ]
        )
        return app

    async def dhcp(self, request: web.Request) -> web.Response:
        """Answer from the host's annotations only; without them the server gets no address."""
        mac = request.query.get("mac", "").lower()
        for host in self.hosts():
            if str((host.get("spec") or {}).get("bootMACAddress", "")).lower() != mac:
                continue
            notes = host["metadata"].get("annotations") or {}
            if not notes.get(IP):
                break
            dns = [one.strip() for one in notes.get(DNS, "").split(",") if one.strip()]
            return web.json_response(
                {"ip": notes[IP], "gateway": notes.get(GATEWAY, ""), "dns": dns}
            )
        return _refused(404, f"no address is kept for {mac or 'a request without mac'}")

    async def lookup(self, request: web.Request) -> web.Response:
        body = await _body(request)
        found = self.conductor.lookup(str(body.get("mac", "")), str(body.get("uuid", "")))
        if found is None:
            return _refused(404, "no node waits for this machine")
        node, work = found
        job = {"kind": work.kind, "image": {}, "user_data": "", "network_data": {}, "meta_data": {}}
        return web.json_response({"node": node.id, "job": {**job, **work.payload}})

    async def heartbeat(self, request: web.Request) -> web.Response:
        body = await _body(request)
        taken = self.conductor.heartbeat(
            str(body.get("node", "")),
            str(body.get("stage", "")),
            int(body.get("percent") or 0),
            str(body.get("message", "")),
        )
        return web.Response(status=204) if taken else _refused(409, "this node waits for nothing")

    async def result(self, request: web.Request) -> web.Response:
        body = await _body(request)
        host = self.conductor.result(
            str(body.get("node", "")),
            bool(body.get("ok")),
            str(body.get("error") or ""),
            body.get("inventory") or {},
        )
        if host is None:
            return _refused(409, "this node waits for nothing")
        self.wake(host)
        return web.Response(status=204)

    async def list_endpoints(self, request: web.Request) -> web.Response:
        return web.json_response(await self.endpoints())


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        read = await request.json()
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise web.HTTPBadRequest(text="a JSON object is wanted")
    return read


def _refused(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status)
