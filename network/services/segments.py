"""Segments: take VLANs and addresses under a lock, put segments on the fabric, take them off, read
members.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud import history, vault
from gpucloud.drivers import DriverError, Progress, load
from gpucloud.live.publish import publish
from gpucloud.models import name_validator
from gpucloud.problems import Invalid
from inventory.models import Interface, SharedEndpoint
from network.drivers import (
    AttachSpec,
    FabricDriver,
    Membership,
    PortRef,
    PortSeen,
    SegmentSpec,
)
from network.lifecycle import SEGMENT
from network.models import Address, Attachment, Fabric, Link, Segment

# Hosts .0 to .9 of a segment are kept for gateways, endpoints and the like.
FIRST_NODE_HOST = 10
ENDPOINT_HOSTS = range(2, 10)
PARKING = (Segment.Role.PROVISIONING, Segment.Role.QUARANTINE, Segment.Role.STANDBY)
# The smallest network that has an address for a node.
LONGEST_PREFIX = 28


def driver_of(fabric: Fabric) -> FabricDriver:
    quarantine = (
        fabric.segments.filter(role=Segment.Role.QUARANTINE)
        .exclude(state=Segment.State.GONE)
        .first()
    )
    offered: dict[str, Any] = dict(vault.get("fabric", fabric.uid, "credentials", {}) or {})
    if quarantine:
        offered["quarantine_vlan"] = quarantine.vlan
    driver: FabricDriver = load("fabric", fabric.driver, fabric.config, offered)
    return driver


def spec_of(segment: Segment) -> SegmentSpec:
    return SegmentSpec(
        uid=str(segment.uid), name=segment.name, vlan=segment.vlan, role=segment.role
    )


def role_segment(fabric: Fabric, role: str) -> Segment:
    """The fabric's provisioning, quarantine or standby segment."""
    found = fabric.segments.filter(role=role).exclude(state=Segment.State.GONE).first()
    if found is None:
        raise DriverError(
            f"Fabric {fabric} has no {role} segment.", code="NO_SEGMENT", permanent=True
        )
    return found


def create(
    actor: str,
    fabric: Fabric,
    name: str,
    *,
    vlan: int | None = None,
    tenant: Any = None,
    role: str = Segment.Role.TENANT,
    cidr: str = "",
    gateway: str = "",
    host_bridge: str = "",
    dns: list[str] | None = None,
    made_for: UUID | None = None,
) -> Segment:
    """Make a segment; without a VLAN the lowest free one of the fabric's range, without a CIDR
    10.<vlan>.0.0/24.
    """
    errors = _problems(name, cidr, gateway)
    if errors:
        raise Invalid(errors)
    cidr = str(ipaddress.ip_network(cidr)) if cidr else ""
    try:
        with transaction.atomic():
            # The fabric's row is the lock under which numbers are taken.
            Fabric.objects.filter(pk=fabric.pk).update(rev=F("rev") + 1)
            _only_one(fabric, role)
            number = vlan or _free_vlan(fabric)
            network = cidr or f"10.{number if number < 256 else 100 + number % 100}.0.0/24"
            segment = Segment.objects.create(
                fabric=fabric,
                name=name,
                role=role,
                vlan=number,
                tenant=tenant,
                cidr=network,
                gateway=gateway or str(ipaddress.ip_network(network)[1]),
                host_bridge=host_bridge,
                dns=dns or [],
                made_for=made_for,
            )
            history.record(segment, "create", actor, f"Segment {segment} was made: VLAN {number}.")
    except IntegrityError as error:
        field = "vlan" if "vlan" in str(error) else "name"
        raise Invalid({field: [f"This {field} is taken on {fabric} already."]}) from error
    return segment


def _problems(name: str, cidr: str, gateway: str) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    try:
        name_validator(name)
    except ValidationError as error:
        errors["name"] = list(error.messages)
    if cidr and (found := _cidr_problem(cidr)):
        errors["cidr"] = [found]
    elif gateway and (found := _gateway_problem(gateway, cidr)):
        errors["gateway"] = [found]
    return errors


def _cidr_problem(cidr: str) -> str:
    """Why no nodes can live on this network, in a sentence."""
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError as error:
        return f"{str(error).capitalize()}."
    if "/" not in cidr or network.version != 4 or not 8 <= network.prefixlen <= LONGEST_PREFIX:
        return (
            f"Give an IPv4 network with a prefix from /8 to /{LONGEST_PREFIX}, "
            "for example 10.101.0.0/24: a smaller one has no addresses for nodes."
        )
    return ""


def _gateway_problem(gateway: str, cidr: str) -> str:
    try:
        address = ipaddress.ip_address(gateway)
    except ValueError as error:
        return f"{str(error).capitalize()}."
    if not cidr:
        return "Give the CIDR too: the gateway is one of its addresses."
    network = ipaddress.ip_network(cidr)
    if address not in network or address in (network[0], network[-1]):
        return f"{gateway} is not a host's address of {cidr}."
    return ""


def _only_one(fabric: Fabric, role: str) -> None:
    """A fabric has one segment of each role in which ports are parked: which one is no choice.

    The caller holds the fabric's row locked by an UPDATE.
    """
    if role not in PARKING:
        return
    rows = fabric.segments.filter(role=role).exclude(state=Segment.State.GONE)
    if there := rows.first():
        raise Invalid({"role": [f"{fabric} has a segment for {role} already: {there}."]})


