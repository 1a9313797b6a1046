"""List and watch without end, for controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gpucloud.lab.kube.client import ApiError, Client, Obj, Watched


async def follow(client: Client, resource: str) -> AsyncIterator[Watched]:
    """Every object as ADDED, then its changes; listed anew when the watch's past is forgotten."""
    known: dict[tuple[str, str], Obj] = {}
    while True:
        items, version = await client.snapshot(resource)
        now = {place(obj): obj for obj in items}
        for gone in known.keys() - now.keys():
            yield Watched("DELETED", known[gone])
        for obj in items:
            yield Watched("ADDED", obj)
        known = now
        try:
            async for event in client.watch(resource, since=version):
                if event.type == "DELETED":
                    known.pop(place(event.object), None)
                else:
                    known[place(event.object)] = event.object
                yield event
        except ApiError as error:
            if error.code != 410:
                raise


def place(obj: Obj) -> tuple[str, str]:
    """Namespace and name."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
