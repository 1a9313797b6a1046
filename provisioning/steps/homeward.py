"""Drain, Return and Deprovision:

out of the tenant's cluster, back to the provisioning segment, nothing left behind.
"""

from __future__ import annotations

from gpucloud.drivers import DriverError, Progress
from gpucloud.models import Step
from network.models import Segment
from network.services import moves
from network.services.segments import role_segment
from provisioning.agents import open_run
from provisioning.models import Operation
from provisioning.services.providers import driver_of
from provisioning.services.tokens import revoke
from provisioning.spec import node_spec
from provisioning.steps.install import read_power
from tenants.services.access import access_of, cluster_spec
from tenants.services.access import driver_of as control_plane_of

# An API of a tenant that does not answer must not hold a server for ever.
DRAIN_TRIES = 5


def drain(operation: Operation, step: Step) -> Progress:
    """Evict what can be, delete the Node;

    a tenant API that does not answer is tried a few times, then left.
    """
    claim = operation.claim
    assert claim is not None
    cluster = claim.cluster
    if cluster is None or not claim.node_name or not cluster.ca_hash:
        return Progress(True, "No node of this claim has joined a cluster.")
    try:
        revoke(claim, must=False)
        return control_plane_of(cluster).drain(
            cluster_spec(cluster), claim.node_name, access_of(cluster)
        )
    except DriverError as error:
        if step.failures < DRAIN_TRIES:
            raise
        return Progress(
            True,
            f"The tenant's API did not answer ({error.message}); the server is stopped "
            "without a drain.",
            evidence={"drained": False},
        )


def go_home(operation: Operation, step: Step) -> Progress:
    """Off, then tenant → quarantine → provisioning, each read back."""
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    seen = read_power(operation)
    if seen.power != "off":
        raise DriverError(
            f"{server} reads {seen.power}; ports are moved only while it is off.",
            code="NOT_OFF",
            wait=2,
        )
    ports = moves.plan_interfaces(server, claim.node_type.nic_plan)
    boot = moves.boot_only(server, claim.node_type.nic_plan)
    home = role_segment(ports[0].link.fabric, Segment.Role.PROVISIONING)
    return moves.move([*ports, *boot], home, None, step.ref)


def deprovision(operation: Operation, step: Step) -> Progress:
    """Nothing of the tenant is left in the engine's object, and our agent is what would boot next.
    """
    claim = operation.claim
    assert claim is not None
    _, url = open_run(operation, "wipe")
    spec = node_spec(operation, step, media_url=url)
    return driver_of(claim.node_type.provider).remove(spec, "released")
