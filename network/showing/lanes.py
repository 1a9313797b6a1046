"""Lanes: who sits in which segment, running, moving, expected or drifting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from django.db.models import Q

from gpucloud import ui
from inventory import showing as servers
from inventory.models import Server
from network.models import Attachment, Fabric, Link, Segment
from network.showing.ports import inside, ports, wanted_of
from network.showing.readers import Reader
from provisioning.models import NodeClaim

ROLES: Final = ("provisioning", "quarantine", "standby", "tenant")
# Steps after which a claim's ports are on their way.
ON_THE_WAY: Final = ("move", "return")
PORTS_SHOWN: Final = 100


@dataclass
class Seat:
    """One server on one fabric: where its ports are wanted, where they were read."""

    server: Server
    rows: list[Attachment] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @property
    def seen(self) -> set[int]:
        return {link.seen_vlan for link in self.links if link.seen_vlan}


def lanes(fabric: Fabric, reader: Reader) -> dict[str, Any]:
    """The lanes of one fabric, the shared endpoints beside them, and the figures of its head."""
    found = sorted(reader.segments().filter(fabric=fabric), key=_order)
    boxes: dict[int, list[ui.Endpoint]] = defaultdict(list)
    for seat in _seats(fabric, found, reader):
        for segment, endpoint in _places(seat, found, reader):
            boxes[segment.pk].append(endpoint)
    shared = _shared(found)
    rows = sorted(
        (one for one in found if one.role in ROLES),
        key=lambda one: (_order(one)[0], sorted(shared.get(one.pk, ())) or ["~"], one.vlan),
    )
    states = [box.state for row in boxes.values() for box in row]
    return {
        "fabric": fabric,
        "lanes": [_lane(one, boxes[one.pk], reader) for one in rows],
        "shared": _spans(rows, shared),
        "oob": next((one for one in found if one.role == "oob"), None),
        "drifts": states.count("drift"),
        "endpoints": len(states),
    }


def fabric_panel(fabric: Fabric, reader: Reader) -> dict[str, Any]:
    """What the page shows of one fabric; ports are for people of the platform."""
    rows = ports(fabric) if reader.staff else []
    read = [row.at for row in rows if row.at]
    return {
        **lanes(fabric, reader),
        "staff": reader.staff,
        "ports": rows[:PORTS_SHOWN],
        "port_count": len(rows),
        "same": sum(row.verdict[1] == "good" for row in rows),
        "read_at": max(read, default=None),
    }


def _order(segment: Segment) -> tuple[int, int]:
    return (ROLES.index(segment.role) if segment.role in ROLES else len(ROLES)), segment.vlan


def _seats(fabric: Fabric, segments: Sequence[Segment], reader: Reader) -> list[Seat]:
    """Every server with a cable in the fabric; for tenants those of their claims."""
    cabled = Q(interfaces__link__fabric=fabric)
    if not reader.staff:
        cabled &= Q(claims__in=NodeClaim.objects.live().filter(cluster__segment__in=segments))
    rows = Server.objects.filter(cabled).exclude(state="retired").distinct().order_by("name")
    seats = []
    for server in servers.summarise(servers.prepared(rows)):
        seat = Seat(server)
        for one in server.interfaces.all():
            if hasattr(one, "link") and one.link.fabric_id == fabric.pk:
                seat.links.append(one.link)
                seat.rows += [row for row in wanted_of(one) if row.segment.fabric_id == fabric.pk]
        seats.append(seat)
    return seats


def _places(
    seat: Seat, segments: Sequence[Segment], reader: Reader
) -> Iterable[tuple[Segment, ui.Endpoint]]:
    """The lanes in which a server stands: wanted, read, and where its claim will take it."""
    summary = seat.server.summary  # type: ignore[attr-defined]
    claim, step = summary.claim, summary.step.name if summary.step else ""
    wanted = {row.segment_id: row for row in seat.rows}
    by_vlan = {one.vlan: one for one in segments}
    for row in wanted.values():
        if segment := by_vlan.get(row.segment.vlan):
            yield segment, _box(seat, reader, *_wanted_state(row, seat, summary))
    if not wanted:
        places = [by_vlan[vlan] for vlan in sorted(seat.seen) if vlan in by_vlan]
        for segment in places:
            state = "moving" if step in ON_THE_WAY else _own_state(summary)
            yield segment, _box(seat, reader, state, "")
        home = next((one for one in segments if one.role == "provisioning"), None)
        if not seat.seen and home is not None:
            yield home, _box(seat, reader, "planned", "not read yet")
    target = claim.cluster.segment_id if claim is not None and claim.cluster else None
    comes = claim is not None and claim.state in ("pending", "provisioning")
    for segment in segments:
        if comes and segment.pk == target and target not in wanted:
            moving = step in ON_THE_WAY
            words = "on its way" if moving else "Move follows"
            yield segment, _box(seat, reader, "moving" if moving else "planned", words)


def _own_state(summary: Any) -> str:
    tone = summary.words[1]
    if summary.server.quarantined or tone == "bad":
        return "failed"
    return "running" if tone == "busy" else ""


def _wanted_state(row: Attachment, seat: Seat, summary: Any) -> tuple[str, str]:
    if row.state == Attachment.State.FAILED:
        return "failed", "not as wanted"
    if row.state != Attachment.State.APPLIED:
        return "moving", ""
    link = next((one for one in seat.links if one.interface_id == row.interface_id), None)
    if link is not None and link.seen_vlan is not None and not inside(link, row.segment.vlan):
        return "drift", f"{link} reads VLAN {link.seen_vlan}"
    return _own_state(summary), ""


def _box(seat: Seat, reader: Reader, state: str, note: str) -> ui.Endpoint:
    server = seat.server
    summary = server.summary  # type: ignore[attr-defined]
    claim = summary.claim
    words = summary.words[0] if reader.staff else (claim.get_state_display() if claim else "")
    # A switch port is nothing that a tenant sees.
    note = note if reader.staff or state != "drift" else "not as wanted"
    # What runs switches the power itself; an older reading beside it would only mislead.
    if reader.staff and not note and state in ("", "failed"):
        note = _flag_or_power(server)
    text = ", ".join(
        filter(None, (words if words.isupper() else words[:1].lower() + words[1:], note))
    )
    if reader.staff:
        return ui.Endpoint(server.name, text, state, server.get_absolute_url())  # type: ignore[arg-type]
    name, href = (claim.name, claim.get_absolute_url()) if claim else (server.name, "")
    return ui.Endpoint(name, text, state, href)  # type: ignore[arg-type]


def _flag_or_power(server: Server) -> str:
    if server.quarantined:
        return "quarantined"
    if server.maintenance:
        return "in maintenance"
    return {"on": "", "off": "off"}.get(server.power_now, "power unknown")


def _lane(segment: Segment, boxes: list[ui.Endpoint], reader: Reader) -> ui.Lane:
    notes = [segment.cidr or "no gateway"]
    if segment.role == Segment.Role.QUARANTINE:
        notes.append("reaches nothing")
    elif segment.tenant:
        notes.append(f"tenant {segment.tenant}")
    else:
        notes.append(f"{len(boxes)} server{'' if len(boxes) == 1 else 's'}")
    if segment.state != Segment.State.APPLIED:
        wanted = segment.state == Segment.State.WANTED
        notes.append("not read back yet" if wanted else segment.get_state_display().lower())
    name = f"{segment.name} · VLAN {segment.vlan}"
    return ui.Lane(name, notes, _lane_tone(segment, boxes), boxes, segment.get_absolute_url())


def _lane_tone(segment: Segment, boxes: list[ui.Endpoint]) -> ui.Tone:
    states = {box.state for box in boxes}
    if segment.role == Segment.Role.QUARANTINE:
        return "bad" if boxes else "neutral"
    if "failed" in states and segment.role == Segment.Role.TENANT:
        return "bad"
    if "drift" in states:
        return "warn"
    if states & {"moving", "planned"} and segment.role == Segment.Role.TENANT:
        return "busy"
    return "good" if boxes and segment.role == Segment.Role.TENANT else "neutral"


def _shared(segments: Sequence[Segment]) -> dict[int, set[str]]:
    """Names of the shared endpoints that reach each segment."""
    rows = Attachment.objects.filter(
        segment__in=segments, interface__shared_endpoint__isnull=False
    ).exclude(state="gone")
    found: dict[int, set[str]] = defaultdict(set)
    for segment, name in rows.values_list("segment", "interface__shared_endpoint__name"):
        found[segment].add(name)
    return found


def _spans(rows: Sequence[Segment], shared: dict[int, set[str]]) -> list[ui.SharedEndpoint]:
    """One box over each run of neighbouring lanes that the same endpoints reach."""
    found, at = [], 1
    for names, run in groupby(rows, key=lambda one: tuple(sorted(shared.get(one.pk, ())))):
        lanes = list(run)
        if names:
            where = f"in {', '.join(one.name for one in lanes)}"
            notes = [where, "tagged, no route between them" if len(lanes) > 1 else "tagged"]
            found.append(ui.SharedEndpoint(", ".join(names), at, len(lanes), notes))
        at += len(lanes)
    return found
