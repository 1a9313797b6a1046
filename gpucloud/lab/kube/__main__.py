"""The process lab-kube: the APIs and the controllers behind them, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable

from gpucloud.lab import place
from gpucloud.lab.acts import ActLog
from gpucloud.lab.kube import keeper, metal3, platform
from gpucloud.lab.kube.clusters import Clusters
from gpucloud.lab.kube.context import Context
from gpucloud.lab.kube.seed import seed

NAME = "lab-kube"
CONTROLLERS: tuple[Callable[[Context], Awaitable[None]], ...] = (
    keeper.run,
    metal3.run,
    platform.run,
)

log = logging.getLogger(NAME)


async def main() -> None:
    data, rack = place.data_dir(), place.read_json(place.lab_dir() / "rack.json")
    place.write_pid(NAME)
    acts = ActLog(place.lab_dir() / "acts" / "kube.jsonl")
    clusters = Clusters(data, rack, acts)
    context = Context(data, place.speed(), rack, place.doors(), acts, clusters)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await clusters.start_all()
    await seed(context)
    tasks = [loop.create_task(place.beat(NAME))]
    tasks += [loop.create_task(_keep(controller, context)) for controller in CONTROLLERS]
    await stop.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await clusters.stop_all()
    acts.close()


async def _keep(controller: Callable[[Context], Awaitable[None]], context: Context) -> None:
    """A controller that fails is told about and started again, as its pod would be."""
    while True:
        try:
            await controller(context)
        except Exception:
            log.exception("%s failed and starts again", controller.__module__)
        await asyncio.sleep(1)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main())
