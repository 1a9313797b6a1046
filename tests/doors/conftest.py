"""A server with an operation under way, and the door on a port of its own."""

from __future__ import annotations

import asyncio
import socket
import ssl

import aiohttp
import pytest

from gpucloud.engine import steps
from inventory.models import Drive, Interface, Server
from provisioning.door.certificates import ca_pem, server_context
from provisioning.door.server import serve
from provisioning.models import Operation

UUID = "4c4c4544-0042-4d10-8031-b1c04f4d0001"
MAC = "52:54:00:10:01:01"


@pytest.fixture(autouse=True)
def door_url(settings, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings.DOOR_CERTIFICATES = tmp_path / "keys"
    settings.AGENT_URL = settings.BMC_URL = f"https://127.0.0.1:{port}"
    return settings.AGENT_URL


@pytest.fixture
def make_operation():
    def make(name="bare-metal-1", uuid=UUID, mac=MAC, drives=("S1", "S2"), kind="wipe"):
        server = Server.objects.create(name=name, system_uuid=uuid)
        Interface.objects.create(server=server, name="nic1", mac=mac)
        for serial in drives:
            Drive.objects.create(server=server, serial=serial, name=f"disk-{serial}")
        operation = Operation.objects.create(kind=kind, server=server)
        steps.begin("operation", operation.uid, [kind])
        return operation

    return make


class OpenDoor:
    def __init__(self, url):
        self.url = url
        self.session = None

    def ask(self, method, path, token="", **more):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= more.pop("headers", {})
        return self.session.request(method, self.url + path, headers=headers, **more)

    async def call(self, method, path, token="", **more):
        async with self.ask(method, path, token, **more) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def door(door_url):
    made = OpenDoor(door_url)
    task = asyncio.create_task(
        serve("127.0.0.1", int(door_url.rpartition(":")[2]), server_context())
    )
    tls = ssl.create_default_context(cadata=ca_pem())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as made.session:
        for _ in range(100):
            try:
                await made.call("GET", "/agent/v1/plan")
                break
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)
        yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
