"""What a BareMetalHost says, kept in its server's row: Metal3's state, its problem, its power."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from gpucloud import history
from gpucloud.engine.steps import look_now
from gpucloud.live import publish
from inventory.drivers.bmh import Host
from inventory.drivers.metal3 import BLIND
from inventory.models import KubernetesConnection, Server

ACTOR = "metal3"
VIA = "metal3"
# Times alone are written again when the row's are older than this.
REFRESH = timedelta(seconds=50)
STATE_LENGTH, PROBLEM_LENGTH = 60, 1000
# The shortest of the three columns.
ADDRESS_LENGTH = 45


@dataclass(frozen=True)
class Repair:
    """Annotations that belong on a host and are not there."""

    server: str
    name: str
    version: str
    annotations: dict[str, str]


def servers_of(connection: int, namespace: str) -> dict[str, Server]:
    """The servers whose hosts live in this namespace, by engine id."""
    rows = Server.objects.filter(connection=connection, engine_id__startswith=f"{namespace}/")
    rows = rows.exclude(state=Server.State.RETIRED).select_related("bmc")
    return {server.engine_id: server for server in rows}


def mirror(connection: int, raw: dict[str, Any]) -> Repair | None:
    """Keep what one host says now and wake its operation; the repair its annotations need."""
    host = Host(raw)
    engine_id = f"{host.meta['namespace']}/{host.name}"
    rows = Server.objects.filter(connection=connection, engine_id=engine_id)
    server = rows.exclude(state=Server.State.RETIRED).select_related("bmc").first()
    if server is None:
        return None
    # First of all: Metal3's Stop has seconds between the image's end and the first boot.
    wake(server)
    _keep(server, _told(server, host))
    return _repair(server, host)


def mirror_all(connection: int, namespace: str, raws: list[dict[str, Any]]) -> list[Repair]:
    """Keep a whole namespace: a server whose host is not in it has lost it."""
    repairs = [mirror(connection, raw) for raw in raws]
    there = {f"{raw['metadata']['namespace']}/{raw['metadata']['name']}" for raw in raws}
    for engine_id in servers_of(connection, namespace).keys() - there:
        gone(connection, engine_id)
    return [repair for repair in repairs if repair]


def gone(connection: int, engine_id: str) -> None:
    """The host's object is not there. That says nothing of the machine: not off, not wiped."""
    rows = Server.objects.filter(connection=connection, engine_id=engine_id)
    for server in rows.exclude(state=Server.State.RETIRED).select_related("bmc"):
        wake(server)
        told: dict[str, Any] = {
            "engine_state": "",
            "engine_problem": "The BareMetalHost is gone from its cluster.",
            "engine_problem_code": "HOST_MISSING",
        }
        if not _read_directly(server):
            told |= {"power": Server.Power.UNKNOWN, "power_problem": told["engine_problem"]}
        _keep(server, told)


def confirm(connection: int, namespace: str) -> None:
    """The watch is whole: what was told last still holds, Metal3's power readings included."""
    now = timezone.now()
    placed = Server.objects.filter(
        connection=connection, engine_id__startswith=f"{namespace}/", engine_at__lt=now - REFRESH
    )
    old = placed.exclude(state=Server.State.RETIRED).exclude(engine_state="")
    # Read first: an idle watch must not take SQLite's write lock every minute.
    if not (keys := list(old.values_list("pk", flat=True))):
        return
    rows = Server.objects.filter(pk__in=keys)
    rows.update(engine_at=now)
    read = rows.filter(power_via=VIA).exclude(power=Server.Power.UNKNOWN)
    read.filter(Q(bmc=None) | Q(bmc__address="")).update(power_at=now)


def note_connection(connection: int, problem: str) -> None:
    """Whether the connection's API can be followed, with the time when that was found."""
    rows = KubernetesConnection.objects.filter(pk=connection)
    rows.exclude(problem=problem).update(problem=problem, checked=timezone.now(), rev=F("rev") + 1)


