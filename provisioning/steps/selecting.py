"""Select (which server, and why) and Inspect (what it is made of)."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from gpucloud import history
from gpucloud.drivers import DriverError, Progress
from gpucloud.models import Step
from gpucloud.problems import NotAllowed, Stale
from inventory.lifecycle import SERVER
from inventory.models import Server
from inventory.services.bmcs import driver_of as bmc_driver_of
from inventory.services.bmcs import pin
from inventory.services.servers import note_power
from network.services import moves
from provisioning.lifecycle import CLAIM
from provisioning.models import NodeClaim, Operation
from provisioning.select import Candidate, Selection, Wanted, select
from provisioning.services import inspections
from provisioning.services.claims import position
from provisioning.services.providers import of_provider


def candidates(claim: NodeClaim) -> list[Candidate]:
    """Every server of the claim's provider as selection sees it."""
    now = timezone.now()
    servers = of_provider(claim.node_type.provider)
    pks = [s.pk for s in servers]
    held = dict(NodeClaim.objects.live().filter(server__in=pks).values_list("server_id", "name"))
    busy = set(
        Operation.objects.filter(server__in=pks, state="active").values_list("server_id", flat=True)
    )
    plan = set(claim.node_type.nic_plan)
    found = []
    rows = (
        Server.objects.filter(pk__in=pks)
        .select_related("rack")
        .prefetch_related("interfaces__link", "gpus")
    )
    for server in rows:
        ports = [i for i in server.interfaces.all() if not plan or plan & set(i.roles)]
        models = tuple(sorted({g.model for g in server.gpus.all()}))
        found.append(
            Candidate(
                uid=str(server.uid),
                name=server.name,
                labels=server.labels,
                state=server.state,
                clean=server.clean_tenancy == server.tenancy,
                maintenance=server.maintenance,
                quarantined=server.quarantined,
                health=server.health,
                held_by=held.get(server.pk, ""),
                active_operation=server.pk in busy,
                cabled=bool(ports) and all(hasattr(i, "link") for i in ports),
                refused=server.engine_problem,
                rack=server.rack.name if server.rack else "",
                provisioning_address=bool(server.provisioning_address),
                gpu_count=len(server.gpus.all()),
                gpu_models=models,
                idle_seconds=(now - server.state_since).total_seconds(),
            )
        )
    return found


def select_server(operation: Operation, step: Step) -> Progress:
    """Bind the best fitting server by one conditional UPDATE, or wait for capacity keeping the
    place in the queue.
    """
    claim = operation.claim
    assert claim is not None
    if claim.server_id is not None:
        return Progress(True, f"{claim.server} was chosen.")
    wanted = Wanted(claim.node_type.selector, claim.node_type.sku)
    selection = select(candidates(claim), wanted)
    fits = [row for row in selection.considered if row.result != "Refused"]
    place, waiting = position(claim)
    if not selection.chosen or place > len(fits):
        return _wait(claim, selection, place, waiting)
    # The older claims of the queue take the better ones; this one takes the server of its own
    # place.
    chosen = fits[place - 1]
    if not _bind(operation, claim, chosen.uid, selection):
        return Progress(
            False,
            f"{chosen.name} was taken by another claim at this moment; choosing again.",
            wait=0.2,
        )
    return Progress(
        True,
        f"{chosen.name} chosen from {len(fits)} that fit; {len(selection.considered)} considered.",
        evidence={"chosen": chosen.name, "fit": len(fits), "considered": len(selection.considered)},
    )


def _wait(claim: NodeClaim, selection: Selection, place: int, waiting: int) -> Progress:
    matching = [row for row in selection.considered if row.checks[0].passed]
    uncabled = [
        row.name for row in matching if [c.name for c in row.checks if not c.passed] == ["Cabled"]
    ]
    if uncabled:
        raise DriverError(
            f"{', '.join(uncabled)} would fit, but a port of its NIC plan has no cable recorded.",
            code="NO_CABLE_PLAN",
            hint="Record the cable on the server's page.",
            wait=10,
        )
    evidence: dict[str, Any] = {
        "code": "WAITING_FOR_CAPACITY",
        "position": place,
        "waiting": waiting,
        "matching": len(matching),
    }
    if claim.selection != selection.as_json():
        NodeClaim.objects.filter(pk=claim.pk).update(
            selection=selection.as_json(), code="WAITING_FOR_CAPACITY"
        )
    return Progress(
        False,
        f"Waiting for a free {claim.node_type}: place {place} of {waiting}; "
        f"{len(matching)} match, none of them is free.",
        wait=5,
        evidence=evidence,
    )


def _bind(operation: Operation, claim: NodeClaim, uid: str, selection: Selection) -> bool:
    server = Server.objects.get(uid=uid)
    try:
        with transaction.atomic():
            # One UPDATE takes the server: still on offer, clean, in service, of the tenancy that
            # was read.
            # All on the row itself: what another table or a subquery says may be older.
            free = Server.objects.usable().filter(pk=server.pk, tenancy=server.tenancy)
            if not free.update(
                state=Server.State.HELD,
                tenancy=F("tenancy") + 1,
                state_since=timezone.now(),
                rev=F("rev") + 1,
            ):
                return False
            server.refresh_from_db()
            CLAIM.move(
                claim,
                "bind",
                "engine",
                f"{claim} got {server}.",
                server=server,
                tenancy=server.tenancy,
                code="",
                selection=selection.as_json(),
                guard=Q(server__isnull=True, release_wanted=False),
            )
            # Refused by its index when another operation is active on the server.
            if not Operation.objects.filter(pk=operation.pk, state="active", server=None).update(
                server=server, rev=F("rev") + 1
            ):
                raise IntegrityError("the operation ended meanwhile")
            history.record(
                server, "hold", "engine", f"{server} is held by {claim}.", tenant=claim.tenant
            )
    except (IntegrityError, Stale, NotAllowed):
        return False
    operation.refresh_from_db()
    return True


def inspect(operation: Operation, step: Step) -> Progress:
    """Read the hardware at the BMC and keep it;

    then the server is enrolled, or on offer again when still clean.
    """
    server = operation.server
    assert server is not None
    driver = bmc_driver_of(server.bmc)
    seen = driver.inspect()
    if seen.certificate:
        pin(server.bmc, seen.certificate, operation.actor)
    inspections.keep(server, seen)
    note_power(server, driver.power())
    evidence: dict[str, Any] = {"warnings": list(seen.warnings)}
    try:
        evidence |= moves.note_where(server)
    except DriverError as error:
        # The hardware is known all the same; ports are read again before anything is moved.
        evidence["ports_not_read"] = error.message
    if server.state == Server.State.INSPECTING:
        SERVER.move(server, "inspected", operation.actor)
    gpus = f"{len(seen.gpus)} GPUs" if seen.gpus else "no GPUs"
    return Progress(
        True,
        f"{seen.vendor or 'Unknown vendor'} {seen.model or ''}: {gpus}, {len(seen.drives)} drives, "
        f"{len(seen.ports)} ports.",
        evidence=evidence,
    )
