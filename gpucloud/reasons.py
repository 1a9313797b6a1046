"""The catalogue of reason codes:

what happened, what it means, what to do next; one for pages, REST and docs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "retry", "release", "quarantine", "pick_another", "wait", "edit", "cable", "power_off", "none"
]


@dataclass(frozen=True)
class Reason:
    """`sentence` says what it means, `next` what a person does now, `action` the button, `who` may
    do it.
    """

    sentence: str
    next: str
    action: Action = "retry"
    who: str = "platform admin or operator"


REASONS: dict[str, Reason] = {
    # selection
    "WAITING_FOR_CAPACITY": Reason(
        "No server of this type is free now; the claim keeps its place in the queue.",
        "Wait, release another claim of this type, or add servers.",
        "wait",
        "anybody who may release",
    ),
    "NO_CABLE_PLAN": Reason(
        "A server fits, but a port of its NIC plan has no cable recorded.",
        "Record the cable of every port in the NIC plan on the server's page.",
        "cable",
    ),
    "QUOTA_EXCEEDED": Reason(
        "The tenant's quota does not allow another server of this kind.",
        "Release a server of this tenant, or ask a platform admin for more.",
        "edit",
    ),
    # drivers in general
    "DRIVER_UNKNOWN": Reason(
        "The driver named in the row is not installed.", "Correct the row or DRIVERS.", "edit"
    ),
    "DRIVER_CONFIG": Reason(
        "The driver's settings are not usable.", "Correct the settings, then retry.", "edit"
    ),
    "BUG": Reason(
        "The console met a fault of its own; nothing was guessed and the object keeps its state.",
        "Retry; if it comes back, send the permanent link to support.",
        "retry",
    ),
    "BUDGET_SPENT": Reason(
        "An attempt used up its time before a write.",
        "Nothing to do; the next look goes on.",
        "none",
    ),
    "STEP_TIMEOUT": Reason(
        "The step did not end within its deadline.", "Retry, or release the claim.", "retry"
    ),
    # BMC
    "BMC_UNREACHABLE": Reason(
        "The server's BMC does not answer.", "Check cable, address and BMC; then retry.", "retry"
    ),
    "BMC_TIMEOUT": Reason(
        "The server's BMC answered too late.", "Retry; reset the BMC if it stays slow.", "retry"
    ),
    "BMC_LOGIN": Reason(
        "The BMC refused the user name or password.",
        "Set the right credentials on the server's page, then retry.",
        "edit",
    ),
    "BMC_LOCKED": Reason(
        "The BMC locked the account.", "Wait for the BMC to unlock it, then retry.", "wait"
    ),
    "BMC_CERTIFICATE": Reason(
        "The BMC shows another certificate than the one pinned.",
        "Find out who changed it; accept the new one on the server's page only when you know.",
        "edit",
    ),
    "BMC_ERROR": Reason(
        "The BMC answered with an error.", "Read the evidence, then retry.", "retry"
    ),
    "BMC_UNSUPPORTED": Reason(
        "The BMC cannot do what this step needs.",
        "Use another provider for this server.",
        "quarantine",
    ),
    "POWER_IGNORED": Reason(
        "The BMC accepted the power change, and the power did not change.",
        "Look at the server, then retry.",
        "retry",
    ),
    "BOOT_IGNORED": Reason(
        "The BMC accepted the boot device and did not keep it.",
        "Retry, or boot it by hand.",
        "retry",
    ),
    "MEDIA_IGNORED": Reason(
        "The BMC accepted the virtual media and did not insert it.",
        "Retry; reset the BMC.",
        "retry",
    ),
    # Kubernetes and Metal3
    "KUBE_UNREACHABLE": Reason(
        "The Kubernetes API does not answer.", "Check the connection, then retry.", "retry"
    ),
    "KUBE_DENIED": Reason(
        "The Kubernetes API refused our token.",
        "Correct the connection's kubeconfig or its role.",
        "edit",
    ),
    "KUBE_CONFLICT": Reason(
        "Somebody else wrote the object at the same time.",
        "Nothing to do; it is read again.",
        "none",
    ),
    "KUBE_ERROR": Reason(
        "The Kubernetes API answered with an error.", "Read the evidence, then retry.", "retry"
    ),
    "HOST_MISSING": Reason(
        "The BareMetalHost is not there.", "Register the host again, then retry.", "quarantine"
    ),
    "HOST_BUSY": Reason(
        "The BareMetalHost is used by another consumer.", "Pick another server.", "pick_another"
    ),
    "HOST_ERROR": Reason(
        "Metal3 reports an error on the host.", "Read Metal3's words, mend, then retry.", "retry"
    ),
    "HOST_PAUSED": Reason(
        "The BareMetalHost is paused or detached.", "Have it resumed, then retry.", "retry"
    ),
    "GIT_OWNS_POWER": Reason(
        "Another applier owns fields of the BareMetalHost that a claim has to write.",
        "Add the ignore lines shown on the provider's page to that applier.",
        "edit",
    ),
    "OS_BOOTED_IN_PROVISIONING": Reason(
        "The tenant's system had begun to boot before the server was stopped in the "
        "provisioning segment.",
        "Release the claim: the server is wiped.",
        "release",
    ),
    "IMAGE_UNREACHABLE": Reason(
        "The image's URL cannot be read.", "Correct the image, then retry.", "edit"
    ),
    "IMAGE_CHECKSUM": Reason(
        "The image on the wire does not have the checksum that was asked.",
        "Correct the image or its source, then retry.",
        "edit",
    ),
    "INSTALL_FAILED": Reason(
        "The installer failed.", "Read the evidence, then retry or release.", "retry"
    ),
    "INSTALL_SILENT": Reason(
        "The installer stopped reporting.", "Retry, or pick another server.", "retry"
    ),
    "NO_PROVISIONING_ADDRESS": Reason(
        "The server has no provisioning address.", "Set it on the server's page.", "edit"
    ),
    # network
    "SWITCH_UNREACHABLE": Reason(
        "The fabric controller does not answer.", "Check it, then retry.", "retry"
    ),
    "SWITCH_LOGIN": Reason(
        "The fabric controller refused our login.", "Correct the fabric's settings.", "edit"
    ),
    "SWITCH_REFUSED": Reason(
        "The fabric refused the change.", "Read its words, mend, then retry.", "retry"
    ),
    "SWITCH_CONFLICT": Reason(
        "The fabric was changed by somebody else meanwhile.",
        "Nothing to do; it is retried.",
        "none",
    ),
    "PORT_MISMATCH": Reason(
        "A port is not in the segment that was asked, as read back from the switch.",
        "Look at the switch; retry, or quarantine the server.",
        "quarantine",
    ),
    "NO_SEGMENT": Reason(
        "The cluster has no segment.", "Give the tenant a segment, then retry.", "edit"
    ),
    "NO_ADDRESS": Reason(
        "The segment has no free address.", "Widen the segment or release a node.", "edit"
    ),
    "NO_VLAN": Reason(
        "The fabric has no free VLAN.", "Remove a segment or widen the range.", "edit"
    ),
    # control plane and nodes
    "CONTROL_PLANE_FAILED": Reason(
        "The tenant's control plane reports a failure.", "Read its words, then retry.", "retry"
    ),
    "TENANT_API_UNREACHABLE": Reason(
        "The tenant's API does not answer.", "Look at the control plane, then retry.", "retry"
    ),
    "NOT_BOOTED": Reason(
        "No node of this server has appeared in the tenant cluster.",
        "Look at the server's console; retry or release.",
        "retry",
    ),
    "NODE_NOT_READY": Reason(
        "The node is there and not Ready.", "Look at the node, then retry.", "retry"
    ),
    "LABELS_MISSING": Reason(
        "The node lacks labels of its pool.", "Retry; check the user data.", "retry"
    ),
    "GPU_MISMATCH": Reason(
        "The GPUs found are not the node type's.",
        "Mend the server, inspect it, then retry.",
        "quarantine",
    ),
    # wiping
    "AGENT_SILENT": Reason(
        "Our agent has not called from the server.", "Look at the console, then retry.", "retry"
    ),
    "WIPE_FAILED": Reason(
        "A drive could not be wiped.",
        "Replace the drive or retry; the server stays out.",
        "quarantine",
    ),
    "READBACK_NOT_BLANK": Reason(
        "A drive still holds data after its wipe.",
        "Wipe again; replace the drive if it stays.",
        "quarantine",
    ),
    "DRIVE_SET_MISMATCH": Reason(
        "The drives wiped are not the drives in the inventory.",
        "Find the drive that is missing or new, then retry.",
        "quarantine",
    ),
    "NOT_OFF": Reason(
        "The power could not be read as off.", "Power it off, then retry.", "power_off"
    ),
    # doors
    "NOT_ALLOWED": Reason(
        "This cannot be done in the present state.", "Reload and look at the state.", "none"
    ),
    "STALE": Reason(
        "Somebody else changed the object meanwhile.", "Reload and look again.", "none"
    ),
    "INVALID": Reason("The request has wrong values.", "Correct the fields named.", "edit"),
    "NOT_FOUND": Reason(
        "There is no such object, or you may not see it.", "Check the name.", "none"
    ),
    "DENIED": Reason("Your role does not allow this.", "Ask somebody with the role named.", "none"),
    "UNAUTHENTICATED": Reason(
        "The request has no usable token or session.", "Sign in or send a valid token.", "none"
    ),
    "METHOD": Reason(
        "This address does not take this method.", "See /api/schema/ for what it takes.", "none"
    ),
    "MEDIA_TYPE": Reason(
        "The request's or the answer's media type is not served here.",
        "Send and accept application/json.",
        "edit",
    ),
    "IDEMPOTENCY_REUSED": Reason(
        "This Idempotency-Key was used for another request.",
        "Use a new key for a new request.",
        "edit",
    ),
    "IDEMPOTENCY_RUNNING": Reason(
        "The request with this Idempotency-Key is still running.",
        "Send it again in a moment; it is carried out once.",
        "wait",
    ),
    "IN_USE": Reason(
        "Something that lives uses this object.", "Remove or release what uses it first.", "none"
    ),
    "CLUSTER_NOT_READY": Reason(
        "The tenant's control plane is not ready yet.", "Wait until it is.", "wait"
    ),
}


def reason(code: str) -> Reason:
    """The catalogue's entry; an unknown code is a bug and reads as one."""
    return REASONS.get(code, REASONS["BUG"])
