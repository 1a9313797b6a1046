"""The BmcDriver protocol and the values that cross it: one door for the power of one server."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol

Power = Literal["on", "off", "unknown"]
BootDevice = Literal["none", "pxe", "cd", "hdd"]


@dataclass(frozen=True)
class PowerState:
    """Power as read at the BMC.

    `at` is when it was read, None when never; `via` says who told (redfish, metal3).
    """

    power: Power
    at: datetime | None
    via: str = ""
    health: str = ""
    boot_progress: str = ""


@dataclass(frozen=True)
class GpuSeen:
    model: str
    serial: str | None = None
    uuid: str | None = None
    slot: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class PortSeen:
    """One network port; `mac` in lower case with colons, `link` up, down or None, `speed_mbps`
    None when not told.
    """

    name: str
    mac: str
    link: str | None = None
    speed_mbps: int | None = None
    kind: str = "ethernet"


@dataclass(frozen=True)
class DriveSeen:
    serial: str | None
    model: str | None
    capacity_bytes: int | None
    protocol: str | None = None
    media: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Inspection:
    """The hardware as read in one pass. Absent is None, never a blank or an invented value."""

    vendor: str | None
    model: str | None
    serial: str | None
    uuid: str | None
    bios_version: str | None
    bmc_version: str | None
    power: Power
    health: str | None
    processors: tuple[dict[str, Any], ...] = ()
    memory_gib: float | None = None
    gpus: tuple[GpuSeen, ...] = ()
    ports: tuple[PortSeen, ...] = ()
    drives: tuple[DriveSeen, ...] = ()
    warnings: tuple[str, ...] = ()
    certificate: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class BmcDriver(Protocol):
    """Power, boot and facts of one server. Raises DriverError only; never sleeps, loops or touches
    the ORM.

    Writes are accepted or refused; whether they worked is told by the next `power`, `boot` or
    `media` read.
    `name` attributes: `kind` is the settings.DRIVERS key.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    Config: ClassVar[type]

    def __init__(self, config: Any) -> None: ...

    def check(self) -> list[str]:
        """Return what is wrong with address, credentials and reachability, in sentences;

        empty means usable. < 5 s.
        """

    def inspect(self) -> Inspection: ...

    def power(self) -> PowerState: ...

    def set_power(self, power: Literal["on", "off"]) -> None:
        """Ask for the target state with On or ForceOff only.

        Setting what already is sends nothing.
        """

    def boot_from(self, device: BootDevice) -> None:
        """Boot once from this device at the next power-on;

        `none` clears the override. Read back before returning.
        """

    def media(self, url: str | None) -> None:
        """Insert this image in the first CD slot, or eject with None.

        Read back before returning; idempotent.
        """
