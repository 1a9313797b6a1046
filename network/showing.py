"""How segments are drawn: lanes, members wanted beside observed, ports, addresses.

People of the platform see servers and switch ports; members of a tenant see their claims in their own
segments, and nothing of what lies beneath.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from gpucloud import ui
from gpucloud.models import Event
from inventory import showing as servers
from inventory.models import Interface, Server
from network.models import Attachment, Fabric, Link, Segment
from provisioning.models import NodeClaim
from tenants.models import TenantCluster

ROLES: Final = ("provisioning", "quarantine", "standby", "tenant")
# Steps after which a claim's ports are on their way.
ON_THE_WAY: Final = ("move", "return")
PORTS_SHOWN: Final = 100
ADDRESSES_SHOWN: Final = 256


@dataclass(frozen=True)
class Reader:
    """Who reads: everything, or the segments of these tenants."""

    tenants: frozenset[int] | None

    @classmethod
    def of(cls, user: Any) -> Reader:
        from gpucloud.policy import sees_platform

        if sees_platform(user):
            return cls(None)
        return cls(frozenset(user.memberships.values_list("tenant_id", flat=True)))

    @property
    def staff(self) -> bool:
        return self.tenants is None

    def segments(self) -> QuerySet[Segment]:
        rows = Segment.objects.exclude(state=Segment.State.GONE).select_related("fabric", "tenant")
        return rows if self.tenants is None else rows.filter(tenant__in=self.tenants)


# ---- Lanes --------------------------------------------------------------------------------------


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
    """The lanes of one fabric, the shared endpoints beside them, and what the head of the panel says."""
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
    read = [row.link.seen_at for row in rows if row.link.seen_at]
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
    """Every server with a cable in the fabric; for tenants those that are wanted in their segments."""
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
                seat.rows += [row for row in _wanted(one) if row.segment.fabric_id == fabric.pk]
        seats.append(seat)
    return seats


def _wanted(one: Interface) -> list[Attachment]:
    rows: list[Attachment] = getattr(one, "wanted", [])
    return rows


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
    if claim is not None and claim.state in ("pending", "provisioning") and target not in wanted:
        if segment := next((one for one in segments if one.pk == target), None):
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
    if link is not None and link.seen_vlan is not None and not _inside(link, row.segment.vlan):
        return "drift", f"{link} reads VLAN {link.seen_vlan}"
    return _own_state(summary), ""


def _inside(link: Link, vlan: int) -> bool:
    return link.seen_vlan == vlan or vlan in link.seen_tagged


def _box(seat: Seat, reader: Reader, state: str, note: str) -> ui.Endpoint:
    server = seat.server
    summary = server.summary  # type: ignore[attr-defined]
    claim = summary.claim
    words = summary.words[0] if reader.staff else (claim.get_state_display() if claim else "")
    # A switch port is nothing that a tenant sees.
    note = note if reader.staff or state != "drift" else "not as wanted"
    if reader.staff and not note and server.power_now != "on":
        note = server.power_now if server.power_now == "off" else "power unknown"
    text = ", ".join(filter(None, (words if words.isupper() else words[:1].lower() + words[1:], note)))
    if reader.staff:
        return ui.Endpoint(server.name, text, state, server.get_absolute_url())  # type: ignore[arg-type]
    name, href = (claim.name, claim.get_absolute_url()) if claim else (server.name, "")
    return ui.Endpoint(name, text, state, href)  # type: ignore[arg-type]


def _lane(segment: Segment, boxes: list[ui.Endpoint], reader: Reader) -> ui.Lane:
    notes = [segment.cidr or "no gateway"]
    if segment.role == Segment.Role.QUARANTINE:
        notes.append("reaches nothing")
    elif segment.tenant:
        notes.append(f"tenant {segment.tenant}")
    else:
        notes.append(f"{len(boxes)} server{'' if len(boxes) == 1 else 's'}")
    if segment.state != Segment.State.APPLIED:
        notes.append(segment.get_state_display().lower())
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


# ---- Ports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PortRow:
    """One cabled port: whose it is, where it is wanted, what was read, and whether that agrees."""

    link: Link
    wanted: Sequence[Attachment]
    verdict: tuple[str, str]

    @property
    def owner(self) -> Any:
        return self.link.interface.server or self.link.interface.shared_endpoint

    @property
    def result(self) -> tuple[str, str]:
        words = {"good": "Same", "warn": "Drift", "busy": "Moving"}
        return words.get(self.verdict[1], "–"), self.verdict[1]


def ports(fabric: Fabric) -> list[PortRow]:
    """The fabric's ports, those that are not as wanted first."""
    live = Attachment.objects.exclude(state="gone").select_related("segment__fabric")
    links = (
        Link.objects.filter(fabric=fabric)
        .exclude(interface__server__state="retired")
        .select_related("interface__server", "interface__shared_endpoint")
        .prefetch_related(Prefetch("interface__attachments", live, to_attr="wanted"))
    )
    rows = [_port(link) for link in links]
    rank = {"warn": 0, "busy": 1}
    return sorted(rows, key=lambda row: (rank.get(row.verdict[1], 2), *_natural(row.link)))


def _natural(link: Link) -> tuple[str, list[tuple[str, int]]]:
    """swp2 before swp10."""
    parts = re.findall(r"(\D*)(\d*)", link.port)
    return link.switch, [(text, int(number or 0)) for text, number in parts]


def _port(link: Link) -> PortRow:
    wanted = _wanted(link.interface)
    verdict = servers.verdict(link, wanted)
    tagged = [row.segment.vlan for row in wanted if row.mode == Attachment.Mode.TRUNK]
    if tagged and link.seen_at:
        there = all(vlan in link.seen_tagged for vlan in tagged)
        verdict = verdict[0], "good" if there else "warn"
    return PortRow(link, wanted, verdict)


