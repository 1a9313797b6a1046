"""Builds what drivers are given:

NodeSpec from an operation, network data from a segment, cluster specs from rows.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings

from gpucloud import vault
from gpucloud.drivers import DriverError
from inventory.drivers import PowerState
from inventory.models import Server
from inventory.services.bmcs import driver_of as bmc_driver_of
from network.models import Segment
from provisioning.drivers import ImageSpec, MediaSpec, NodeSpec, ServerRef
from provisioning.models import NodeClaim, Operation


def server_ref(server: Server) -> ServerRef:
    boot = next((one.mac for one in server.interfaces.all() if "boot" in one.roles), "")
    return ServerRef(str(server.uid), server.name, server.engine_id, server.system_uuid, boot)


def dhcp_of(server: Server) -> dict[str, str]:
    if not server.provisioning_address:
        raise DriverError(
            f"{server} has no provisioning address.", code="NO_PROVISIONING_ADDRESS", permanent=True
        )
    return {
        "ip-address": server.provisioning_address,
        "gateway": server.provisioning_gateway,
        "dns-servers": server.provisioning_dns,
    }


def segment_of(claim: NodeClaim) -> Segment:
    segment = claim.cluster.segment if claim.cluster else None
    if segment is None:
        raise DriverError(
            f"{claim} has no segment: its cluster's network is not there yet.", code="NO_SEGMENT"
        )
    return segment


def network_data(claim: NodeClaim, segment: Segment) -> dict[str, Any]:
    """OpenStack network_data.json:

    the tenant address on the first tenant port, the rest without addresses.
    """
    assert claim.server is not None
    ports = [one for one in claim.server.interfaces.all() if "tenant" in one.roles]
    network = ipaddress.ip_network(segment.cidr)
    links = [
        {"id": one.name, "type": "phy", "ethernet_mac_address": one.mac, "mtu": 1500}
        for one in ports
    ]
    return {
        "links": links,
        "networks": [
            {
                "id": segment.name,
                "link": ports[0].name if ports else "",
                "type": "ipv4",
                "ip_address": claim.tenant_address,
                "netmask": str(network.netmask),
                "routes": [
                    {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": segment.gateway}
                ],
            }
        ],
        "services": [{"type": "dns", "address": address} for address in segment.dns],
    }


def node_spec(
    operation: Operation, step: Any, *, media_url: str = "", power: PowerState | None = None
) -> NodeSpec:
    """All a provider needs for this operation, with secrets read from the vault for this call
    only.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    image = claim.image
    return NodeSpec(
        claim_uid=str(claim.uid),
        claim_name=claim.name,
        tenant=claim.tenant.name,
        verb=operation.kind,  # type: ignore[arg-type]
        server=server_ref(server),
        bmc=bmc_driver_of(server.bmc),
        image=ImageSpec(image.name, image.url, image.checksum, image.checksum_type, image.format)
        if image
        else None,
        user_data=vault.get("claim", claim.uid, "user_data", "") or "",
        network_data=claim.evidence.get("network_data", {}),
        meta_data={
            "local-hostname": claim.node_name,
            "instance-id": str(claim.uid),
            "uuid": str(claim.uid),
        },
        dhcp=dhcp_of(server),
        media=MediaSpec(media_url) if media_url else None,
        post_seconds=claim.node_type.post_seconds * settings.TIME_FACTOR,
        since=step.started,
        power=power,
    )
