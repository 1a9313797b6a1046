"""Inspections: start one, and keep what the BMC told as the server's inventory."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud.drivers import DriverError
from gpucloud.engine import steps
from gpucloud.problems import NotAllowed
from gpucloud.text import fit, plain, whole
from inventory.drivers import Inspection
from inventory.lifecycle import SERVER
from inventory.models import Drive, Gpu, Interface, Server
from provisioning.models import Operation


def start(server: Server, actor: str, *, declare_blank: bool = False) -> Operation:
    """Begin an inspection; refused while something else runs on the server or a claim holds it."""
    if server.operations.filter(state="active").exists():
        raise NotAllowed(f"{server} has an operation under way; inspect it when that has ended.")
    with transaction.atomic():
        SERVER.move(server, "inspect", actor, code="", problem="")
        operation = Operation.objects.create(
            kind=Operation.Kind.INSPECT,
            server=server,
            actor=actor,
            data={"declare_blank": declare_blank},
        )
        steps.begin("operation", operation.uid, ["inspect"])
    return operation


def keep(server: Server, seen: Inspection) -> None:
    """Store an inspection: facts, GPUs, drives, and what is known of the ports. Ports are never
    invented or dropped.
    """
    seen = plain(seen)
    same = (
        Server.objects.filter(system_uuid__iexact=seen.uuid or "-")
        .exclude(pk=server.pk)
        .exclude(state="retired")
    )
    if seen.uuid and (other := same.first()):
        raise DriverError(
            f"The BMC of {server} says system UUID {seen.uuid}, which is {other}'s.",
            code="BMC_ERROR",
            permanent=True,
            hint="Correct the BMC address of one of them.",
        )
    with transaction.atomic():
        Server.objects.filter(pk=server.pk).update(
            vendor=fit(Server, "vendor", seen.vendor),
            model=fit(Server, "model", seen.model),
            serial=fit(Server, "serial", seen.serial),
            system_uuid=fit(Server, "system_uuid", seen.uuid).lower(),
            facts=_facts(seen),
            inspected=Now(),
            health=fit(Server, "health", seen.health),
            health_at=Now(),
            rev=F("rev") + 1,
        )
        server.gpus.all().delete()
        Gpu.objects.bulk_create(
            Gpu(
                server=server,
                model=fit(Gpu, "model", g.model),
                serial=fit(Gpu, "serial", g.serial),
                gpu_uuid=fit(Gpu, "gpu_uuid", g.uuid),
                slot=fit(Gpu, "slot", g.slot),
                memory_bytes=whole(g.memory_bytes),
            )
            for g in seen.gpus
        )
        _keep_drives(server, seen)
        for port in seen.ports:
            Interface.objects.filter(server=server, mac=port.mac).update(
                link_state=fit(Interface, "link_state", port.link),
                **({"speed_mbps": port.speed_mbps} if port.speed_mbps else {}),
            )
    server.refresh_from_db()


def _keep_drives(server: Server, seen: Inspection) -> None:
    """Bring the drive set in line;

    a drive without a serial cannot be told apart and is a warning, not a row.
    """
    serials = {fit(Drive, "serial", d.serial) for d in seen.drives if d.serial}
    server.drives.exclude(serial__in=serials).delete()
    for drive in seen.drives:
        if drive.serial:
            Drive.objects.update_or_create(
                server=server,
                serial=fit(Drive, "serial", drive.serial),
                defaults={
                    **{
                        name: fit(Drive, name, getattr(drive, name))
                        for name in ("model", "name", "protocol", "media")
                    },
                    "capacity_bytes": whole(drive.capacity_bytes),
                },
            )


def _facts(seen: Inspection) -> dict[str, Any]:
    return {
        "bios_version": seen.bios_version,
        "bmc_version": seen.bmc_version,
        "memory_gib": seen.memory_gib,
        "processors": list(seen.processors),
        "ports": [
            {
                "name": p.name,
                "mac": p.mac,
                "link": p.link,
                "speed_mbps": p.speed_mbps,
                "kind": p.kind,
            }
            for p in seen.ports
        ],
        "warnings": list(seen.warnings),
        **seen.extra,
    }
