"""A BMC in memory, with delays and faults: what the other drivers promise, without a server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ClassVar, Literal

from gpucloud import drivers
from gpucloud.drivers import DriverError, check_budget, setting
from inventory.drivers import (
    BootDevice,
    DriveSeen,
    GpuSeen,
    Inspection,
    PortSeen,
    Power,
    PowerState,
)


@dataclass(frozen=True)
class FakeBmcConfig(drivers.Config):
    """Instances of the same name share one server, as two logins to one BMC do."""

    name: str = setting("fake", label="Name of the server in memory")
    password: str = setting("fake", label="Password", secret=True)
    gpus: int = setting(0, label="Number of GPUs")
    looks: int = setting(0, label="Looks until the power has changed")


@dataclass
class FakeServer:
    """The server itself. Tests put words into `faults` and read the rest.

    Faults: unreachable, ignore_power, ignore_boot, ignore_media.
    """

    facts: Inspection
    password: str = "fake"
    power: Power = "off"
    boot: BootDevice = "none"
    media: str | None = None
    faults: set[str] = field(default_factory=set)
    writes: list[tuple[str, str | None]] = field(default_factory=list)
    health: str = "OK"
    boot_progress: str = ""
    turning: tuple[int, Power] | None = None

    def look(self) -> Power:
        """The power now; a change under way comes one look nearer."""
        if self.turning:
            left, power = self.turning
            self.turning = (left - 1, power) if left > 0 else None
            if self.turning is None:
                self.power = power
        return self.power


class FakeBmc:
    """BmcDriver over a FakeServer."""

    kind: ClassVar[str] = "fake"
    label: ClassVar[str] = "Fake BMC (in memory)"
    Config: ClassVar[type] = FakeBmcConfig
    worlds: ClassVar[dict[str, FakeServer]] = {}

    def __init__(self, config: FakeBmcConfig) -> None:
        self._config = config
        made = FakeServer(_facts(config.name, config.gpus))
        self.server = self.worlds.setdefault(config.name, made)

    def check(self) -> list[str]:
        try:
            self._reach()
        except DriverError as error:
            return [f"{error.message} {error.hint}"]
        return []

    def inspect(self) -> Inspection:
        self._reach()
        return replace(self.server.facts, power=self.server.look())

    def power(self) -> PowerState:
        self._reach()
        return PowerState(
            power=self.server.look(),
            at=datetime.now(UTC),
            via=self.kind,
            health=self.server.health,
            boot_progress=self.server.boot_progress,
        )

    def set_power(self, power: Literal["on", "off"]) -> None:
        self._reach()
        if self.server.power == power:
            return
        self._write("power", power)
        if "ignore_power" not in self.server.faults:
            if self._config.looks:
                self.server.turning = (self._config.looks, power)
            else:
                self.server.power = power

    def boot_from(self, device: BootDevice) -> None:
        self._reach()
        if self.server.boot == device:
            return
        self._write("boot", device)
        if "ignore_boot" in self.server.faults:
            raise _ignored("BOOT_IGNORED", f"the boot device {device}")
        self.server.boot = device

    def media(self, url: str | None) -> None:
        self._reach()
        if self.server.media == url:
            return
        self._write("media", url)
        if "ignore_media" in self.server.faults:
            raise _ignored("MEDIA_IGNORED", "the virtual media")
        self.server.media = url

    def _reach(self) -> None:
        if "unreachable" in self.server.faults:
            raise DriverError(
                f"{self._config.name} does not answer.",
                code="BMC_UNREACHABLE",
                hint="Check cable, address and BMC, then retry.",
            )
        if self._config.password != self.server.password:
            raise DriverError(
                f"{self._config.name} refused the user name or password.",
                code="BMC_LOGIN",
                permanent=True,
                hint="Set the right credentials on the server's page, then retry.",
            )

    def _write(self, verb: str, value: str | None) -> None:
        check_budget(f"{verb} {self._config.name}")
        self.server.writes.append((verb, value))


def _ignored(code: str, what: str) -> DriverError:
    return DriverError(
        f"The BMC accepted {what} and did not keep it.", code=code, hint="Retry; reset the BMC."
    )


def _facts(name: str, gpus: int) -> Inspection:
    """Hardware that follows from the name, so that two servers never share a serial or a MAC."""
    number = sum(ord(letter) * 257**place for place, letter in enumerate(name)) % 0xFFFFFF
    tail = ":".join(f"{number:06x}"[i : i + 2] for i in (0, 2, 4))
    return Inspection(
        vendor="Fake",
        model="Server 1",
        serial=f"FAKE{number:06X}",
        uuid=f"00000000-0000-4000-8000-{number:012x}",
        bios_version="1.0",
        bmc_version="1.0",
        power="off",
        health="OK",
        processors=({"model": "Fake CPU", "cores": 32, "threads": 64, "socket": "CPU1"},),
        memory_gib=256,
        gpus=tuple(
            GpuSeen("Fake GPU", f"G{number:06X}{n}", None, str(n + 1), 80 << 30)
            for n in range(gpus)
        ),
        ports=(PortSeen("eno1", f"02:00:00:{tail}", "up", 25000),),
        drives=(DriveSeen(f"D{number:06X}", "Fake SSD", 960 * 10**9, "NVMe", "SSD", "nvme0n1"),),
    )
