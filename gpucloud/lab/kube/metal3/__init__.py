"""Metal3 of the lab: the BareMetalHost operator and Ironic, driven by Redfish and ramdisks."""

from __future__ import annotations

from typing import Any

import aiohttp
from aiohttp import web

from gpucloud.lab.kube.context import Context
from gpucloud.lab.kube.metal3.controller import Operator
from gpucloud.lab.kube.metal3.door import Door
from gpucloud.lab.kube.metal3.ironic import Conductor
from gpucloud.lab.kube.metal3.nodes import Nodes
from gpucloud.lab.kube.metal3.objects import Objects
from gpucloud.lab.kube.platform import endpoints
from gpucloud.lab.kube.seed import seed
from gpucloud.lab.place import port_of

MANAGER = "baremetal-operator"


async def run(context: Context) -> None:
    """Serve Ironic's door and keep every BareMetalHost until cancelled."""
    await seed(context)

    def note(object: str, verb: str, before: Any, after: Any) -> None:
        context.acts.write("metal3", object, verb, before, after)

    # Connections are not kept: many BMCs drop idle ones without a word.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as http:
        nodes = Nodes(context.lab / "kube" / "ironic.json")
        conductor = Conductor(http, nodes, context.speed, note)
        objects = Objects(context.client(MANAGER))
        operator = Operator(objects, conductor, context.speed, note)
        door = Door(conductor, operator.known, lambda: endpoints(context), operator.wake)
        runner = web.AppRunner(door.application(), access_log=None)
        await runner.setup()
        try:
            port = port_of(context.doors["ironic"])
            await web.TCPSite(runner, "127.0.0.1", port, shutdown_timeout=1).start()
            await operator.run()
        finally:
            await runner.cleanup()
