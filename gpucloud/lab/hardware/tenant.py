"""The tenant's operating system: boots from disk, reads its config drive, joins its cluster."""

from __future__ import annotations

import asyncio
import hashlib
import json

from gpucloud.lab.hardware.cloudinit import Wishes, address_of, read_user_data
from gpucloud.lab.hardware.disks import Disk
from gpucloud.lab.hardware.kubelet import Kubelet
from gpucloud.lab.hardware.machine import Machine, Outcome, Phase

BOOT_SECONDS = 30.0
LOOK_WALL_SECONDS = 1.0


async def boot_disk(machine: Machine) -> Outcome:
    disk = machine.server.boot_disk()
    header = disk.boot_header() if disk else None
    if disk is None or header is None:
        return Outcome.NOT_BOOTABLE
    machine.loads("Hdd", str(header.get("os", "")))
    system = TenantOS(machine, disk)
    system.look_for_violation()
    await machine.world.wait(BOOT_SECONDS)
    machine.runs(Phase.OS, str(header.get("os", "")))
    system.mark_drives()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(system.watch_ports())
        tasks.create_task(system.run())
    return Outcome.STOPPED


class TenantOS:
    """One boot of an installed OS."""

    def __init__(self, machine: Machine, disk: Disk) -> None:
        self.machine = machine
        self.disk = disk
        self.header = disk.boot_header() or {}
        self.config = disk.config_drive()
        self._violating = False

    def instance_id(self) -> str:
        meta = self.config.get("meta_data")
        meta = meta if isinstance(meta, dict) else {}
        for key in ("instance_id", "instance-id", "uuid"):
            if meta.get(key):
                return str(meta[key])
        # Without meta data cloud-init makes one up; here from what was installed, so that the
        # same installation keeps its name over reboots.
        seed = json.dumps([self.header, self.machine.server.facts.uuid], sort_keys=True)
        return "i-" + hashlib.sha256(seed.encode()).hexdigest()[:12]

    def mark_drives(self) -> None:
        instance = self.instance_id()
        for disk in self.machine.server.disks():
            before = disk.marker()
            disk.write_markers(instance)
            self.machine.act("disk", before, instance, part=disk.drive.name)

    def look_for_violation(self) -> None:
        """A tenant's OS must never see the provisioning network."""
        world, facts = self.machine.world, self.machine.server.facts
        seen = [nic.name for nic in facts.nics if world.in_provisioning(nic)]
        if seen and not self._violating:
            self.machine.act("violation", None, "tenant OS in provisioning: " + ", ".join(seen))
        self._violating = bool(seen)

    async def watch_ports(self) -> None:
        while True:
            await asyncio.sleep(LOOK_WALL_SECONDS)
            self.look_for_violation()

    async def run(self) -> None:
        macs = [nic.mac for nic in self.machine.server.facts.nics]
        address = address_of(self.config.get("network_data"), macs)
        wishes = read_user_data(str(self.config.get("user_data") or ""))
        if address is None:
            self.machine.detail = "no network: the config drive holds no network data"
            return
        await self._join(wishes, address)

    async def _join(self, wishes: Wishes, address: str) -> None:
        kubelet = Kubelet(self.machine, self.disk, wishes, address, self.header)
        await kubelet.run()
