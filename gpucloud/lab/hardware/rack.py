"""The rack as it is bolted together: what each server consists of and where it is plugged in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Nic:
    name: str
    mac: str
    switch: str
    port: str
    roles: tuple[str, ...]
    speed_mbps: int


@dataclass(frozen=True)
class Drive:
    name: str
    serial: str
    model: str
    capacity_bytes: int
    protocol: str
    media: str


@dataclass(frozen=True)
class Gpu:
    model: str
    serial: str
    uuid: str
    slot: str
    memory_bytes: int


@dataclass(frozen=True)
class Processor:
    model: str
    cores: int
    threads: int


@dataclass(frozen=True)
class Facts:
    """What a server is, whatever state it is in."""

    name: str
    uuid: str
    serial: str
    vendor: str
    model: str
    rack: str
    slot: int
    bmc_version: str
    bios_version: str
    memory_gib: int
    processors: tuple[Processor, ...]
    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...]
    drives: tuple[Drive, ...]

    @property
    def boot_nic(self) -> Nic:
        return next((nic for nic in self.nics if "boot" in nic.roles), self.nics[0])

    @property
    def is_dell(self) -> bool:
        return self.vendor.startswith("Dell")


def facts_of(entry: Mapping[str, Any]) -> Facts:
    plain = {
        key: entry[key]
        for key in Facts.__dataclass_fields__
        if key not in ("processors", "gpus", "nics", "drives")
    }
    nics = (Nic(**{**nic, "roles": tuple(nic["roles"])}) for nic in entry["nics"])
    return Facts(
        **plain,
        processors=tuple(Processor(**processor) for processor in entry["processors"]),
        gpus=tuple(Gpu(**gpu) for gpu in entry["gpus"]),
        nics=tuple(nics),
        drives=tuple(Drive(**drive) for drive in entry["drives"]),
    )
