"""Power of a Metal3 server as read, and whether a tenant's system had begun to boot by then."""

from __future__ import annotations

from typing import Any

from inventory.drivers import PowerState
from inventory.drivers.bmh import Host
from provisioning.drivers import NodeSpec

# BootProgress at or past this means that a system has begun to load.
BEGUN = ("OSBootStarted", "OSRunning")


def reading(spec: NodeSpec, host: Host) -> PowerState:
    """The engine's fresh reading, else one of our own; Metal3's word only where there is no BMC."""
    if spec.power is not None:
        return spec.power
    if spec.bmc is not None:
        return spec.bmc.power()
    return PowerState("on" if host.powered else "off", host.updated, "metal3")


def told(seen: PowerState) -> dict[str, Any]:
    at = seen.at.isoformat(timespec="milliseconds") if seen.at else None
    return {"power": seen.power, "read_at": at, "via": seen.via}


def had_begun(spec: NodeSpec, host: Host, seen: PowerState) -> bool:
    """Whether the tenant's system began to load: by BootProgress, else by how late the off is read.

    A reading from before the power-on that ends an install may show the ramdisk; it does not count.
    """
    powered_on = host.operation("provision", "end")
    if seen.at is None or powered_on is None or seen.at < powered_on:
        return False
    if seen.boot_progress:
        return seen.boot_progress in BEGUN
    return seen.power == "off" and (seen.at - powered_on).total_seconds() > spec.post_seconds
