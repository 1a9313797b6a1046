"""EventService: pushes what happens on a server to whoever subscribed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import aiohttp

from gpucloud.lab.acts import now

if TYPE_CHECKING:
    from gpucloud.lab.hardware.bmc.bmc import Bmc

SUBSCRIPTION_LIMIT = 8
PUSH_TRIES = 3
MESSAGE_IDS = {
    "power": "Platform.1.0.PowerStateChanged",
    "boot": "Platform.1.0.BootProgressChanged",
    "test": "Base.1.18.TestMessage",
}


class Events:
    """Subscriptions survive a restart of the BMC, undelivered events do not."""

    def __init__(self, bmc: Bmc) -> None:
        self._bmc = bmc
        self._count = 0
        self._pushes: set[asyncio.Task[None]] = set()

    def subscribe(self, wish: dict[str, Any]) -> str:
        known = self._bmc.memory.subscriptions
        identifier = str(max((int(key) for key in known), default=0) + 1)
        known[identifier] = {
            "Destination": str(wish["Destination"]),
            "Context": str(wish.get("Context") or ""),
            "Protocol": "Redfish",
            "EventTypes": wish.get("EventTypes") or ["Alert"],
        }
        self._bmc.server.save()
        return identifier

    def unsubscribe(self, identifier: str) -> bool:
        gone = self._bmc.memory.subscriptions.pop(identifier, None)
        if gone is not None:
            self._bmc.server.save()
        return gone is not None

    def is_full(self) -> bool:
        return len(self._bmc.memory.subscriptions) >= SUBSCRIPTION_LIMIT

    def send(self, kind: str, sentence: str) -> None:
        """Push one event to all subscribers, in the background."""
        for subscription in self._bmc.memory.subscriptions.values():
            self._count += 1
            push = self._push(subscription, self._event(kind, sentence, subscription))
            task = asyncio.get_running_loop().create_task(push)
            self._pushes.add(task)
            task.add_done_callback(self._pushes.discard)

    async def close(self) -> None:
        for task in list(self._pushes):
            task.cancel()
        await asyncio.gather(*self._pushes, return_exceptions=True)

    def _event(self, kind: str, sentence: str, subscription: dict[str, Any]) -> dict[str, Any]:
        return {
            "@odata.type": "#Event.v1_7_0.Event",
            "Id": str(self._count),
            "Name": "Event",
            "Context": subscription["Context"],
            "Events": [
                {
                    "EventId": str(self._count),
                    "EventType": "Alert",
                    "EventTimestamp": now(),
                    "Severity": "OK",
                    "Message": sentence,
                    "MessageId": MESSAGE_IDS[kind],
                    "OriginOfCondition": {"@odata.id": self._bmc.system},
                }
            ],
        }

    async def _push(self, subscription: dict[str, Any], event: dict[str, Any]) -> None:
        for attempt in range(PUSH_TRIES):
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
                async with self._bmc.world.http.post(
                    subscription["Destination"], json=event
                ) as answer:
                    if answer.status < 500:
                        return
            await asyncio.sleep(1 + attempt)
