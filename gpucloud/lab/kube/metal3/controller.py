"""The operator's loops: one task per BareMetalHost, woken by edits, by ramdisks and by time."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from typing import Any

from gpucloud.lab.kube.metal3 import conditions
from gpucloud.lab.kube.metal3.host import Host, merge_diff, stamp
from gpucloud.lab.kube.metal3.jobs import Ironic
from gpucloud.lab.kube.metal3.objects import Gone, Objects, Outdated
from gpucloud.lab.kube.metal3.states import POLL, Failed, step

JOB_STATES = ("inspecting", "provisioning", "deprovisioning")

log = logging.getLogger("lab.metal3")


class Operator:
    """Runs the state machine for every BareMetalHost of the host cluster."""

    def __init__(
        self,
        objects: Objects,
        ironic: Ironic,
        speed: float,
        note: Callable[[str, str, Any, Any], None],
    ) -> None:
        self.objects, self.ironic, self.speed, self.note = objects, ironic, speed, note
        # BMO asks Ironic every ten seconds while a job runs; never less often than each second.
        self.job_poll = min(POLL, max(10 / speed, 0.2))
        self.hosts: dict[str, dict[str, Any]] = {}
        self.wakes: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.seen: dict[str, str] = {}

    def known(self) -> list[dict[str, Any]]:
        return list(self.hosts.values())

    def wake(self, key: str) -> None:
        if key in self.wakes:
            self.wakes[key].set()

    async def run(self) -> None:
        """Follow hosts and Secrets for ever."""
        try:
            await asyncio.gather(self._follow_hosts(), self._follow_secrets())
        finally:
            for task in self.tasks.values():
                task.cancel()

    async def _follow_hosts(self) -> None:
        async for event in self.objects.watch_hosts():
            obj = event.object
            key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            if event.type == "DELETED":
                self.hosts.pop(key, None)
                self.seen.pop(key, None)
                self.wake(key)
                continue
            self.hosts[key] = obj
            if key not in self.tasks or self.tasks[key].done():
                self.wakes[key] = asyncio.Event()
                self.tasks[key] = asyncio.create_task(self._keep(key), name=f"bmh {key}")
            # As the operator's predicate: status and labels alone wake nobody.
            digest = _digest(obj)
            if self.seen.get(key) != digest:
                self.seen[key] = digest
                self.wake(key)

    async def _follow_secrets(self) -> None:
        async for event in self.objects.watch_secrets():
            meta = event.object["metadata"]
            for key, host in self.hosts.items():
                bmc = (host.get("spec") or {}).get("bmc") or {}
                if (
                    key.startswith(f"{meta['namespace']}/")
                    and bmc.get("credentialsName") == meta["name"]
                ):
                    self.wake(key)

    async def _keep(self, key: str) -> None:
        wake = self.wakes[key]
        while key in self.hosts:
            wake.clear()
            try:
                delay = await self.reconcile(key)
            except Gone:
                return
            except Outdated:
                delay = 0.0
            except Exception:
                log.exception("reconcile of %s failed", key)
                delay = 5.0
            if delay <= 0:
                await asyncio.sleep(0)
                continue
            try:
                await asyncio.wait_for(wake.wait(), delay)
            except TimeoutError:
                continue

    async def reconcile(self, key: str) -> float:
        """Take one look at one host and save what it changed; return seconds until the next."""
        namespace, name = key.split("/", 1)
        raw = await self.objects.host(namespace, name)
        host = Host(raw)
        await self._load_secrets(host)
        before = host.state
        try:
            delay = await step(host, self.ironic)
        except Failed:
            delay = self.backoff(host.status["errorCount"])
        if host.state != before:
            self.note(f"BareMetalHost/{key}", "state", before, host.state)
        if host.failed and host.status["errorMessage"] != (raw.get("status") or {}).get(
            "errorMessage"
        ):
            self.note(f"BareMetalHost/{key}", "error", None, host.status["errorMessage"])
        await self._save(host, raw)
        if delay == POLL and host.state in JOB_STATES:
            return self.job_poll
        return delay

    def backoff(self, count: int) -> float:
        """Seconds to the next attempt: one to two minutes, doubled per failure, scaled."""
        minutes = 2.0 ** min(max(count, 1), 9)
        # Never so short that somebody who looks every two seconds would miss the error.
        return max(4.0, random.uniform(0.5, 1.0) * minutes * 60 / self.speed)

    async def _load_secrets(self, host: Host) -> None:
        if name := host.bmc.get("credentialsName"):
            found = await self.objects.secret(host.namespace, name)
            if found:
                host.credentials, host.credentials_version = found
                await self.objects.adopt_secret(host, name)
        for wish in ("userData", "networkData", "metaData", "preprovisioningNetworkDataName"):
            value = host.spec.get(wish)
            name = value if isinstance(value, str) else (value or {}).get("name")
            if name:
                found = await self.objects.secret(host.namespace, name)
                if found:
                    host.secrets[name] = found[0]

    async def _save(self, host: Host, raw: dict[str, Any]) -> None:
        """Metadata first, guarded by resourceVersion, then status; a conflict means look again."""
        meta: dict[str, Any] = {}
        if host.drop:
            meta["annotations"] = dict.fromkeys(host.drop)
        if host.finalizers != (host.meta.get("finalizers") or []):
            meta["finalizers"] = host.finalizers
        old = raw.get("status") or {}
        new_hardware = host.status.get("hardware")
        if new_hardware and new_hardware != old.get("hardware"):
            await self.objects.replace_hardware_data(host, new_hardware)
        if meta:
            await self.objects.patch_host(host, {"metadata": meta})
        for kind, reason, message in host.events:
            await self.objects.event(host, kind, reason, message)
        conditions.refresh(host)
        if patch := merge_diff(old, host.status):
            patch["lastUpdated"] = stamp()
            await self.objects.patch_status(host, patch)


def _digest(obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    return json.dumps(
        [
            meta.get("generation"),
            meta.get("annotations"),
            meta.get("finalizers"),
            meta.get("deletionTimestamp"),
            obj.get("spec"),
        ],
        sort_keys=True,
    )
