"""What a ramdisk found, turned into Metal3's HardwareDetails, which have no place for GPUs."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def details(name: str, boot_mac: str, inventory: Json) -> Json:
    """Return status.hardware from Ironic's inventory; what it does not tell is left out."""
    vendor = inventory.get("system_vendor") or {}
    found: Json = {
        "hostname": str(inventory.get("hostname") or name),
        "nics": [_nic(nic, boot_mac) for nic in inventory.get("interfaces") or []],
        "storage": [_disk(disk) for disk in inventory.get("disks") or []],
        "systemVendor": _kept(
            manufacturer=vendor.get("manufacturer"),
            productName=vendor.get("product_name"),
            serialNumber=vendor.get("serial_number"),
        ),
    }
    if firmware := vendor.get("firmware"):
        found["firmware"] = {
            "bios": _kept(vendor=firmware.get("vendor"), version=firmware.get("version"))
        }
    if memory := (inventory.get("memory") or {}).get("physical_mb"):
        found["ramMebibytes"] = int(memory)
    if cpu := inventory.get("cpu"):
        found["cpu"] = _kept(
            arch=cpu.get("architecture"),
            model=cpu.get("model_name"),
            count=cpu.get("count"),
            flags=cpu.get("flags"),
            clockMegahertz=float(cpu.get("frequency") or 0) or None,
        )
    return found


def _nic(nic: Json, boot_mac: str) -> Json:
    mac, speed, lldp = (
        str(nic.get("mac_address") or "").lower(),
        nic.get("speed_mbps"),
        nic.get("lldp"),
    )
    seen = _kept(name=nic.get("name"), mac=mac, ip=_address(nic.get("ipv4_address")))
    seen["pxe"] = mac == boot_mac
    if speed:
        seen["speedGbps"] = int(speed) // 1000
    if lldp:
        seen["lldp"] = _kept(switchSystemName=lldp.get("system_name"), portID=lldp.get("port_id"))
    return seen


def _address(value: Any) -> str:
    return str(value or "").partition("/")[0]


def _disk(disk: Json) -> Json:
    seen = _kept(
        name=disk.get("name"),
        model=disk.get("model"),
        serialNumber=disk.get("serial"),
        sizeBytes=disk.get("size"),
        wwn=disk.get("wwn"),
    )
    seen["rotational"] = bool(disk.get("rotational"))
    nvme = str(disk.get("protocol") or "").lower() == "nvme"
    seen["type"] = "NVME" if nvme else "HDD" if seen["rotational"] else "SSD"
    return seen


def _kept(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value not in (None, "")}
