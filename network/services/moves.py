"""Moving a server's ports between segments, always through quarantine, read back after each
change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud.drivers import DriverError, Progress
from inventory.models import Interface, Server
from network.drivers import AttachSpec, PortRef
from network.models import Attachment, Fabric, Link, Segment
from network.services.segments import driver_of, role_segment, spec_of

# The ref of a step between two changes.
NO_CHANGE = "-"


def plan_interfaces(server: Server, roles: Iterable[str]) -> list[Interface]:
    """The server's ports in a NIC plan (all of them when the plan is empty);

    NO_CABLE_PLAN when one has no cable.
    """
    wanted = set(roles)
    ports = [
        one
        for one in server.interfaces.select_related("link__fabric")
        if not wanted or wanted & set(one.roles)
    ]
    loose = [one.name for one in ports if not hasattr(one, "link")]
    if loose or not ports:
        raise DriverError(
            f"{server} has no cable recorded for {', '.join(loose) or 'any port of the NIC plan'}.",
            code="NO_CABLE_PLAN",
            permanent=True,
            hint="Record the cable on the server's page.",
        )
    return ports


def boot_only(server: Server, roles: Iterable[str]) -> list[Interface]:
    """Boot ports outside of the NIC plan: they go to quarantine while a tenant has the server."""
    wanted = set(roles)
    return [
        one
        for one in server.interfaces.select_related("link__fabric")
        if "boot" in one.roles and wanted and not wanted & set(one.roles) and hasattr(one, "link")
    ]


def fabrics_of(ports: Iterable[Interface]) -> list[Fabric]:
    return list({one.link.fabric_id: one.link.fabric for one in ports}.values())


def move(
    ports: list[Interface], target: Segment, claim_uid: UUID | None, ref: str = ""
) -> Progress:
    """One look at a move of these access ports to `target`: quarantine first, then the target.

    Done only when every port was read back in `target`. No moment has a port in two tenants,
    because the port is read back in quarantine before the target is asked for. `ref` carries
    which change is under way and the fabric's own id of it; a change begun is followed to its
    end.
    """
    quarantine = role_segment(target.fabric, Segment.Role.QUARANTINE)
    seen = _read(target.fabric, ports)
    ref = "" if ref == NO_CHANGE else ref
    under_way = ref.partition(":")[0]
    if not under_way and not _outside(ports, seen, target):
        _note(ports, target, claim_uid, seen, applied=True)
        words = f"{_names(ports)} read back in {target} (VLAN {target.vlan})."
        return Progress(True, words, evidence={"after": _evidence(ports, seen)})
    isolated = not _outside(ports, seen, quarantine, target)
    if under_way == "attach" or (not under_way and isolated):
        return _change(ports, target, "attach", ref, {}, claim_uid, target)
    before = {} if under_way else {"before": _evidence(ports, seen)}
    return _change(ports, quarantine, "quarantine", ref, before, claim_uid, target)


def _outside(
    ports: list[Interface], seen: dict[int, dict[str, Any]], *segments: Segment
) -> list[Interface]:
    """Ports that are in none of these segments, or in more than one."""
    vlans = {segment.vlan for segment in segments}
    return [one for one in ports if seen[one.pk]["access"] not in vlans or seen[one.pk]["tagged"]]


def _change(
    ports: list[Interface],
    into: Segment,
    kind: str,
    ref: str,
    evidence: dict[str, Any],
    claim_uid: UUID | None,
    target: Segment,
) -> Progress:
    """Follow one change of all ports to its end, and read them back when the fabric calls
    it done.
    """
    if not ref:
        _note(ports, target if kind == "attach" else None, claim_uid, _seen(ports), applied=False)
    specs = tuple(
        AttachSpec(PortRef(one.link.switch, one.link.port), spec_of(into)) for one in ports
    )
    change = driver_of(into.fabric).attach(specs, ref.partition(":")[2])
    if not change.done:
        words = f"The switch is taking {_names(ports)} to {into} (VLAN {into.vlan})."
        return Progress(False, words, f"{kind}:{change.ref}", change.wait, evidence=evidence)
    after = _read(into.fabric, ports)
    if wrong := _outside(ports, after, into):
        found = ", ".join(str(after[one.pk]["access"]) for one in wrong)
        raise DriverError(
            f"The switch applied the change, but {_names(wrong)} reads VLAN {found} instead of "
            f"{into.vlan}.",
            code="PORT_MISMATCH",
        )
    evidence = {**evidence, f"in_{into.role}": _evidence(ports, after)}
    _note(ports, into, claim_uid if into == target else None, after, applied=True)
    words = f"{_names(ports)} read back in {into} (VLAN {into.vlan})."
    if into == target:
        return Progress(True, words, evidence={**evidence, "after": _evidence(ports, after)})
    # A blank would keep the ref of the change that has ended.
    return Progress(False, words, NO_CHANGE, 0.05, evidence=evidence)


def to_quarantine(ports: list[Interface], ref: str = "") -> Progress:
    """Take ports to quarantine and read them back there."""
    fabric = ports[0].link.fabric
    return move(ports, role_segment(fabric, Segment.Role.QUARANTINE), None, ref)


def note_where(server: Server) -> dict[str, Any]:
    """Read where the server's cabled ports are now, and keep it; nothing is moved or judged.

    Ports found in the provisioning segment are from then on known to be wanted there.
    """
    cabled = [
        one for one in server.interfaces.select_related("link__fabric") if hasattr(one, "link")
    ]
    found: list[dict[str, Any]] = []
    for fabric in fabrics_of(cabled):
        ports = [one for one in cabled if one.link.fabric_id == fabric.pk]
        home = role_segment(fabric, Segment.Role.PROVISIONING)
        seen = _read(fabric, ports)
        parked = [one for one in ports if not _outside([one], seen, home)]
        if server.claim is None:
            _note(parked, home, None, seen, applied=True)
        found += _evidence(ports, seen)
    return {"ports": found}


def read_back(ports: list[Interface], target: Segment) -> dict[str, Any]:
    """Read the ports now; PORT_MISMATCH unless all are in `target` and nowhere else. Returns the
    evidence.
    """
    seen = _read(target.fabric, ports)
    wrong = [
        one for one in ports if seen[one.pk]["access"] != target.vlan or seen[one.pk]["tagged"]
    ]
    if wrong:
        raise DriverError(
            f"{_names(wrong)} should be in {target} (VLAN {target.vlan}) and reads VLAN "
            f"{', '.join(str(seen[one.pk]['access']) for one in wrong)}.",
            code="PORT_MISMATCH",
        )
    return {"ports": _evidence(ports, seen), "segment": target.name, "vlan": target.vlan}


def _seen(ports: list[Interface]) -> dict[int, dict[str, Any]]:
    """What was read of the ports last."""
    return {one.pk: {"access": one.link.seen_vlan, "tagged": one.link.seen_tagged} for one in ports}


def _read(fabric: Fabric, ports: list[Interface]) -> dict[int, dict[str, Any]]:
    seen = driver_of(fabric).ports(tuple(PortRef(one.link.switch, one.link.port) for one in ports))
    found: dict[int, dict[str, Any]] = {}
    for one, port in zip(ports, seen, strict=True):
        found[one.pk] = {"access": port.access, "tagged": list(port.tagged)}
        Link.objects.filter(pk=one.link.pk).update(
            seen_vlan=port.access, seen_tagged=list(port.tagged), seen_at=Now()
        )
    return found


def _evidence(ports: list[Interface], seen: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "interface": one.name,
            "switch": one.link.switch,
            "port": one.link.port,
            "roles": one.roles,
            "vlan": seen[one.pk]["access"],
            "tagged": seen[one.pk]["tagged"],
        }
        for one in ports
    ]


def _note(
    ports: list[Interface],
    target: Segment | None,
    claim_uid: UUID | None,
    seen: dict[int, dict[str, Any]],
    applied: bool,
) -> None:
    """Bring the Attachment rows in line:

    the old access ends, the new one is wanted, then applied.
    """
    with transaction.atomic():
        for one in ports:
            rows = Attachment.objects.filter(interface=one, mode="access").exclude(state="gone")
            stale = rows.exclude(segment=target) if target else rows
            stale.update(state="gone", observed=False, observed_at=Now(), rev=F("rev") + 1)
            if target is None:
                continue
            state = "applied" if applied else "applying"
            fields = {
                "state": state,
                "observed": applied,
                "observed_at": Now(),
                "evidence": seen[one.pk],
                "claim_uid": claim_uid,
            }
            same = rows.filter(segment=target)
            if same.filter(state=state, observed=applied).exists():
                same.update(observed_at=Now(), evidence=seen[one.pk])
            elif not same.update(**fields, rev=F("rev") + 1):
                Attachment.objects.create(
                    interface=one, segment=target, mode="access", since=Now(), **fields
                )


def _names(ports: list[Interface]) -> str:
    return ", ".join(f"{one.link.switch} {one.link.port}" for one in ports)
