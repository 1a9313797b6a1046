"""A BMC that misbehaves on request: a small tree of resources, and answers to give instead."""

from __future__ import annotations

import asyncio
import copy

from aiohttp import web

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
SLOT = f"{SYSTEM}/VirtualMedia/Cd"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INSERT = f"{SLOT}/Actions/VirtualMedia.InsertMedia"
EJECT = f"{SLOT}/Actions/VirtualMedia.EjectMedia"
SESSIONS = f"{ROOT}/SessionService/Sessions"

TREE = {
    ROOT: {
        "Id": "Root",
        "Name": "Root",
        "RedfishVersion": "1.18.0",
        "Systems": {"@odata.id": f"{ROOT}/Systems"},
        "Links": {"Sessions": {"@odata.id": SESSIONS}},
    },
    f"{ROOT}/Systems": {"Name": "Systems", "Members": [{"@odata.id": SYSTEM}]},
    SYSTEM: {
        "@odata.id": SYSTEM,
        "Id": "1",
        "Name": "System",
        "Manufacturer": "ACME",
        "SerialNumber": "A1",
        "PowerState": "Off",
        "Boot": {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"},
        "Actions": {"#ComputerSystem.Reset": {"target": RESET}},
        "VirtualMedia": {"@odata.id": f"{SYSTEM}/VirtualMedia"},
    },
    f"{SYSTEM}/VirtualMedia": {"Name": "Media", "Members": [{"@odata.id": SLOT}]},
    SLOT: {
        "@odata.id": SLOT,
        "Id": "Cd",
        "Name": "Cd",
        "MediaTypes": ["CD"],
        "Inserted": False,
        "Image": None,
        "Actions": {
            "#VirtualMedia.InsertMedia": {"target": INSERT},
            "#VirtualMedia.EjectMedia": {"target": EJECT},
        },
    },
}


class StubBmc:
    """`answers[(method, path)]` is a list of web.Response makers, or None for the honest answer."""

    def __init__(self):
        self.tree = copy.deepcopy(TREE)
        self.answers = {}
        self.heard = []
        self.delay = {}
        self.drips = False
        self.sessions = set()
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self._serve)

    def sent(self, method, path=""):
        return [one for one in self.heard if one[0] == method and one[1].endswith(path)]

    def say(self, method, path, *answers):
        self.answers[method, path] = list(answers)

    async def _serve(self, request):
        path = request.path.rstrip("/")
        body = await request.json() if request.can_read_body else None
        self.heard.append((request.method, path, body, dict(request.headers)))
        queue = self.answers.get((request.method, path))
        answer = queue.pop(0) if queue else None
        if self.drips:
            return await self._drip(request)
        if (request.method, path) in self.delay:
            await asyncio.sleep(self.delay[request.method, path])
        return answer() if answer else self._honest(request.method, path, body)

    async def _drip(self, request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(100):
            await answer.write(b" " * 65536)
            await asyncio.sleep(0.05)
        return answer

    def _honest(self, method, path, body):
        if method == "POST" and path == SESSIONS:
            token = f"t{len(self.heard)}"
            self.sessions.add(token)
            where = f"https://bmc.internal{SESSIONS}/{token}"
            headers = {"X-Auth-Token": token, "Location": where}
            return web.json_response({}, status=201, headers=headers)
        if method == "DELETE":
            self.sessions.discard(path.rpartition("/")[2])
            return web.Response(status=204)
        if path == RESET:
            self.tree[SYSTEM]["PowerState"] = "On" if body["ResetType"] == "On" else "Off"
        elif path == INSERT:
            self.tree[SLOT] |= {"Inserted": True, "Image": body["Image"]}
        elif path == EJECT:
            self.tree[SLOT] |= {"Inserted": False}
        elif method == "PATCH":
            self.tree[path]["Boot"] |= body["Boot"]
        elif path in self.tree:
            return web.json_response(self.tree[path], headers={"ETag": 'W/"1"'})
        else:
            return web.json_response({"error": {"code": "x.ResourceMissing"}}, status=404)
        return web.Response(status=204)