def wake(server: Server) -> None:
    """Have the engine look at the server's active operation at once."""
    for uid in server.operations.filter(state="active").values_list("uid", flat=True):
        look_now("operation", uid)


def note_repair(repair: Repair, connection: int) -> None:
    server = Server.objects.filter(connection=connection, name=repair.server).first()
    if server is not None:
        names = ", ".join(sorted(repair.annotations))
        history.record(
            server,
            "dhcp repaired",
            "watcher",
            f"The provisioning address of {server} was missing on its BareMetalHost and was put"
            f" back: {names}.",
        )


def _told(server: Server, host: Host) -> dict[str, Any]:
    """The row's fields as this host tells them."""
    problem, code = "", ""
    if host.error_type or host.error:
        problem, code = f"{host.error_type}: {host.error}".strip(": "), "HOST_ERROR"
    elif why := host.stopped_by():
        problem, code = f"The BareMetalHost is {why}.", "HOST_PAUSED"
    told: dict[str, Any] = {
        "engine_state": host.state[:STATE_LENGTH],
        "engine_problem": problem[:PROBLEM_LENGTH],
        "engine_problem_code": code,
    }
    if not _read_directly(server):
        told |= _power(host)
    if not server.provisioning_address:
        told |= _learned(host)
    return told


def _power(host: Host) -> dict[str, Any]:
    """Metal3's own reading, which is worth nothing while it cannot reach the BMC."""
    powered = host.status.get("poweredOn")
    if host.error_type in BLIND or not isinstance(powered, bool):
        why = "Metal3 cannot read the power." if host.error_type in BLIND else ""
        return {"power": Server.Power.UNKNOWN, "power_problem": why}
    power = Server.Power.ON if powered else Server.Power.OFF
    return {"power": power, "power_problem": "", "power_via": VIA}


def _learned(host: Host) -> dict[str, str]:
    """The provisioning address of a host that has one and whose server's row has none yet."""
    names = {"address": "ip-address", "gateway": "gateway", "dns": "dns-servers"}
    notes = host.annotations
    found = {
        f"provisioning_{ours}": notes.get(f"metal3.vcluster.com/{theirs}", "")
        for ours, theirs in names.items()
    }
    fits = all(len(value) <= ADDRESS_LENGTH for value in found.values())
    return found if fits and found["provisioning_address"] else {}


def _read_directly(server: Server) -> bool:
    bmc = getattr(server, "bmc", None)
    return bmc is not None and bool(bmc.address)


def _keep(server: Server, told: dict[str, Any]) -> None:
    now = timezone.now()
    changed = {name: value for name, value in told.items() if getattr(server, name) != value}
    old = server.engine_at is None or now - server.engine_at > REFRESH
    if not changed and not old:
        return
    fields: dict[str, Any] = {**changed, "engine_at": now}
    if told.get("power_via") == VIA:
        fields["power_at"] = now
    with transaction.atomic():
        if changed:
            fields["rev"] = F("rev") + 1
        Server.objects.filter(pk=server.pk).update(**fields)
        if "engine_problem" in changed and changed["engine_problem"]:
            code, words = told["engine_problem_code"], changed["engine_problem"]
            history.record(server, "engine problem", ACTOR, words, code=code)
        elif "engine_problem" in changed:
            history.record(server, "engine well", ACTOR, f"Metal3 has no problem with {server}.")
        if changed:
            publish(server)


def _repair(server: Server, host: Host) -> Repair | None:
    wanted = {
        "ip-address": server.provisioning_address,
        "gateway": server.provisioning_gateway,
        "dns-servers": server.provisioning_dns,
    }
    missing = host.dhcp_repair(wanted) if server.provisioning_address else {}
    if not missing or host.meta.get("deletionTimestamp"):
        return None
    return Repair(server.name, host.name, str(host.meta["resourceVersion"]), missing)
