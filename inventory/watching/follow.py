"""Following one collection: list once, watch from there, resume after every break."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import aclosing
from typing import Protocol

from inventory.watching.client import Api, ApiTrouble, Obj

log = logging.getLogger(__name__)
WATCH_SECONDS = (50, 70)
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
# Not listed more often than this, however often the API forgets the past.
LIST_EVERY_SECONDS = 1.0
# A watch that lasted this long was a working one.
GOOD_SECONDS = 5.0
# Kinds or verbs the API does not serve (yet): the version we hold means nothing.
NOT_SERVED = (400, 401, 403, 404, 405, 406)


class Handler(Protocol):
    """Told what is there. Whatever it raises makes the collection be listed again."""

    async def listed(self, objects: list[Obj]) -> None:
        """All there is, at first and after the past was lost: what is missing is gone."""

    async def seen(self, kind: str, obj: Obj) -> None:
        """One change: ADDED, MODIFIED or DELETED."""

    async def alive(self) -> None:
        """The API answers and we follow it; any trouble told of is over."""

    async def trouble(self, problem: str) -> None:
        """The API cannot be followed now, in a sentence."""


class Follower:
    """One collection and its handler."""

    def __init__(self, api: Api, path: str, handler: Handler) -> None:
        self._api, self._path, self._handler = api, path, handler
        self._version = ""
        self._failures = 0
        self._listed_at = float("-inf")

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            began = time.monotonic()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                # An API that ends each watch at once is not asked in a tight loop.
                quick = time.monotonic() - began < GOOD_SECONDS
                await self._pause() if quick else None
            except ApiTrouble as trouble:
                if trouble.expired:
                    self._version = ""
                    continue
                if trouble.status in NOT_SERVED:
                    self._version = ""
                await self._handler.trouble(str(trouble))
                await self._pause()
            except Exception as error:
                # What the handler could not keep is read again as a whole.
                self._version = ""
                log.warning("%s: %s", self._path, error, exc_info=not _passing(error))
                await self._pause()

    async def _list(self) -> None:
        since = time.monotonic() - self._listed_at
        if since < LIST_EVERY_SECONDS:
            await asyncio.sleep((LIST_EVERY_SECONDS - since) * random.uniform(1.0, 1.5))
        self._listed_at = time.monotonic()
        objects, version = await self._api.list(self._path)
        await self._handler.listed(objects)
        self._version = version

    async def _watch(self) -> None:
        began = time.monotonic()
        seconds = random.randint(*WATCH_SECONDS)
        async with aclosing(self._api.watch(self._path, self._version, seconds)) as events:
            async for kind, obj in events:
                if kind in ("OPEN", "BOOKMARK"):
                    await self._handler.alive()
                else:
                    await self._handler.seen(kind, obj)
                if kind != "OPEN":
                    # Only after the handler has kept it.
                    self._version = str(obj["metadata"]["resourceVersion"])
                    self._failures = 0
        if time.monotonic() - began > GOOD_SECONDS:
            self._failures = 0

    async def _pause(self) -> None:
        wait = min(FIRST_PAUSE * 2.0**self._failures, LONGEST_PAUSE)
        self._failures = min(self._failures + 1, 10)
        await asyncio.sleep(wait * random.uniform(0.5, 1.0))


def _passing(error: Exception) -> bool:
    from django.db import Error

    return isinstance(error, Error)
