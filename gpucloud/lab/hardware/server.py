"""One server: its parts, what it remembers without power, its drives' bytes and its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gpucloud.lab.acts import now
from gpucloud.lab.hardware.disks import Disk
from gpucloud.lab.hardware.rack import Drive, Facts
from gpucloud.lab.place import read_json, write_json

KEPT_LOG_ENTRIES = 200
MEDIA_SLOTS = ("Cd", "USBStick")


@dataclass
class Memory:
    """What firmware, BMC and drive bays keep; written to disk at every change."""

    power: str = "Off"
    boot_target: str = "None"
    boot_enabled: str = "Disabled"
    boot_mode: str = "UEFI"
    media: dict[str, str] = field(default_factory=dict)
    installed: bool = False
    secure_boot: bool = False
    secure_boot_current: bool = False
    led: str = "Off"
    asset_tag: str = ""
    password: str | None = None
    pulled_drives: list[str] = field(default_factory=list)
    faults: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    log_seq: int = 0
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)


class Server:
    """The body of one server; Machine runs it and Bmc shows it."""

    def __init__(self, facts: Facts, folder: Path) -> None:
        self.facts = facts
        self.name = facts.name
        self._file = folder / "servers" / f"{facts.name}.json"
        self.memory = _load(self._file)
        self._disks = {
            drive.name: Disk(drive, folder / "disks" / facts.name / f"{drive.name}.img")
            for drive in facts.drives
        }

    @property
    def faults(self) -> Mapping[str, Any]:
        return self.memory.faults

    def save(self) -> None:
        write_json(self._file, asdict(self.memory), 0o600)

    def drives(self) -> list[Drive]:
        """The drives that sit in their bays."""
        pulled = self.memory.pulled_drives
        return [drive for drive in self.facts.drives if drive.name not in pulled]

    def disks(self) -> list[Disk]:
        return [self._disks[drive.name] for drive in self.drives()]

    def all_disks(self) -> list[Disk]:
        """Also the pulled ones: their bytes do not go away."""
        return list(self._disks.values())

    def seen_disks(self) -> list[Disk]:
        """What software on the machine finds; a hidden drive is missing here, not in Redfish."""
        hidden = self.faults.get("hide_drive")
        return [disk for disk in self.disks() if disk.drive.name != hidden]

    def boot_disk(self) -> Disk | None:
        """The first drive with an intact boot header."""
        return next((disk for disk in self.disks() if disk.boot_header()), None)

    def wipe_fails_on(self, drive: str) -> bool:
        fault = self.faults.get("wipe_fails")
        return fault is True or fault == drive

    def log(self, message: str, severity: str = "OK", sensor: str = "System Event") -> None:
        """Add an entry to the system event log that the BMC serves."""
        memory = self.memory
        memory.log_seq += 1
        memory.log.append(
            {
                "id": str(memory.log_seq),
                "at": now(),
                "message": message,
                "severity": severity,
                "sensor": sensor,
            }
        )
        del memory.log[:-KEPT_LOG_ENTRIES]


def _load(path: Path) -> Memory:
    if not path.exists():
        return Memory()
    known = {entry.name for entry in fields(Memory)}
    stored = read_json(path)
    return Memory(**{key: value for key, value in stored.items() if key in known})
