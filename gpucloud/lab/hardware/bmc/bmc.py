"""One BMC: the server it watches, its vendor's names for things, its accounts and its events."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpucloud.lab.hardware.bmc.accounts import Accounts
from gpucloud.lab.hardware.bmc.events import Events
from gpucloud.lab.hardware.machine import Machine
from gpucloud.lab.hardware.rack import Drive, Facts, Gpu, Nic

Json = dict[str, Any]
ROOT = "/redfish/v1"


class Bmc:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.server = machine.server
        self.facts = machine.server.facts
        self.memory = machine.server.memory
        self.actor = f"bmc:{machine.server.name}"
        self.names = Names.of(self.facts)
        self.accounts = Accounts(self)
        self.events = Events(self)
        machine.on_change = self.events.send

    @property
    def system(self) -> str:
        return f"{ROOT}/Systems/{self.names.system}"

    @property
    def chassis(self) -> str:
        return f"{ROOT}/Chassis/{self.names.chassis}"

    @property
    def manager(self) -> str:
        return f"{ROOT}/Managers/{self.names.manager}"

    def gpus(self) -> list[tuple[str, Gpu]]:
        """The GPUs that Redfish shows, by their names here; the fault hides the last ones."""
        shown = len(self.facts.gpus) - int(self.server.faults.get("hidden_gpu") or 0)
        return [(self.names.gpu(gpu), gpu) for gpu in self.facts.gpus[:shown]]

    def cpus(self) -> list[str]:
        return [self.names.cpu(index) for index in range(len(self.facts.processors))]

    def nics(self) -> list[tuple[str, Nic]]:
        return [(self.names.nic(index, nic), nic) for index, nic in enumerate(self.facts.nics)]

    def drives(self) -> list[tuple[str, Drive]]:
        present = {drive.name for drive in self.server.drives()}
        return [
            (self.names.drive(index), drive)
            for index, drive in enumerate(self.facts.drives)
            if drive.name in present
        ]

    def act(self, verb: str, before: Any = None, after: Any = None) -> None:
        self.world.acts.write(self.actor, self.server.name, verb, before, after)


@dataclass(frozen=True)
class Names:
    """How a vendor calls the parts of its servers."""

    vendor: str
    product: str
    system: str
    chassis: str
    manager: str
    storage: str
    adapter: str
    cpu: Callable[[int], str]
    gpu: Callable[[Gpu], str]
    nic: Callable[[int, Nic], str]
    drive: Callable[[int], str]

    @classmethod
    def of(cls, facts: Facts) -> Names:
        return DELL if facts.is_dell else NVIDIA


DELL = Names(
    vendor="Dell",
    product="Integrated Dell Remote Access Controller",
    system="System.Embedded.1",
    chassis="System.Embedded.1",
    manager="iDRAC.Embedded.1",
    storage="CPU.1",
    adapter="NIC.Embedded.1",
    cpu=lambda index: f"CPU.Socket.{index + 1}",
    gpu=lambda gpu: f"Video.Slot.{gpu.slot}-1",
    nic=lambda index, nic: f"NIC.Embedded.{index + 1}-1-1",
    drive=lambda index: f"Disk.Bay.{index}:Enclosure.Internal.0-1",
)

NVIDIA = Names(
    vendor="NVIDIA",
    product="DGX H100 BMC",
    system="DGX",
    chassis="DGX",
    manager="BMC",
    storage="1",
    adapter="NIC1",
    cpu=lambda index: f"CPU_{index}",
    gpu=lambda gpu: f"GPU_SXM_{gpu.slot}",
    nic=lambda index, nic: re.sub(r"\W", "_", nic.name),
    drive=lambda index: f"NVMe_{index}",
)
