"""What a ramdisk found, turned into Metal3's HardwareDetails, which have no place for GPUs."""

from __future__ import annotations

from typing import Any


def details(name: str, boot_mac: str, inventory: dict[str, Any]) -> dict[str, Any]:
    """Return status.hardware from the ramdisk's inventory; what it does not tell is left out."""
    processors = inventory.get("processors") or []
    found: dict[str, Any] = {
        "hostname": str(inventory.get("hostname") or name),
        "nics": [_nic(nic, boot_mac) for nic in inventory.get("nics") or []],
        "storage": [_drive(drive) for drive in inventory.get("drives") or []],
        "systemVendor": _kept(
            manufacturer=inventory.get("vendor"),
            productName=inventory.get("model"),
            serialNumber=inventory.get("serial"),
        ),
    }
    if memory := inventory.get("memory_gib"):
        found["ramMebibytes"] = int(float(memory) * 1024)
    if processors:
        threads = sum(int(one.get("threads") or one.get("cores") or 0) for one in processors)
        found["cpu"] = _kept(
            arch=str(inventory.get("arch") or "x86_64"),
            model=processors[0].get("model"),
            count=threads,
        )
    if bios := inventory.get("bios_version"):
        found["firmware"] = {"bios": _kept(vendor=inventory.get("vendor"), version=bios)}
    return found


def _nic(nic: dict[str, Any], boot_mac: str) -> dict[str, Any]:
    mac = str(nic.get("mac") or "").lower()
    speed = nic.get("speed_mbps")
    address = str(nic.get("ip") or "").partition("/")[0]
    seen = _kept(name=nic.get("name"), mac=mac, ip=address)
    seen["pxe"] = mac == boot_mac
    if speed:
        seen["speedGbps"] = int(speed) // 1000
    lldp = nic.get("lldp") or {}
    if lldp:
        seen["lldp"] = _kept(
            switchSystemName=lldp.get("switch"),
            switchID=lldp.get("switch_id"),
            portID=lldp.get("port"),
        )
    return seen


def _drive(drive: dict[str, Any]) -> dict[str, Any]:
    name = str(drive.get("name") or "")
    protocol, media = str(drive.get("protocol") or ""), str(drive.get("media") or "")
    seen = _kept(
        name=name if name.startswith("/dev/") else f"/dev/{name}",
        model=drive.get("model"),
        serialNumber=drive.get("serial"),
        wwn=drive.get("wwn"),
    )
    seen["type"] = (
        "NVME" if protocol.lower() == "nvme" else "HDD" if media.upper() == "HDD" else "SSD"
    )
    seen["rotational"] = seen["type"] == "HDD"
    if size := drive.get("capacity_bytes"):
        seen["sizeBytes"] = int(size)
    return seen


def _kept(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "")}
