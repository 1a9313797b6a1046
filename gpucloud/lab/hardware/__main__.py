"""The hardware process: BMCs, machines, switch, images and the lab's door in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

from aiohttp import web

from gpucloud.lab import place
from gpucloud.lab.hardware.bmc.bmc import Bmc
from gpucloud.lab.hardware.bmc.service import build_service
from gpucloud.lab.hardware.door import build_door
from gpucloud.lab.hardware.machine import Machine
from gpucloud.lab.hardware.switch import build_app
from gpucloud.lab.hardware.world import World
from gpucloud.lab.tls import device_context

NAME = "lab-hardware"
HOST = "127.0.0.1"
CLOSE_SECONDS = 1.0


class Process:
    """Everything that listens and runs, from start to stop."""

    def __init__(self) -> None:
        self.world = World(place.lab_dir(), place.doors(), place.speed())
        self.machines = {
            name: Machine(server, self.world) for name, server in self.world.servers.items()
        }
        self.bmcs = {
            place.port_of(self.world.doors[f"bmc-{name}"]): Bmc(machine)
            for name, machine in self.machines.items()
        }
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        await self._serve_bmcs()
        await self._serve_switches()
        token = (self.world.lab / "token").read_text().strip()
        await self._serve_plain("lab", build_door(self.world, self.machines, token))
        images = web.Application()
        images.router.add_static("/", self.world.lab / "images")
        await self._serve_plain("images", images)
        for machine in self.machines.values():
            machine.start()

    async def stop(self) -> None:
        await asyncio.gather(*(machine.stop() for machine in self.machines.values()))
        await asyncio.gather(*(bmc.events.close() for bmc in self.bmcs.values()))
        for runner in self._runners:
            await runner.cleanup()
        await self.world.close()

    async def _serve_bmcs(self) -> None:
        runner = await self._runner(build_service(self.bmcs))
        for port, bmc in self.bmcs.items():
            name = bmc.server.name
            context = device_context(self.world.folder / "tls" / f"bmc-{name}.pem", f"bmc-{name}")
            await web.TCPSite(runner, HOST, port, ssl_context=context).start()

    async def _serve_switches(self) -> None:
        for name, switch in self.world.switches.items():
            login = self.world.credentials["switch"][name]
            runner = await self._runner(build_app(switch, login["username"], login["password"]))
            door = f"switch-{name}"
            context = device_context(self.world.folder / "tls" / f"{door}.pem", name)
            port = place.port_of(self.world.doors[door])
            await web.TCPSite(runner, HOST, port, ssl_context=context).start()

    async def _serve_plain(self, door: str, app: web.Application) -> None:
        runner = await self._runner(app)
        await web.TCPSite(runner, HOST, place.port_of(self.world.doors[door])).start()

    async def _runner(self, app: web.Application) -> web.AppRunner:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        self._runners.append(runner)
        return runner


async def run() -> None:
    process = Process()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await process.start()
    place.write_pid(NAME)
    beat = asyncio.create_task(place.beat(NAME))
    logging.info("the hardware lab runs: %d servers", len(process.machines))
    await ended.wait()
    beat.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await beat
    await process.stop()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(run())


if __name__ == "__main__":
    main()
