"""Stub BMCs over TLS, as few lines of Redfish as the sweep needs."""

from __future__ import annotations

import asyncio
import hashlib
import itertools

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gpucloud.lab.tls import device_context

PATH = "/redfish/v1/Systems/1"


class StubBmc:
    """`power`, `health` and `refuse` say what it answers; `log` what it was asked."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.power, self.health = "On", "OK"
        self.password = "right"
        self.answer = None
        self.sessions, self.log = {}, []
        self.sessions_known = True
        self.in_flight = self.most_in_flight = 0
        self.delay = 0.0
        self._numbers = itertools.count(1)

    async def start(self):
        app = web.Application()
        app.router.add_post("/redfish/v1/SessionService/Sessions", self._log_in)
        app.router.add_delete("/redfish/v1/SessionService/Sessions/{id}", self._log_out)
        app.router.add_get("/redfish/v1/Systems", self._systems)
        app.router.add_get(PATH, self._system)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        pem = self.folder / f"{self.name}.pem"
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=device_context(pem, self.name))
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.root = f"https://127.0.0.1:{port}"
        self.address = self.root + PATH
        certificate = x509.load_pem_x509_certificate(pem.read_bytes())
        self.fingerprint = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()

    async def stop(self):
        await self._runner.cleanup()

    def gets(self):
        return [entry for entry in self.log if entry.startswith("GET")]

    async def _log_in(self, request):
        self.log.append("login")
        if not self.sessions_known:
            return web.Response(status=404)
        if (await request.json())["Password"] != self.password:
            return web.Response(status=401)
        number = str(next(self._numbers))
        self.sessions[f"token-{number}"] = number
        where = f"/redfish/v1/SessionService/Sessions/{number}"
        return web.json_response(
            {}, status=201, headers={"X-Auth-Token": f"token-{number}", "Location": where}
        )

    async def _log_out(self, request):
        self.log.append("logout")
        self.sessions = {k: v for k, v in self.sessions.items() if v != request.match_info["id"]}
        return web.Response(status=204)

    def _known(self, request):
        if "Authorization" in request.headers:
            return not self.sessions_known
        return request.headers.get("X-Auth-Token") in self.sessions

    async def _systems(self, request):
        self.log.append("GET Systems")
        members = [{"@odata.id": PATH}, {"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"}]
        return web.json_response({"Members": members})

    async def _system(self, request):
        self.log.append("GET System")
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.in_flight -= 1
        if not self._known(request):
            return web.Response(status=401)
        if self.answer is not None:
            return self.answer()
        return web.json_response({"PowerState": self.power, "Status": {"Health": self.health}})


@pytest.fixture
async def make_bmc(tmp_path):
    made = []

    async def make(name="bmc-1"):
        bmc = StubBmc(tmp_path, name)
        await bmc.start()
        made.append(bmc)
        return bmc

    yield make
    for bmc in made:
        await bmc.stop()
