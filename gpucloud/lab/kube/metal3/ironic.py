"""Ironic: registers nodes, keeps their power, walks inspect, deploy, clean, live-iso jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

from gpucloud.lab.kube.metal3.hardware import details
from gpucloud.lab.kube.metal3.host import Host
from gpucloud.lab.kube.metal3.images import ImageError, resolve
from gpucloud.lab.kube.metal3.jobs import IronicError, Job, JobState
from gpucloud.lab.kube.metal3.nodes import Node, Nodes, Work
from gpucloud.lab.kube.metal3.redfish import Redfish

TOLERATED = 3  # BMC calls that may fail in a row before a job or a power reading fails


@dataclass(frozen=True)
class Asked:
    """A power change that was accepted and has not shown yet."""

    on: bool
    reset: str
    at: float

    def age(self) -> float:
        return time.monotonic() - self.at


class Conductor:
    """The Ironic of one lab. `note(object, verb, before, after)` writes the act log."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        nodes: Nodes,
        speed: float,
        note: Callable[[str, str, Any, Any], None],
    ) -> None:
        self.http, self.nodes, self.note = http, nodes, note
        self.bmcs: dict[str, tuple[tuple[str, str, str], Redfish]] = {}
        self.failures: dict[str, int] = {}
        self.last: dict[str, bool] = {}
        self.asked: dict[str, Asked] = {}
        # Ironic's own limits, scaled; the floors keep a busy two-core machine from looking like
        # a silent ramdisk.
        self.callback_timeout = max(1800 / speed, 25.0)
        self.power_timeout = max(120 / speed, 10.0)
        self.soft_timeout = max(180 / speed, 2.0)

    def known(self, host: Host) -> bool:
        held = self.bmcs.get(host.key)
        return held is not None and held[0] == _access(host)

    async def register(self, host: Host) -> str:
        """Prove address and credentials at the BMC, refuse a taken MAC, return the node's id."""
        for other in self.nodes.by_host.values():
            if other.host != host.key and host.boot_mac and other.mac == host.boot_mac:
                raise IronicError(
                    f"MAC address {host.boot_mac} conflicts with existing node {other.host}",
                    "conflict",
                )
        access = _access(host)
        bmc = Redfish(self.http, *access)
        system = await bmc.system()
        node = self.nodes.of(host.key, host.boot_mac)
        node.uuid = str(system.get("UUID") or node.uuid)
        self.nodes.save()
        self.bmcs[host.key] = (access, bmc)
        self.failures.pop(host.key, None)
        self.note(_object(host), "register", None, node.id)
        return node.id

    def forget(self, host: Host) -> None:
        self.bmcs.pop(host.key, None)
        self.nodes.drop(host.key)

    async def power(self, host: Host) -> bool:
        """Read the power at the BMC; one or two failures are covered by the last reading."""
        try:
            on = await self._bmc(host).power()
        except IronicError:
            self.failures[host.key] = self.failures.get(host.key, 0) + 1
            if self.failures[host.key] < TOLERATED and host.key in self.last:
                return self.last[host.key]
            raise
        self.failures.pop(host.key, None)
        self.last[host.key] = on
        if host.key in self.asked and self.asked[host.key].on == on:
            del self.asked[host.key]
        return on

    async def set_power(self, host: Host, on: bool, hard: bool) -> None:
        """Ask once for the power, watch it by later calls; accepted and not done is an error.

        A soft power-off that the system does not follow becomes a hard one when its time is up.
        """
        asked = self.asked.get(host.key)
        if asked is None or asked.on != on:
            reset = "On" if on else "ForceOff" if hard else "GracefulShutdown"
        elif asked.reset == "GracefulShutdown" and (hard or asked.age() > self.soft_timeout):
            reset = "ForceOff"
        elif asked.age() <= self.power_timeout:
            return
        else:
            del self.asked[host.key]
            raise IronicError(
                f"Failed to change power state to {'on' if on else 'off'}: {asked.reset} was"
                f" accepted and nothing changed in {self.power_timeout:.0f} s",
                "power",
            )
        await self._bmc(host).reset(reset)
        self.asked[host.key] = Asked(on, reset, time.monotonic())
        self.note(_object(host), "power", None, reset)

    def details(self, host: Host, inventory: dict[str, Any]) -> dict[str, Any]:
        return details(host.name, host.boot_mac, inventory)

    async def work(self, host: Host, job: Job) -> JobState:
        """Start the job when it is not this node's, move it on by one look, tell where it is."""
        node = self.nodes.of(host.key, host.boot_mac)
        work = node.work
        if work is None or work.id != job.id or (work.stage == "failed" and work.reported):
            work = node.work = await self._start(host, job)
        elif work.stage not in ("done", "failed"):
            await self._advance(host, node, work)
        if work.stage == "failed" and not work.reported:
            work.reported = True
            self.note(_object(host), f"{work.kind}-failed", None, work.error)
        self.nodes.save()
        if work.stage == "failed":
            return JobState("failed", work.error)
        return JobState("done" if work.stage == "done" else "running", "", work.inventory)

    async def _start(self, host: Host, job: Job) -> Work:
        work = Work(id=job.id, kind=job.kind, payload={}, asked=0.0, touched=time.time())
        if job.kind == "deploy":
            try:
                image = await resolve(self.http, job.image)
            except ImageError as error:
                work.stage, work.error = "failed", str(error)
                return work
            work.payload = {
                "image": image,
                "user_data": job.user_data,
                "network_data": job.network_data,
                "meta_data": job.meta_data,
            }
        elif job.kind == "live-iso":
            work.payload = {"image": job.image}
        self.note(_object(host), f"{job.kind}-started", None, job.id)
        return work

    async def _advance(self, host: Host, node: Node, work: Work) -> None:
        try:
            await getattr(self, f"_{work.stage}")(host, work)
            work.trouble = 0
        except IronicError as error:
            work.trouble += 1
            if work.trouble >= TOLERATED or error.kind == "credentials":
                self._fail(work, f"Redfish exception occurred. Error: {error}")
        if work.stage == "failed" and work.kind in ("inspect", "deploy"):
            await self._power_off_failed(host)

    async def _off(self, host: Host, work: Work) -> None:
        """Off first, media out; then what boots next is chosen and the power comes on."""
        bmc = self._bmc(host)
        if await bmc.power():
            await self._ask(bmc, work, "ForceOff", on=False)
            return
        work.asked = 0.0
        if work.kind == "power-off":
            await bmc.eject()
            work.stage = "done"
            return
        if work.kind == "live-iso":
            await bmc.insert(work.payload["image"]["url"])
            await bmc.boot_once("Cd")
        else:
            await bmc.eject()
            await bmc.boot_once("Pxe")
        work.stage = "on"

    async def _on(self, host: Host, work: Work) -> None:
        bmc = self._bmc(host)
        if not await bmc.power():
            await self._ask(bmc, work, "On", on=True)
            return
        work.asked, work.touched = 0.0, time.time()
        work.stage = "done" if work.kind == "live-iso" else "ramdisk"

    async def _ramdisk(self, host: Host, work: Work) -> None:
        """Wait for the ramdisk's reports; too long a silence is a failure, whatever the reason."""
        if time.time() - work.touched > self.callback_timeout:
            step = (
                "deploying"
                if work.kind == "deploy"
                else "cleaning"
                if work.kind == "clean"
                else "inspecting"
            )
            last = f" at {work.percent} %: {work.message}" if work.message else ""
            self._fail(
                work,
                f"Timeout reached while {step} the node: no heartbeat of the ramdisk"
                f" for {self.callback_timeout:.0f} s{last}",
            )

    async def _reported(self, host: Host, work: Work) -> None:
        """The ramdisk is through: off in any case; after a deployment the disk boots next."""
        bmc = self._bmc(host)
        if await bmc.power():
            await self._ask(bmc, work, "ForceOff", on=False)
            return
        work.asked = 0.0
        if work.kind != "deploy":
            work.stage = "done"
            return
        await bmc.boot_once("Hdd")
        work.stage = "rebooting"

    async def _rebooting(self, host: Host, work: Work) -> None:
        bmc = self._bmc(host)
        if not await bmc.power():
            await self._ask(bmc, work, "On", on=True)
            return
        work.stage = "done"

    async def _ask(self, bmc: Redfish, work: Work, reset: str, on: bool) -> None:
        """Send a reset once and wait for it to show; accepted and not done fails the job."""
        if not work.asked:
            await bmc.reset(reset)
            work.asked = time.time()
        elif time.time() - work.asked > self.power_timeout:
            self._fail(work, f"Failed to change power state to {'on' if on else 'off'} by {reset}.")

    def _fail(self, work: Work, error: str) -> None:
        work.stage, work.error = "failed", error

    async def _power_off_failed(self, host: Host) -> None:
        try:
            await self._bmc(host).reset("ForceOff")
        except IronicError as error:
            self.note(_object(host), "power-off-failed", None, str(error))

    def _bmc(self, host: Host) -> Redfish:
        held = self.bmcs.get(host.key)
        if held is None:
            raise IronicError(f"{host.key} is not registered", "unreachable")
        return held[1]

    # What the ramdisk says, through the door.

    def lookup(self, mac: str, system_uuid: str) -> tuple[Node, Work] | None:
        """Return the node that waits for this ramdisk, and its work; None when none does."""
        node = self.nodes.find(mac, system_uuid)
        if node is None or node.work is None or node.work.stage != "ramdisk":
            return None
        node.work.touched = time.time()
        self.nodes.save()
        return node, node.work

    def heartbeat(self, node_id: str, stage: str, percent: int, message: str) -> bool:
        node = self.nodes.by_id(node_id)
        if node is None or node.work is None or node.work.stage != "ramdisk":
            return False
        node.work.touched, node.work.percent = time.time(), percent
        node.work.message = message or stage
        return True

    def result(self, node_id: str, ok: bool, error: str, inventory: dict[str, Any]) -> str | None:
        """Take the ramdisk's last word; return its host, None when nobody waits for it."""
        node = self.nodes.by_id(node_id)
        if node is None or node.work is None or node.work.stage != "ramdisk":
            return None
        node.work.inventory = inventory
        node.work.asked = 0.0
        if ok:
            node.work.stage, node.work.percent = "reported", 100
        else:
            word = {"deploy": "Deploy", "clean": "Clean", "inspect": "Inspection"}[node.work.kind]
            self._fail(node.work, f"{word} step failed on the node: {error or 'no reason given'}")
        self.nodes.save()
        return node.host


def _access(host: Host) -> tuple[str, str, str]:
    given = host.credentials or {}
    return host.bmc["address"], given.get("username", "").strip(), given.get("password", "").strip()


def _object(host: Host) -> str:
    return f"BareMetalHost/{host.key}"
