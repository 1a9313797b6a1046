"""Power of a server that Metal3 owns: written to its BareMetalHost, read at the BMC if possible."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from gpucloud.drivers import Config, DriverError, setting
from inventory.drivers import (
    BmcDriver,
    BootDevice,
    DriveSeen,
    Inspection,
    PortSeen,
    Power,
    PowerState,
)
from inventory.drivers.bmh import HOLD, HOLD_VALUE, Host, Hosts, refuse_stopped
from inventory.drivers.kube import Kube, Obj, path_of
from inventory.drivers.redfish import Redfish, RedfishConfig

# Types of error on a host with which its poweredOn is not a reading.
BLIND = ("power management error", "registration error", "provisioned registration error")


@dataclass(frozen=True)
class Metal3PowerConfig(Config):
    kubeconfig: str = setting(
        label="Kubeconfig", help="Of the cluster with the BareMetalHosts.", secret=True
    )
    host: str = setting(label="BareMetalHost", help="Its name.")
    namespace: str = setting("default", label="Namespace")
    address: str = setting(
        "", label="BMC address", help="With it the BMC is read directly; never written."
    )
    username: str = setting("", label="BMC user")
    password: str = setting("", label="BMC password", secret=True)
    certificate: str = setting("", label="BMC certificate", help="SHA-256 fingerprint to expect.")


class Metal3Power:
    """BmcDriver over a BareMetalHost. Beside Metal3, direct Redfish only reads."""

    kind: ClassVar[str] = "metal3"
    label: ClassVar[str] = "Metal3 (BareMetalHost)"
    Config: ClassVar[type] = Metal3PowerConfig

    def __init__(self, config: Metal3PowerConfig) -> None:
        self.config = config
        self.hosts = Hosts(Kube(config.kubeconfig), config.namespace)
        self.direct = _direct(config)

    def check(self) -> list[str]:
        try:
            host = self.hosts.get(self.config.host)
        except DriverError as error:
            return [error.message]
        problems = self.direct.check() if self.direct else []
        if why := host.stopped_by():
            problems.append(f"The BareMetalHost {host.name} is {why}: Metal3 does not act on it.")
        if host.error_type:
            problems.append(f"Metal3 reports a {host.error_type} on {host.name}: {host.error}")
        return problems

    def inspect(self) -> Inspection:
        """Metal3's facts; the BMC's own where it is read directly, because Metal3 sees no GPUs."""
        host = self.hosts.get(self.config.host)
        seen = _from_metal3(host, self._hardware(host))
        if not self.direct:
            return seen
        direct = self.direct.inspect()
        merged = {f.name: getattr(direct, f.name) for f in fields(Inspection)}
        for name in (
            "vendor",
            "model",
            "serial",
            "bios_version",
            "processors",
            "memory_gib",
            "ports",
            "drives",
        ):
            merged[name] = merged[name] or getattr(seen, name)
        merged["extra"] = {**direct.extra, **seen.extra}
        return Inspection(**merged)

    def _hardware(self, host: Host) -> Obj:
        """HardwareData is the newer place; the copy in status is what older operators have."""
        path = path_of("metal3.io/v1alpha1", "hardwaredata", self.config.namespace, host.name)
        data = self.hosts.kube.get(path) or {}
        found = (data.get("spec") or {}).get("hardware") or host.status.get("hardware")
        if not found:
            raise DriverError(
                f"Metal3 has not inspected {host.name} yet; it is {host.state or 'new'}.",
                code="HOST_ERROR",
                hint="Wait until Metal3 has inspected the host, then retry.",
                wait=5,
            )
        return dict(found)

    def power(self) -> PowerState:
        """As read at the BMC, else Metal3's word: unknown while it is older than our last write."""
        if self.direct:
            return self.direct.power()
        host = self.hosts.get(self.config.host)
        written, read = host.our_last_write(), host.updated
        stale = read is None or (written is not None and read < written)
        power: Power = "on" if host.powered else "off"
        if stale or host.error_type in BLIND or host.stopped_by():
            power = "unknown"
        return PowerState(power, read, self.kind, health=_health(host))

    def set_power(self, power: Literal["on", "off"]) -> None:
        """Ask Metal3: by the hold key where a system is provisioned, else by spec.online.

        Off by the hold key is hard and at once, and stays until `on` takes the key away.
        """
        host = self.hosts.get(self.config.host)
        refuse_stopped(host)
        spec: Obj = {}
        notes: dict[str, Any] = {}
        if power == "off" and host.provisioned and host.online:
            notes = {} if host.annotations.get(HOLD) == HOLD_VALUE else {HOLD: HOLD_VALUE}
        elif power == "off":
            spec = {"online": False} if host.online else {}
        else:
            notes = {HOLD: None} if HOLD in host.annotations else {}
            spec = {} if host.online else {"online": True}
        if spec or notes:
            self.hosts.patch(host, spec, notes)

    def boot_from(self, device: BootDevice) -> None:
        raise self._metal3s("its boot order")

    def media(self, url: str | None) -> None:
        raise self._metal3s("its virtual media")

    def _metal3s(self, what: str) -> DriverError:
        return DriverError(
            f"Metal3 owns the server of {self.config.host} and {what}.",
            code="BMC_UNSUPPORTED",
            permanent=True,
            hint="Have Metal3 boot what is wanted through the host's image.",
        )


