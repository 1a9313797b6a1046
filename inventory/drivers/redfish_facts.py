"""The hardware of a server as its BMC tells it: read by hand, since BMCs leave out, blank and err.

One resource that cannot be read becomes a warning and costs no more than itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sushy import exceptions  # type: ignore[import-untyped]

from gpucloud.drivers import DriverError
from inventory.drivers import DriveSeen, GpuSeen, Inspection, PortSeen, Power
from inventory.drivers.redfish_errors import Json
from inventory.drivers.redfish_session import Client

MAX_MEMBERS = 1000
# PCI vendor ids; a display controller of any other vendor is the BMC's own graphics.
GPU_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x1da3": "Habana"}
# PoweringOff is not off yet, so it is not told as off: unknown is not off.
POWER: dict[str, Power] = {"On": "on", "Off": "off", "PoweringOn": "on", "Paused": "on"}


def read_facts(client: Client) -> Inspection:
    """Everything design asks of an inspection, in one pass over the BMC's resources."""
    reader = Reader(client)
    path = client.system().path
    system = client.get(path)
    processors = list(reader.members(_link(system, "Processors")))
    gpus = reader.gpus(path, system, processors)
    vendor = _text(system.get("Manufacturer"))
    return Inspection(
        vendor=vendor,
        model=_text(system.get("Model")),
        serial=_serial(system, vendor),
        uuid=(_text(system.get("UUID")) or "").lower() or None,
        bios_version=_text(system.get("BiosVersion")),
        bmc_version=reader.bmc_version(system),
        power=power_of(system),
        health=_text(_object(system.get("Status")).get("Health")),
        processors=tuple(_cpu(one) for one in processors if one.get("ProcessorType") == "CPU"),
        memory_gib=_number(_object(system.get("MemorySummary")).get("TotalSystemMemoryGiB")),
        gpus=tuple(gpus),
        ports=reader.ports(system),
        drives=tuple(reader.drives(system)),
        warnings=tuple(reader.warnings),
        certificate=client.certificate or None,
        extra={"system": path, "sku": _text(system.get("SKU")), "lldp": reader.neighbours},
    )


def power_of(system: Json) -> Power:
    """The power a ComputerSystem tells; a word that is not known is `unknown`."""
    return POWER.get(str(system.get("PowerState")), "unknown")