# ---- One segment --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member:
    """One endpoint of a segment: wanted, read, or both. A port that is nobody's has no interface."""

    name: str
    href: str
    interface: Interface | None
    port: str
    mode: str
    wanted: tuple[str, str]
    observed: tuple[str, str]
    at: Any


def segment_page(segment: Segment, reader: Reader) -> dict[str, Any]:
    """Everything the page of a segment shows; the same for page and live fragment."""
    rows = members(segment, reader)
    taken = list(segment.addresses.select_related("server").order_by("id"))
    clusters = TenantCluster.objects.exclude(state="gone").filter(segment=segment)
    events = Event.objects.filter(object_uid=segment.uid).order_by("-id")
    return {
        "segment": segment,
        "staff": reader.staff,
        "members": rows,
        "wrong": sum(row.observed[1] == "warn" for row in rows),
        "figures": address_figures(segment, len(taken)),
        "addresses": _addresses(taken[:ADDRESSES_SHOWN]),
        "clusters": list(clusters.select_related("tenant")),
        "moments": [servers.moment(event) for event in events[: servers.HISTORY_SHOWN]],
    }


def members(segment: Segment, reader: Reader) -> list[Member]:
    """Who is wanted in the segment beside who was read there; strangers last."""
    rows = (
        segment.attachments.exclude(state="gone")
        .select_related("interface__server", "interface__shared_endpoint", "interface__link")
        .order_by("interface__server__name", "interface__name")
    )
    claims = {
        claim.server_id: claim
        for claim in NodeClaim.objects.live().filter(server__isnull=False).select_related("tenant")
    }
    found = [_member(segment, row, claims, reader) for row in rows]
    if reader.staff:
        found += _strangers(segment, {row.interface_id for row in rows})
    return found


def _member(
    segment: Segment, row: Attachment, claims: dict[int | None, NodeClaim], reader: Reader
) -> Member:
    one = row.interface
    link = getattr(one, "link", None)
    claim = claims.get(one.server_id) if one.server_id else None
    name, href = str(one.server or one.shared_endpoint), ""
    if reader.staff and one.server:
        href = one.server.get_absolute_url()
    elif claim is not None:
        name, href = claim.name, claim.get_absolute_url()
    state = {"applied": "good", "failed": "bad"}.get(row.state, "busy")
    observed: tuple[str, str] = ("Not read", "neutral")
    if link is not None and link.seen_at is not None:
        inside = _inside(link, segment.vlan)
        told = "Inside" if inside else (f"VLAN {link.seen_vlan}" if reader.staff else "Elsewhere")
        waits = row.state in ("wanted", "applying", "removing")
        observed = told, "good" if inside else ("busy" if waits else "warn")
    return Member(
        name,
        href,
        one,
        str(link or "") if reader.staff else "",
        row.get_mode_display(),
        (row.get_state_display(), state),
        observed,
        link.seen_at if link is not None else None,
    )


def _strangers(segment: Segment, wanted: set[int]) -> list[Member]:
    """Ports read in the segment that nobody wants there: parked servers, and cables unknown to us."""
    links = {
        (link.switch.lower(), link.port.lower()): link
        for link in segment.fabric.links.select_related("interface__server", "interface__shared_endpoint")
    }
    found = []
    parks = segment.role in (Segment.Role.PROVISIONING, Segment.Role.QUARANTINE, Segment.Role.OOB)
    tone = "neutral" if parks else "warn"
    for port in (segment.seen or {}).get("ports", []):
        link = links.pop((str(port["switch"]).lower(), str(port["port"]).lower()), None)
        where = f"{port['switch']} {port['port']}"
        if link is None:
            words = "No cable of ours is recorded there", "neutral"
            found.append(
                Member("Unknown", "", None, where, "", words, ("Inside", tone), segment.seen_at)
            )
        elif link.interface_id not in wanted and _inside(link, segment.vlan):
            found.append(_parked(link, tone))
    # What was read port by port since the segment was read as a whole.
    for link in links.values():
        if link.interface_id not in wanted and link.seen_at and _inside(link, segment.vlan):
            found.append(_parked(link, tone))
    return found


def _parked(link: Link, tone: str) -> Member:
    server = link.interface.server
    owner = server or link.interface.shared_endpoint
    href = server.get_absolute_url() if server else ""
    words = "Nothing asked", "neutral"
    return Member(
        str(owner), href, link.interface, str(link), "", words, ("Inside", tone), link.seen_at
    )


def address_figures(segment: Segment, taken: int) -> list[ui.Figure]:
    if not segment.cidr:
        return []
    network = ipaddress.ip_network(segment.cidr)
    usable = max(0, network.num_addresses - 2)
    share = f"{round(100 * taken / usable)} %" if usable else ""
    return [
        ui.Figure("Addresses taken", taken, f"of {usable}", share),
        ui.Figure("Network", segment.cidr, "", f"gateway {segment.gateway or 'none'}"),
        ui.Figure("VLAN", segment.vlan, "", f"on fabric {segment.fabric}"),
    ]


def _addresses(rows: Sequence[Any]) -> list[dict[str, Any]]:
    uids: set[UUID] = {row.owner_uid for row in rows}
    owners: dict[UUID, Any] = {
        one.uid: one for one in NodeClaim.objects.filter(uid__in=uids).select_related("tenant")
    }
    owners |= {
        one.uid: one for one in TenantCluster.objects.filter(uid__in=uids).select_related("tenant")
    }
    return [
        {"address": row.address, "purpose": row.purpose, "owner": owners.get(row.owner_uid)}
        for row in sorted(rows, key=lambda row: ipaddress.ip_address(row.address))
    ]
