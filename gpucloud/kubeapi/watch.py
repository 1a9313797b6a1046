"""Watching: replay from a revision, follow, filter, mark the place, end on time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gpucloud.kubeapi.errors import ApiError, Obj, expired
from gpucloud.kubeapi.kinds import Resource
from gpucloud.kubeapi.selectors import Match
from gpucloud.kubeapi.store import Event, Store

BOOKMARK_EVERY = 30.0  # seconds without an event


@dataclass(frozen=True)
class Watched:
    """One watch event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (object is a Status)."""

    type: str
    object: Obj


@dataclass(frozen=True)
class Watch:
    """What to watch. `since` "" or "0" starts with everything there is as ADDED."""

    resource: Resource
    match: Match
    namespace: str = ""
    since: str = ""
    bookmarks: bool = False
    timeout: float | None = None


async def follow(store: Store, watch: Watch) -> AsyncGenerator[Watched, None]:
    """Ends after `timeout`, or with an ERROR 410 when the past it needs is forgotten."""
    wake = asyncio.Event()
    unsubscribe = store.subscribe(wake.set)
    loop = asyncio.get_running_loop()
    end = loop.time() + watch.timeout if watch.timeout else None
    try:
        position = store.revision
        if watch.since in ("", "0"):
            for obj in store.list(watch.resource.id, watch.namespace):
                if watch.match(obj):
                    yield Watched("ADDED", obj)
        else:
            position = int(watch.since)
        while True:
            # A revision from the future means the store was reset under the client: it must
            # list again too, for the events it waits for will never come.
            if position < store.oldest or position > store.revision:
                yield Watched("ERROR", expired(position, store.oldest).status())
                return
            wake.clear()
            for event in store.events(position):
                position = event.revision
                seen = _seen(event, watch)
                if seen:
                    yield seen
            if not await _wait(wake, end, loop.time()):
                if watch.bookmarks:
                    yield _bookmark(watch.resource, position)
                if end is not None and loop.time() >= end:
                    return
    finally:
        unsubscribe()


async def _wait(wake: asyncio.Event, end: float | None, now: float) -> bool:
    """True when something was written, False when a bookmark or the end is due."""
    left = BOOKMARK_EVERY if end is None else max(0.0, min(BOOKMARK_EVERY, end - now))
    try:
        async with asyncio.timeout(left):
            return await wake.wait()
    except TimeoutError:
        return False


def _seen(event: Event, watch: Watch) -> Watched | None:
    """The event as this watch sees it: leaving a selector is DELETED, entering is ADDED."""
    if event.key.resource != watch.resource.id:
        return None
    if watch.namespace and event.key.namespace != watch.namespace:
        return None
    was = event.previous is not None and watch.match(event.previous)
    if event.type == "DELETED":
        return Watched("DELETED", event.object) if was else None
    now = watch.match(event.object)
    if was and now:
        return Watched("MODIFIED", event.object)
    if now:
        return Watched("ADDED", event.object)
    return Watched("DELETED", event.object) if was else None


def _bookmark(resource: Resource, position: int) -> Watched:
    meta = {"resourceVersion": str(position), "creationTimestamp": None}
    obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    return Watched("BOOKMARK", obj)


def error(watched: Watched) -> ApiError:
    """The exception that an ERROR event stands for."""
    status = watched.object
    return ApiError(status["code"], status["reason"], status["message"], status.get("details"))
