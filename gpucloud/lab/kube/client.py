"""The controllers' way into a lab cluster: the API's semantics without HTTP.

    client = Client(cluster, "metal3")
    hosts = await client.list("BareMetalHost", label_selector="role=gpu")
    host = await client.get("BareMetalHost", "bare-metal-1", "default")
    await client.merge("BareMetalHost", "bare-metal-1", {"status": {...}}, "default",
                       subresource="status")
    async for event in client.watch("BareMetalHost", since=version):
        event.type, event.object

A resource is named by kind, plural, short name or `plural.group`. Every object handed out is the
caller's own copy. Errors are `ApiError` with the code and reason of the HTTP answer: 404 NotFound,
409 Conflict or AlreadyExists, 410 Expired, 422 Invalid. Whoever decides on what it read puts
`metadata.resourceVersion` into the write and meets 409 when somebody else was faster.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

from gpucloud.kubeapi import deletion, patches, watch
from gpucloud.kubeapi.cluster import Cluster, Patch, Selection, Writer
from gpucloud.kubeapi.errors import ApiError, Obj
from gpucloud.kubeapi.watch import Watched

__all__ = ["ApiError", "Client", "Obj", "Watched"]

Objects = list[Obj]


class Client:
    """One writer's view of one cluster; `manager` is its name in managedFields and act log."""

    def __init__(self, cluster: Cluster, manager: str) -> None:
        self.cluster = cluster
        self._writer = Writer(user=manager, manager=manager)

    async def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        found = self.cluster.registry.find(resource)
        return copy.deepcopy(self.cluster.get(found, namespace, name))

    async def find(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        """Like get, but None when it is not there."""
        try:
            return await self.get(resource, name, namespace)
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def list(
        self, resource: str, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Obj]:
        """All of them, or those of one namespace."""
        return (await self.snapshot(resource, namespace, label_selector, field_selector))[0]

    async def snapshot(
        self, resource: str, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> tuple[Objects, str]:
        """The objects and the resourceVersion from which to watch."""
        found = self.cluster.registry.find(resource)
        selection = Selection(label_selector, field_selector)
        listed = self.cluster.list(found, namespace, selection)
        return copy.deepcopy(listed["items"]), listed["metadata"]["resourceVersion"]

    async def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        found = self.cluster.registry.find(resource)
        namespace = namespace or (obj.get("metadata") or {}).get("namespace", "")
        return copy.deepcopy(self.cluster.create(found, namespace, obj, self._writer))

    async def update(self, resource: str, obj: Obj, subresource: str = "") -> Obj:
        """PUT: the object carries its name, namespace and resourceVersion."""
        found = self.cluster.registry.find(resource)
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        kept = self.cluster.update(found, namespace, name, obj, self._writer, subresource)
        return copy.deepcopy(kept)

    async def patch(
        self,
        resource: str,
        name: str,
        body: Any,
        namespace: str = "",
        subresource: str = "",
        kind: str = patches.MERGE,
        force: bool = False,
    ) -> Obj:
        """`kind` is one of the content types in gpucloud.kubeapi.patches; merge by default."""
        found = self.cluster.registry.find(resource)
        patch = Patch(kind, body, force)
        kept = self.cluster.patch(found, namespace, name, patch, self._writer, subresource)
        return copy.deepcopy(kept)

    async def merge(
        self, resource: str, name: str, body: Obj, namespace: str = "", subresource: str = ""
    ) -> Obj:
        return await self.patch(resource, name, body, namespace, subresource)

    async def apply(self, resource: str, obj: Obj, force: bool = True) -> Obj:
        """Server-side apply: creates the object or changes what it names."""
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        return await self.patch(
            resource, meta["name"], obj, namespace, kind=patches.APPLY, force=force
        )

    async def delete(
        self, resource: str, name: str, namespace: str = "", uid: str = "", missing_ok: bool = False
    ) -> Obj | None:
        """The object as it was left; it may still wait for finalizers."""
        found = self.cluster.registry.find(resource)
        options = deletion.Options(uid=uid)
        try:
            left, _ = self.cluster.delete(found, namespace, name, self._writer, options)
        except ApiError as error:
            if missing_ok and error.reason == "NotFound":
                return None
            raise
        return copy.deepcopy(left)

    async def watch(
        self,
        resource: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        since: str = "",
        timeout: float | None = None,
    ) -> AsyncIterator[Watched]:
        """Events since that resourceVersion; without one, all there is comes first as ADDED.

        Raises ApiError 410 when the past is forgotten: take a new snapshot then.
        """
        found = self.cluster.registry.find(resource)
        match = self.cluster.match(found, label_selector, field_selector)
        wanted = watch.Watch(found, match, namespace, since, timeout=timeout)
        async for event in self.cluster.watch(wanted):
            if event.type == "ERROR":
                raise watch.error(event)
            yield Watched(event.type, copy.deepcopy(event.object))
