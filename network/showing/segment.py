"""One segment: members wanted beside observed, addresses and who holds them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from gpucloud import ui
from gpucloud.models import Event
from inventory import showing as servers
from inventory.models import Interface
from network.models import Attachment, Link, Segment
from network.showing.ports import inside
from network.showing.readers import Reader
from provisioning.models import NodeClaim
from tenants.models import TenantCluster

ADDRESSES_SHOWN: Final = 256


@dataclass(frozen=True)
class Member:
    """One endpoint of a segment: wanted, read, or both. A port of nobody has no interface."""

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
    observed, at = ("Not read", "neutral"), row.observed_at
    if link is not None and link.seen_at is not None and not _newer(row, link):
        there, at = inside(link, segment.vlan), link.seen_at
        told = "Inside" if there else (f"VLAN {link.seen_vlan}" if reader.staff else "Elsewhere")
        waits = row.state in ("wanted", "applying", "removing")
        observed = told, "good" if there else ("busy" if waits else "warn")
    elif row.observed:
        observed = "Inside", "good"
    return Member(
        name,
        href,
        one,
        str(link or "") if reader.staff else "",
        row.get_mode_display(),
        (row.get_state_display(), state),
        observed,
        at,
    )


def _newer(row: Attachment, link: Link) -> bool:
    """Whether the attachment itself was read back after its port was last read as a whole."""
    return bool(row.observed_at and link.seen_at and row.observed_at > link.seen_at)


def _strangers(segment: Segment, wanted: set[int]) -> list[Member]:
    """Ports read in the segment that nobody wants there: parked servers, and unknown cables."""
    links = {
        (link.switch.lower(), link.port.lower()): link
        for link in segment.fabric.links.select_related(
            "interface__server", "interface__shared_endpoint"
        )
    }
    found = []
    # Servers without a claim are parked in the provisioning segment; nobody asks for it each time.
    parked = {"provisioning": "good", "quarantine": "neutral", "oob": "neutral"}
    tone = parked.get(segment.role, "warn")
    for port in (segment.seen or {}).get("ports", []):
        link = links.pop((str(port["switch"]).lower(), str(port["port"]).lower()), None)
        where = f"{port['switch']} {port['port']}"
        if link is None:
            words = "No cable of ours is recorded there", "neutral"
            found.append(
                Member("Unknown", "", None, where, "", words, ("Inside", "warn"), segment.seen_at)
            )
        elif link.interface_id not in wanted and inside(link, segment.vlan):
            found.append(_parked(link, tone))
    # What was read port by port since the segment was read as a whole.
    for link in links.values():
        if link.interface_id not in wanted and link.seen_at and inside(link, segment.vlan):
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