class Reader:
    """Reads resources and keeps a sentence for each one that could not be read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.warnings: list[str] = []
        self.neighbours: dict[str, dict[str, str]] = {}

    def get(self, path: str) -> Json:
        with self._forgiven(path):
            return self._client.get(path)
        return {}

    def members(self, path: str) -> Iterator[Json]:
        """The members of a collection, page by page; inline ones are not fetched again."""
        seen = 0
        while path and seen < MAX_MEMBERS:
            page = self.get(path)
            listed = page.get("Members")
            for one in listed if isinstance(listed, list) else []:
                seen += 1
                if not isinstance(one, dict):
                    continue
                member = one if len(one) > 1 else self.get(_id(one))
                if member:
                    yield member
            path = str(page.get("Members@odata.nextLink") or "")

    def bmc_version(self, system: Json) -> str | None:
        links = _object(system.get("Links"))
        # Huawei calls the link Managers.
        for manager in _list(links.get("ManagedBy")) or _list(links.get("Managers")):
            version = _text(self.get(_id(manager)).get("FirmwareVersion"))
            if version:
                return version
        return None

    def gpus(self, path: str, system: Json, processors: list[Json]) -> list[GpuSeen]:
        """By processors, then those of a GPU baseboard's own system, then by PCIe devices."""
        found = [self._gpu(one) for one in processors if _is_gpu(one)]
        if not found:
            for other in self._other_systems(path):
                below = self.members(_link(self.get(other), "Processors"))
                found += [self._gpu(one) for one in below if _is_gpu(one)]
        return found or list(self._pcie_gpus(system))

    def ports(self, system: Json) -> tuple[PortSeen, ...]:
        """By interfaces, then by what network adapters add; `neighbours` is filled on the way."""
        found = {port.mac: port for port in self._interfaces(system)}
        for chassis in _list(_object(system.get("Links")).get("Chassis")):
            where = _link(self.get(_id(chassis)), "NetworkAdapters")
            for adapter in self.members(where):
                for function in self.members(_link(adapter, "NetworkDeviceFunctions")):
                    for port in _function_ports(function):
                        found.setdefault(port.mac, port)
                for told in self.members(_link(adapter, "Ports")):
                    self._read_port(told, found)
        return tuple(found.values())

    def _interfaces(self, system: Json) -> Iterator[PortSeen]:
        listed = list(self.members(_link(system, "EthernetInterfaces")))
        names = [_text(one.get("Name")) for one in listed]
        told_apart = len(set(names)) == len(names)
        for one, name in zip(listed, names, strict=True):
            mac = _mac(one.get("PermanentMACAddress")) or _mac(one.get("MACAddress"))
            if mac:
                # Dell gives every interface the same name; its id tells them apart.
                shown = name if told_apart and name else _text(one.get("Id")) or mac
                speed = _number(one.get("SpeedMbps"))
                link = _link_state(one.get("LinkStatus"))
                yield PortSeen(shown, mac, link, int(speed) if speed else None)

    def _read_port(self, port: Json, found: dict[str, PortSeen]) -> None:
        ethernet = _object(port.get("Ethernet"))
        lldp = _object(ethernet.get("LLDPReceive"))
        speed = _number(port.get("CurrentSpeedGbps"))
        for given in _texts(ethernet.get("AssociatedMACAddresses")):
            mac = _mac(given)
            if not mac:
                continue
            known = found.get(mac) or PortSeen(_text(port.get("Id")) or mac, mac)
            found[mac] = replace(
                known,
                link=known.link or _link_state(port.get("LinkStatus")),
                speed_mbps=known.speed_mbps or (int(speed * 1000) if speed else None),
            )
            switch = _text(lldp.get("SystemName")) or _text(lldp.get("ChassisId"))
            if switch and _text(lldp.get("PortId")):
                self.neighbours[mac] = {"switch": switch, "port": str(lldp["PortId"])}

    def drives(self, system: Json) -> Iterator[DriveSeen]:
        for storage in self.members(_link(system, "Storage")):
            for one in _list(storage.get("Drives")):
                drive = self.get(_id(one))
                status = _object(drive.get("Status"))
                if not drive or status.get("State") == "Absent":
                    continue
                size = _number(drive.get("CapacityBytes"))
                yield DriveSeen(
                    serial=_text(drive.get("SerialNumber")),
                    model=_text(drive.get("Model")),
                    capacity_bytes=int(size) if size else None,
                    protocol=_text(drive.get("Protocol")),
                    media=_text(drive.get("MediaType")),
                    name=_text(drive.get("Name")) or _text(drive.get("Id")),
                )

    def _gpu(self, processor: Json) -> GpuSeen:
        model = _text(processor.get("Model"))
        if not model:
            device = _object(_object(processor.get("Links")).get("PCIeDevice"))
            model = _text(self.get(_id(device)).get("Model")) if device else None
        location = _object(_object(processor.get("Location")).get("PartLocation"))
        slot = _text(location.get("ServiceLabel")) or _text(location.get("LocationOrdinalValue"))
        return GpuSeen(
            model=model or _text(processor.get("Manufacturer")) or "unknown",
            serial=_text(processor.get("SerialNumber")),
            uuid=_text(processor.get("UUID")),
            slot=slot,
            memory_bytes=_gpu_memory(processor),
        )

    def _other_systems(self, path: str) -> list[str]:
        with self._forgiven("the list of systems"):
            own = path.rstrip("/")
            return [other for other in self._client.systems() if other.rstrip("/") != own]
        return []

    def _pcie_gpus(self, system: Json) -> Iterator[GpuSeen]:
        given = system.get("PCIeDevices")
        refs = [self.get(_id(one)) for one in _list(given)] or self.members(_id(_object(given)))
        for device in refs:
            for function in self._functions(device):
                kind = str(function.get("DeviceClass"))
                vendor = GPU_VENDORS.get(str(function.get("VendorId")).lower())
                if vendor and kind in ("ProcessingAccelerators", "DisplayController"):
                    model = _text(device.get("Model")) or _text(device.get("Name"))
                    slot = _object(_object(device.get("Slot")).get("Location"))
                    place = _object(slot.get("PartLocation"))
                    yield GpuSeen(
                        model=model or vendor,
                        serial=_text(device.get("SerialNumber")),
                        uuid=_text(device.get("UUID")),
                        slot=_text(place.get("ServiceLabel")),
                    )
                    break

    def _functions(self, device: Json) -> Iterator[Json]:
        below = _link(device, "PCIeFunctions")
        if below:
            yield from self.members(below)
            return
        for one in _list(_object(device.get("Links")).get("PCIeFunctions")):
            yield self.get(_id(one))

    @contextmanager
    def _forgiven(self, what: str) -> Iterator[None]:
        """One resource may fail; a BMC that is gone, or a budget that is spent, may not."""
        try:
            yield
        except exceptions.HTTPError as error:
            if error.status_code == 401:
                raise
            self.warnings.append(f"{what} answered {error.status_code}.")
        except DriverError as error:
            if error.code != "BMC_ERROR":
                raise
            self.warnings.append(f"{what}: {error.message}")