def _free_vlan(fabric: Fabric) -> int:
    taken = set(fabric.segments.exclude(state=Segment.State.GONE).values_list("vlan", flat=True))
    for number in range(fabric.vlan_first, fabric.vlan_last + 1):
        if number not in taken:
            return number
    raise DriverError(
        f"All VLANs of {fabric} from {fabric.vlan_first} to {fabric.vlan_last} are taken.",
        code="NO_VLAN",
    )


def take_address(segment: Segment, purpose: str, owner: UUID, server: Any = None) -> str:
    """Take the lowest free address for an owner, or return the one it has.

    Parent row locked: no double take.
    """
    with transaction.atomic():
        Segment.objects.filter(pk=segment.pk).update(rev=F("rev") + 1)
        mine = Address.objects.filter(segment=segment, owner_uid=owner, purpose=purpose).first()
        if mine:
            return mine.address
        network = ipaddress.ip_network(segment.cidr)
        taken = set(segment.addresses.values_list("address", flat=True)) | {segment.gateway}
        hosts = (
            ENDPOINT_HOSTS
            if purpose == "endpoint"
            else range(FIRST_NODE_HOST, network.num_addresses - 1)
        )
        for host in hosts:
            candidate = str(network[host])
            if candidate not in taken:
                Address.objects.create(
                    segment=segment,
                    address=candidate,
                    purpose=purpose,
                    owner_uid=owner,
                    server=server,
                )
                return candidate
    raise DriverError(f"Segment {segment} has no free address for a {purpose}.", code="NO_ADDRESS")


def free_addresses(owner: UUID) -> None:
    Address.objects.filter(owner_uid=owner).delete()


def ensure(segment: Segment, actor: str) -> Progress:
    """Put the segment on its fabric and read it back."""
    progress = driver_of(segment.fabric).ensure_segment(spec_of(segment))
    if progress.done and segment.state != Segment.State.APPLIED:
        SEGMENT.move(segment, "applied", actor, seen_at=Now())
    return progress


def trunk(
    segment: Segment, endpoint: SharedEndpoint, actor: str, ref: str = "", on: bool = True
) -> Progress:
    """Carry the segment tagged to a shared endpoint's ports, or take it off; done when
    read back.
    """
    interfaces = list(
        Interface.objects.filter(shared_endpoint=endpoint, link__fabric=segment.fabric)
    )
    specs = tuple(
        AttachSpec(PortRef(one.link.switch, one.link.port), spec_of(segment), "trunk")
        for one in interfaces
    )
    driver = driver_of(segment.fabric)
    progress = driver.attach(specs, ref) if on else driver.detach(specs, ref)
    if not progress.done:
        return progress
    with transaction.atomic():
        for one in interfaces:
            live = Attachment.objects.filter(interface=one, segment=segment).exclude(state="gone")
            if not on:
                live.update(state="gone", observed=False, observed_at=Now(), rev=F("rev") + 1)
            elif not live.update(
                state="applied", observed=True, observed_at=Now(), rev=F("rev") + 1
            ):
                Attachment.objects.create(
                    interface=one,
                    segment=segment,
                    mode="trunk",
                    state="applied",
                    observed=True,
                    observed_at=Now(),
                    since=Now(),
                )
        publish(segment)
    return progress


def remove(segment: Segment, actor: str) -> Progress:
    """Take a segment off its fabric; done when the fabric no longer has it."""
    if segment.state == Segment.State.GONE:
        return Progress(True, f"Segment {segment} is gone.")
    if segment.state != Segment.State.REMOVING:
        SEGMENT.move(segment, "remove", actor)
    progress = driver_of(segment.fabric).remove_segment(spec_of(segment))
    if progress.done:
        SEGMENT.move(segment, "gone", actor)
    return progress


def membership(segment: Segment, actor: str = "") -> Membership:
    """Read who is in the segment now and keep it beside what is wanted.

    Given the person who asked, a wanted segment that is found on the fabric counts as applied.
    """
    driver = driver_of(segment.fabric)
    seen = driver.observe(spec_of(segment))
    _note_ports(segment, driver, seen.ports)
    Segment.objects.filter(pk=segment.pk).update(
        seen={
            "exists": seen.exists,
            "revision": seen.revision,
            "ports": [
                {
                    "switch": p.port.switch,
                    "port": p.port.port,
                    "access": p.access,
                    "tagged": list(p.tagged),
                }
                for p in seen.ports
            ],
        },
        seen_at=Now(),
        rev=F("rev") + 1,
    )
    segment.refresh_from_db()
    if actor and seen.exists and segment.state == Segment.State.WANTED:
        SEGMENT.move(segment, "applied", actor, f"{segment} was read on the fabric.")
    publish(segment)
    return seen


def _note_ports(segment: Segment, driver: FabricDriver, inside: tuple[PortSeen, ...]) -> None:
    """Keep what was read of each cable of ours, also of those that should be in and are not."""
    ours = {(link.switch.lower(), link.port.lower()): link for link in segment.fabric.links.all()}
    members = Attachment.objects.filter(segment=segment).exclude(state="gone")
    wanted = set(members.values_list("interface", flat=True))
    read = {(one.port.switch.lower(), one.port.port.lower()) for one in inside}
    missing = tuple(
        PortRef(link.switch, link.port)
        for place, link in ours.items()
        if place not in read and (link.interface_id in wanted or link.seen_vlan == segment.vlan)
    )
    for one in (*inside, *(driver.ports(missing) if missing else ())):
        if link := ours.get((one.port.switch.lower(), one.port.port.lower())):
            Link.objects.filter(pk=link.pk).update(
                seen_vlan=one.access, seen_tagged=list(one.tagged), seen_at=Now()
            )
