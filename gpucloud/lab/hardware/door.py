"""The lab's own door: what every server really does, its faults, its button and drive bays."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from gpucloud.lab.hardware.faults import problem
from gpucloud.lab.hardware.machine import Machine
from gpucloud.lab.hardware.server import Server
from gpucloud.lab.hardware.world import World

Json = dict[str, Any]


def build_door(world: World, machines: Mapping[str, Machine], token: str) -> web.Application:
    door = Door(world, machines)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return _problem(401, "the bearer in lab/token is needed")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _problem(error.status, error.text or error.reason)

    app = web.Application(middlewares=[guard])
    app.router.add_get("/servers", door.list)
    app.router.add_get("/servers/{name}", door.show)
    app.router.add_get("/servers/{name}/faults", door.faults)
    app.router.add_put("/servers/{name}/faults", door.set_faults)
    app.router.add_post("/servers/{name}/power", door.power)
    app.router.add_post("/servers/{name}/drives/{drive}", door.drive)
    return app


class Door:
    def __init__(self, world: World, machines: Mapping[str, Machine]) -> None:
        self.world = world
        self.machines = machines

    async def list(self, request: web.Request) -> web.Response:
        return web.json_response([self._describe(m) for m in self.machines.values()])

    async def show(self, request: web.Request) -> web.Response:
        return web.json_response(self._describe(self._machine(request)))

    async def faults(self, request: web.Request) -> web.Response:
        return web.json_response(self._machine(request).server.memory.faults)

    async def set_faults(self, request: web.Request) -> web.Response:
        server = self._machine(request).server
        values = await _body(request)
        wrong = problem(values, server.facts)
        if wrong:
            return _problem(400, wrong)
        before, server.memory.faults = server.memory.faults, values
        server.save()
        self.world.acts.write("door", server.name, "fault", before, values)
        return web.json_response(values)

    async def power(self, request: web.Request) -> web.Response:
        state = (await _body(request)).get("state")
        if state not in ("on", "off"):
            return _problem(400, "state is 'on' or 'off'")
        machine = self._machine(request)
        machine.press("On" if state == "on" else "ForceOff", "door")
        return web.json_response(self._describe(machine), status=202)

    async def drive(self, request: web.Request) -> web.Response:
        present = (await _body(request)).get("present")
        server = self._machine(request).server
        name = request.match_info["drive"]
        if name not in {drive.name for drive in server.facts.drives}:
            return _problem(404, f"{server.name} has no bay {name!r}")
        if not isinstance(present, bool):
            return _problem(400, "present is true or false")
        pulled = server.memory.pulled_drives
        before = name not in pulled
        if before != present:
            if present:
                pulled.remove(name)
            else:
                pulled.append(name)
            server.save()
            states = {True: "present", False: "pulled"}
            item = f"{server.name}/{name}"
            self.world.acts.write("door", item, "disk", states[before], states[present])
        return web.json_response(self._describe(self._machine(request)))

    def _machine(self, request: web.Request) -> Machine:
        name = request.match_info["name"]
        if name not in self.machines:
            raise web.HTTPNotFound(text=f"there is no server {name!r}")
        return self.machines[name]

    def _describe(self, machine: Machine) -> Json:
        server = machine.server
        memory = server.memory
        return {
            "name": server.name,
            "power": memory.power.lower(),
            "phase": machine.phase.value,
            "detail": machine.detail,
            "boot_device": machine.device,
            "boot_progress": machine.progress,
            "boot_override": {"target": memory.boot_target, "enabled": memory.boot_enabled},
            "media": dict(memory.media),
            "ports": [
                {
                    "nic": nic.name,
                    "mac": nic.mac,
                    "switch": nic.switch,
                    "port": nic.port,
                    "vlan": self.world.vlan_of(nic),
                }
                for nic in server.facts.nics
            ],
            "drives": [self._describe_drive(server, name) for name in _drive_names(server)],
            "faults": memory.faults,
        }

    def _describe_drive(self, server: Server, name: str) -> Json:
        disk = next(disk for disk in server.all_disks() if disk.drive.name == name)
        found = disk.findings()
        return {
            "name": name,
            "serial": disk.drive.serial,
            "present": name not in server.memory.pulled_drives,
            "image": found.image,
            "marker": found.marker,
            "blank": found.is_blank,
        }


def _drive_names(server: Server) -> list[str]:
    return [drive.name for drive in server.facts.drives]


async def _body(request: web.Request) -> Json:
    try:
        body = await request.json()
    except ValueError as error:
        raise web.HTTPBadRequest(text="the body is not JSON") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body


def _problem(status: int, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
