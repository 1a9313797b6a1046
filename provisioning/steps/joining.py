"""Configure, Move, Boot, Join and Verify:

onto the tenant's network, into the tenant's cluster, proved.
"""

from __future__ import annotations

from typing import Any

from django.db.models import F

from gpucloud.drivers import DriverError, Progress
from gpucloud.models import Step
from network.models import Segment
from network.services import moves
from network.services.segments import role_segment, take_address
from provisioning.models import NodeClaim, Operation
from provisioning.services.providers import driver_of
from provisioning.services.tokens import keep_alive, make_join_data, revoke
from provisioning.spec import network_data, node_spec, segment_of
from provisioning.steps.install import read_power
from tenants.drivers import NodeSeen
from tenants.services.access import access_of, cluster_spec
from tenants.services.access import driver_of as control_plane_of

CLUSTER_HAS_API = ("available", "connected", "ready", "changing")


def configure(operation: Operation, step: Step) -> Progress:
    """User data, network data, join material and addresses;

    waits for the tenant's API, not for its nodes.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    cluster = claim.cluster
    if cluster is None or cluster.state not in CLUSTER_HAS_API:
        state = cluster.get_state_display() if cluster else "missing"
        return Progress(
            False,
            f"Waiting for the control plane of {cluster} ({state.lower()}).",
            wait=2,
            evidence={"code": "CLUSTER_NOT_READY"},
        )
    segment = segment_of(claim)
    moves.plan_interfaces(server, claim.node_type.nic_plan)
    address = take_address(segment, "node", claim.uid, server)
    claim.tenant_address, claim.node_name = address, server.name
    data = network_data(claim, segment)
    NodeClaim.objects.filter(pk=claim.pk).update(
        tenant_address=address,
        node_name=server.name,
        evidence={**claim.evidence, "network_data": data},
        rev=F("rev") + 1,
    )
    make_join_data(claim)
    return Progress(
        True,
        f"User data, network data and join token are ready; tenant address {address} reserved.",
        evidence={"tenant_address": address, "segment": segment.name},
    )


def move_to_tenant(operation: Operation, step: Step) -> Progress:
    """Off, then provisioning → quarantine → the tenant's segment, each read back."""
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    seen = read_power(operation)
    if seen.power != "off":
        raise DriverError(
            f"{server} reads {seen.power}; ports are moved only while it is off.",
            code="NOT_OFF",
            wait=2,
        )
    segment = segment_of(claim)
    for one in moves.boot_only(server, claim.node_type.nic_plan):
        progress = moves.to_quarantine([one], step.ref if step.ref.startswith("boot:") else "")
        if not progress.done:
            return Progress(
                False,
                progress.detail,
                f"boot:{progress.ref}",
                progress.wait,
                evidence=progress.evidence,
            )
    ports = moves.plan_interfaces(server, claim.node_type.nic_plan)
    return moves.move(ports, segment, claim.uid, step.ref)


def boot(operation: Operation, step: Step) -> Progress:
    """Power on; ends when a Node made after power-on names this server by its system UUID."""
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    keep_alive(claim)
    progress = driver_of(claim.node_type.provider).ensure(node_spec(operation, step), "started")
    if not progress.done:
        return progress
    node = _node(claim, step)
    if node is None:
        return Progress(
            False,
            f"{server} is on; its node has not appeared in {claim.cluster} yet.",
            progress.ref,
            2,
            evidence=progress.evidence,
        )
    return Progress(
        True,
        f"Node {node.name} appeared in {claim.cluster}.",
        progress.ref,
        evidence={**progress.evidence, "node": node.name, "system_uuid": node.system_uuid},
    )


def _node(claim: NodeClaim, step: Step) -> NodeSeen | None:
    """The Node of the claim's server, made after Stop had read it off;

    one from before is somebody else's past.
    """
    assert claim.cluster is not None and claim.server is not None
    seen = control_plane_of(claim.cluster).nodes(
        cluster_spec(claim.cluster), access_of(claim.cluster)
    )
    off = Step.objects.filter(
        kind=step.kind, owner_uid=step.owner_uid, run=step.run, name="stop", ended__isnull=False
    ).first()
    since = off.ended.replace(microsecond=0) if off and off.ended else None
    for node in seen:
        same = node.system_uuid.lower() == claim.server.system_uuid.lower() != ""
        if same and node.created is not None and (since is None or node.created >= since):
            return node
    return None


def join(operation: Operation, step: Step) -> Progress:
    """The Node is Ready with the pool's labels; then the token goes."""
    claim = operation.claim
    assert claim is not None
    keep_alive(claim)
    node = _node(claim, step)
    if node is None:
        raise DriverError(
            f"The node of {claim.server} vanished from {claim.cluster}.", code="NOT_BOOTED"
        )
    if not node.ready:
        return Progress(
            False,
            f"Node {node.name} is there and not Ready yet.",
            wait=2,
            evidence={"code": "NODE_NOT_READY"},
        )
    missing = {k: v for k, v in claim.labels.items() if node.labels.get(k) != v}
    if missing:
        raise DriverError(
            f"Node {node.name} is Ready and lacks "
            f"{', '.join(f'{k}={v}' for k, v in missing.items())}.",
            code="LABELS_MISSING",
        )
    revoke(claim)
    return Progress(
        True,
        f"Node {node.name} is Ready in {claim.cluster}, kubelet {node.kubelet or 'unknown'}.",
        evidence={"node": node.name, "labels": claim.labels, "addresses": list(node.addresses)},
    )


def verify(operation: Operation, step: Step) -> Progress:
    """GPUs of the last inspection against the SKU, and every port of the NIC plan read back once
    more.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    gpus = list(server.gpus.all())
    sku = claim.node_type.sku
    wanted = sku.get("gpu_count")
    if wanted is not None and len(gpus) != int(wanted):
        raise DriverError(
            f"{server} has {len(gpus)} GPUs, and {claim.node_type} promises {wanted}.",
            code="GPU_MISMATCH",
            permanent=True,
        )
    odd = [g.model for g in gpus if sku.get("gpu_model") and g.model != sku["gpu_model"]]
    if odd:
        raise DriverError(
            f"{server} has {odd[0]}, and {claim.node_type} promises {sku['gpu_model']}.",
            code="GPU_MISMATCH",
            permanent=True,
        )
    segment = segment_of(claim)
    ports = moves.plan_interfaces(server, claim.node_type.nic_plan)
    evidence: dict[str, Any] = moves.read_back(ports, segment)
    for one in moves.boot_only(server, claim.node_type.nic_plan):
        evidence["boot"] = moves.read_back(
            [one], role_segment(one.link.fabric, Segment.Role.QUARANTINE)
        )
    seen = read_power(operation)
    count = f"{len(gpus)} GPUs as the node type promises; " if wanted else ""
    return Progress(
        True,
        f"{count}{len(ports)} ports read back in {segment} (VLAN {segment.vlan}); "
        "isolation: read back, not probed.",
        evidence={
            **evidence,
            "isolation": "read back, not probed",
            "gpus": len(gpus),
            "power": seen.power,
        },
    )
