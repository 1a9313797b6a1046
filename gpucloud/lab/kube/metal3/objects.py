"""The Kubernetes objects the operator reads and writes, as verbs over the in-process client."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import AsyncIterator
from typing import Any

from gpucloud.lab.kube.client import ApiError, Client, Watched
from gpucloud.lab.kube.follow import follow
from gpucloud.lab.kube.metal3.host import Host, stamp

HOST = "BareMetalHost"
SECRET_LABEL = "environment.metal3.io"


class Gone(Exception):
    """The host is not there any more."""


class Outdated(Exception):
    """Somebody else wrote the host since it was read; look again."""


class Objects:
    """Reads and writes of one operator; every write is a patch of only what the operator owns."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def host(self, namespace: str, name: str) -> dict[str, Any]:
        found = await self.client.find(HOST, name, namespace)
        if found is None:
            raise Gone
        return found

    def watch_hosts(self) -> AsyncIterator[Watched]:
        return follow(self.client, HOST)

    def watch_secrets(self) -> AsyncIterator[Watched]:
        return follow(self.client, "Secret")

    async def secret(self, namespace: str, name: str) -> tuple[dict[str, str], str] | None:
        """Return the Secret's decoded data and its resourceVersion, None when there is none."""
        found = await self.client.find("Secret", name, namespace)
        if found is None:
            return None
        data = {key: _decoded(value) for key, value in (found.get("data") or {}).items()}
        return data, found["metadata"]["resourceVersion"]

    async def adopt_secret(self, host: Host, name: str) -> None:
        """Label the BMC's Secret and make the host its owner, so that it goes with the host."""
        found = await self.client.find("Secret", name, host.namespace)
        if found is None:
            return
        meta = found["metadata"]
        owners = meta.get("ownerReferences") or []
        if any(one["uid"] == host.meta["uid"] for one in owners):
            return
        change = {
            "labels": {SECRET_LABEL: "baremetal"},
            "ownerReferences": [*owners, owner(host)],
            "resourceVersion": meta["resourceVersion"],
        }
        await self._merge("Secret", name, host.namespace, {"metadata": change})

    async def patch_host(self, host: Host, patch: dict[str, Any]) -> None:
        patch["metadata"]["resourceVersion"] = host.meta["resourceVersion"]
        await self._merge(HOST, host.name, host.namespace, patch)

    async def patch_status(self, host: Host, status: dict[str, Any]) -> None:
        try:
            await self.client.merge(HOST, host.name, {"status": status}, host.namespace, "status")
        except ApiError as error:
            if error.reason == "NotFound":
                raise Gone from error
            raise

    async def replace_hardware_data(self, host: Host, hardware: dict[str, Any]) -> None:
        """Delete and make the HardwareData anew, as every inspection does."""
        await self.client.delete("HardwareData", host.name, host.namespace, missing_ok=True)
        body = {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "HardwareData",
            "metadata": {
                "name": host.name,
                "namespace": host.namespace,
                "ownerReferences": [owner(host)],
            },
            "spec": {"hardware": hardware},
        }
        await self.client.create("HardwareData", body, host.namespace)

    async def event(self, host: Host, kind: str, reason: str, message: str) -> None:
        now = stamp()
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{host.name}.{secrets.token_hex(8)}",
                "namespace": host.namespace,
            },
            "involvedObject": {
                "apiVersion": "metal3.io/v1alpha1",
                "kind": HOST,
                "name": host.name,
                "namespace": host.namespace,
                "uid": host.meta["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": "metal3-baremetal-controller"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self.client.create("events", body, host.namespace)

    async def _merge(self, kind: str, name: str, namespace: str, patch: dict[str, Any]) -> None:
        try:
            await self.client.merge(kind, name, patch, namespace)
        except ApiError as error:
            if error.reason == "NotFound":
                raise Gone from error
            if error.reason == "Conflict":
                raise Outdated from error
            raise


def owner(host: Host) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": HOST,
        "name": host.name,
        "uid": host.meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode(errors="replace")
    except (ValueError, binascii.Error):
        return ""
