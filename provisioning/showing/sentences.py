"""What is said about steps: of those to come, and what a tenant reads instead of our inside."""

from __future__ import annotations

from gpucloud.models import Step
from gpucloud.reasons import reason
from provisioning.models import NodeClaim

# What each step will do, before it has begun.
PLANNED = {
    "select": "Which server, and why.",
    "configure": "User data, network data, join token, and an address in {segment}.",
    "setup": "Image and data are handed to the engine; the server is still off.",
    "install": "A ramdisk writes {image} in the provisioning segment and checks it.",
    "stop": "Power held off and read back at the BMC.",
    "move": "Ports to quarantine, then to {segment}, powered off, read back after each.",
    "boot": "First boot of the tenant's system, in {segment}.",
    "join": "Node Ready in {cluster} with the labels of its pool.",
    "verify": "GPUs against the node type's SKU; every port read back once more.",
    "drain": "Pods are evicted where they can be, the Node is deleted.",
    "return": "Ports to quarantine, then to provisioning, powered off, read back after each.",
    "deprovision": "Nothing of the tenant is left in the engine's object.",
    "wipe": "Our agent erases every drive of the inventory and reads them back.",
    "check": "The wipe's evidence is judged; only then is the server on offer again.",
}
# The same for the tenant: no BMC, rack, switch port, engine or other tenant.
FOR_TENANT = {
    "select": "A healthy, wiped {node_type} that fits your claim.",
    "configure": "Your user data, network data and join token; an address in {segment}.",
    "setup": "Image and data handed to the installer, the server still powered off.",
    "install": "{image} written outside of your network; none of your software runs yet.",
    "stop": "Powered off and read back, before anything is moved.",
    "move": "All links through quarantine into your segment {segment}, off, read back after each.",
    "boot": "First boot of your system, in {segment}.",
    "join": "Node Ready in {cluster}.",
    "verify": "GPUs against the node type; links read back in your segment.",
    "drain": "Your pods are evicted and the Node is deleted.",
    "return": "All links out of your segment, off, read back after each.",
    "deprovision": "Your image and data are taken away from the installer.",
    "wipe": "Every drive is erased and read back.",
    "check": "The evidence of the wipe is judged before anybody else gets the server.",
}


def names(claim: NodeClaim) -> dict[str, str]:
    """What the sentences name."""
    cluster = claim.cluster
    segment = cluster.segment if cluster else None
    return {
        "node_type": str(claim.node_type),
        "image": str(claim.image or "the image"),
        "cluster": str(cluster or "the cluster"),
        "segment": str(segment or "the cluster's segment"),
    }


def planned(name: str, facts: dict[str, str]) -> str:
    return PLANNED.get(name, "").format(**facts)


def for_tenant(step: Step, facts: dict[str, str]) -> str:
    """The step in a tenant's words; a driver's own words may name what is not theirs."""
    said = FOR_TENANT.get(step.name, "").format(**facts)
    if step.code and step.state in ("running", "waiting", "failed"):
        known = reason(step.code)
        place = step.evidence.get("position")
        if step.code == "WAITING_FOR_CAPACITY" and place:
            return f"{known.sentence} Place {place} of {step.evidence.get('waiting')}."
        return known.sentence
    return said