def _direct(config: Metal3PowerConfig) -> BmcDriver | None:
    """The Redfish driver, for reading only, where address and credentials are given."""
    if not config.address or not config.username:
        return None
    return Redfish(
        RedfishConfig(
            address=config.address,
            username=config.username,
            password=config.password,
            certificate=config.certificate,
        )
    )


def _health(host: Host) -> str:
    for one in host.status.get("conditions") or []:
        if one.get("type") == "Healthy" and one.get("status") in ("True", "False"):
            return {"Healthy": "OK", "Warning": "Warning"}.get(one.get("reason", ""), "Critical")
    return ""


def _from_metal3(host: Host, hardware: Obj) -> Inspection:
    vendor, cpu = hardware.get("systemVendor") or {}, hardware.get("cpu") or {}
    memory = hardware.get("ramMebibytes")
    return Inspection(
        vendor=vendor.get("manufacturer") or None,
        model=vendor.get("productName") or None,
        serial=vendor.get("serialNumber") or None,
        uuid=None,
        bios_version=((hardware.get("firmware") or {}).get("bios") or {}).get("version") or None,
        bmc_version=None,
        power="on" if host.powered else "off",
        health=_health(host) or None,
        processors=({"model": cpu.get("model"), "threads": cpu.get("count")},) if cpu else (),
        memory_gib=memory / 1024 if memory else None,
        ports=_ports(hardware),
        drives=tuple(_drive(one) for one in hardware.get("storage") or []),
        warnings=("Metal3's inspection has no GPUs and no system UUID.",),
        extra={"hostname": hardware.get("hostname"), "lldp": _lldp(hardware), "at": _now()},
    )


def _ports(hardware: Obj) -> tuple[PortSeen, ...]:
    """One port per MAC: a NIC with IPv4 and IPv6 appears twice in Metal3's list."""
    found: dict[str, PortSeen] = {}
    for nic in hardware.get("nics") or []:
        mac = str(nic.get("mac") or "").lower()
        if mac and mac not in found:
            speed = nic.get("speedGbps")
            found[mac] = PortSeen(
                str(nic.get("name") or mac), mac, None, speed * 1000 if speed else None
            )
    return tuple(found.values())


def _drive(disk: Obj) -> DriveSeen:
    kind = disk.get("type")
    return DriveSeen(
        serial=disk.get("serialNumber") or None,
        model=disk.get("model") or None,
        capacity_bytes=disk.get("sizeBytes") or None,
        protocol="NVMe" if kind == "NVME" else None,
        media="HDD" if disk.get("rotational") else "SSD" if kind else None,
        name=str(disk.get("name") or "").removeprefix("/dev/") or None,
    )


def _lldp(hardware: Obj) -> dict[str, dict[str, str]]:
    """Neighbours by port name, from which cables are proposed."""
    return {
        str(nic.get("name")): {
            "switch": str(nic["lldp"].get("switchSystemName", "")),
            "port": str(nic["lldp"].get("portID", "")),
        }
        for nic in hardware.get("nics") or []
        if nic.get("lldp")
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
