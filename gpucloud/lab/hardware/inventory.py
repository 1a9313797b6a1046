"""What an operating system finds on a server: the ramdisks' view, with what is hidden from them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gpucloud.lab.hardware.server import Server


def what_linux_sees(server: Server, boot_address: str = "") -> dict[str, Any]:
    """An inventory in the words of the rack file."""
    facts = server.facts
    return {
        "hostname": facts.name,
        "uuid": facts.uuid,
        "serial": facts.serial,
        "vendor": facts.vendor,
        "model": facts.model,
        "bios_version": facts.bios_version,
        "arch": "x86_64",
        "memory_gib": facts.memory_gib,
        "processors": [asdict(processor) for processor in facts.processors],
        "gpus": [asdict(gpu) for gpu in facts.gpus],
        "nics": [
            {
                "name": nic.name,
                "mac": nic.mac,
                "ip": boot_address if nic is facts.boot_nic else "",
                "speed_mbps": nic.speed_mbps,
                "lldp": {"switch": nic.switch, "port": nic.port},
            }
            for nic in facts.nics
        ],
        "drives": [asdict(disk.drive) for disk in server.seen_disks()],
    }
