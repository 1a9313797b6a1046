"""Setup, Install and Stop: the image gets onto the disk in the provisioning segment, and the power
comes off.
"""

from __future__ import annotations

from gpucloud.drivers import DriverError, Progress
from gpucloud.models import Step
from inventory.drivers import PowerState
from inventory.services.bmcs import driver_of as bmc_driver_of
from inventory.services.servers import note_power
from network.models import Segment
from network.services import moves
from network.services.segments import role_segment
from provisioning.models import Operation
from provisioning.services.providers import driver_of
from provisioning.services.tokens import keep_alive
from provisioning.spec import node_spec


def _ports_in_provisioning(operation: Operation) -> dict[str, object]:
    """A ramdisk runs nowhere but in the provisioning segment:

    read the ports before anything boots.
    """
    assert operation.server is not None and operation.claim is not None
    ports = moves.plan_interfaces(operation.server, operation.claim.node_type.nic_plan)
    home = role_segment(ports[0].link.fabric, Segment.Role.PROVISIONING)
    return moves.read_back(ports, home)


def setup(operation: Operation, step: Step) -> Progress:
    claim = operation.claim
    assert claim is not None
    provider = driver_of(claim.node_type.provider)
    return provider.ensure(node_spec(operation, step), "prepared")


def install(operation: Operation, step: Step) -> Progress:
    claim = operation.claim
    assert claim is not None
    evidence = {} if "ports" in step.evidence else _ports_in_provisioning(operation)
    keep_alive(claim)
    progress = driver_of(claim.node_type.provider).ensure(node_spec(operation, step), "installed")
    return Progress(
        progress.done,
        progress.detail,
        progress.ref,
        progress.wait,
        progress.percent,
        {**evidence, **progress.evidence},
    )


def stop(operation: Operation, step: Step) -> Progress:
    """Off, read off at the BMC.

    When the tenant's system had begun to boot: ports to quarantine, then fail.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    power = read_power(operation)
    try:
        progress = driver_of(claim.node_type.provider).remove(
            node_spec(operation, step, power=power), "stopped"
        )
    except DriverError as error:
        if error.code != "OS_BOOTED_IN_PROVISIONING":
            raise
        return isolate(operation, step, error)
    if progress.done:
        seen = read_power(operation)
        if seen.power != "off":
            raise DriverError(
                f"{server} was told to stop and its power reads {seen.power}.",
                code="NOT_OFF",
                wait=2,
            )
    return progress


def isolate(operation: Operation, step: Step, error: DriverError) -> Progress:
    """Take the ports to quarantine and only then let the step fail."""
    assert operation.server is not None and operation.claim is not None
    ports = moves.plan_interfaces(operation.server, operation.claim.node_type.nic_plan)
    progress = moves.to_quarantine(ports, step.ref)
    if progress.done:
        raise error
    return Progress(
        False,
        f"{error.message} Its ports go to quarantine first. {progress.detail}",
        progress.ref,
        progress.wait,
        evidence=progress.evidence,
    )


def read_power(operation: Operation) -> PowerState:
    """Read the power at the BMC and keep it with its time."""
    assert operation.server is not None
    seen = bmc_driver_of(operation.server.bmc).power()
    note_power(operation.server, seen)
    return seen