def _is_gpu(processor: Json) -> bool:
    absent = _object(processor.get("Status")).get("State") == "Absent"
    return processor.get("ProcessorType") in ("GPU", "Accelerator") and not absent


def _function_ports(function: Json) -> Iterator[PortSeen]:
    """The port of a network device function; InfiniBand's is known by its GUID."""
    name = _text(function.get("Id")) or ""
    ethernet, fabric = _object(function.get("Ethernet")), _object(function.get("InfiniBand"))
    mac = _mac(ethernet.get("PermanentMACAddress")) or _mac(ethernet.get("MACAddress"))
    guid = _mac(fabric.get("PermanentPortGUID"), octets=8)
    if mac:
        yield PortSeen(name or mac, mac)
    elif guid:
        yield PortSeen(name or guid, guid, kind="infiniband")


def _cpu(processor: Json) -> dict[str, Any]:
    return {
        "model": _text(processor.get("Model")),
        "cores": _number(processor.get("TotalCores")),
        "threads": _number(processor.get("TotalThreads")),
        "socket": _text(processor.get("Socket")) or _text(processor.get("Id")),
    }


def _gpu_memory(processor: Json) -> int | None:
    sizes = [_number(one.get("CapacityMiB")) for one in _list(processor.get("ProcessorMemory"))]
    summary = _object(processor.get("MemorySummary"))
    total = sum(size for size in sizes if size) or _number(summary.get("TotalMemorySizeMiB"))
    return int(total) << 20 if total else None


def _serial(system: Json, vendor: str | None) -> str | None:
    serial = _text(system.get("SerialNumber"))
    # What a Dell calls serial number is its board's; the service tag, by which people and labels
    # know the server, is in SKU.
    return (_text(system.get("SKU")) or serial) if "dell" in (vendor or "").lower() else serial


def _mac(value: Any, octets: int = 6) -> str | None:
    digits = re.sub(r"[^0-9a-f]", "", (_text(value) or "").lower().removeprefix("0x"))
    if len(digits) != 2 * octets or not digits.strip("0"):
        return None
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))


def _link_state(value: Any) -> str | None:
    return {"LinkUp": "up", "LinkDown": "down", "NoLink": "down"}.get(str(value))


def _link(resource: Json, name: str) -> str:
    return _id(_object(resource.get(name)))


def _id(reference: Json) -> str:
    return str(reference.get("@odata.id") or "")


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    """A value as text; blanks and the ways in which BMCs write "none" are None."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    text = str(value).strip()
    return None if text.lower() in ("", "n/a", "na", "none", "null", "not specified") else text


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return int(found) if found.is_integer() else found
