"""The six conditions that BMO 0.13 and later keep on a BareMetalHost beside its state."""

from __future__ import annotations

from typing import Any

from gpucloud.lab.kube.metal3.host import DETACHED, Host, stamp

PROGRESS = {
    "inspecting": "Inspecting",
    "preparing": "Preparing",
    "provisioning": "Provisioning",
    "deprovisioning": "Deprovisioning",
    "powering off before delete": "PoweringOffBeforeDelete",
    "deleting": "Deleting",
    "registering": "Registering",
}


def refresh(host: Host) -> None:
    """Set status.conditions from the state; a transition time moves only when the truth does."""
    before = {one["type"]: one for one in host.status.get("conditions") or []}
    host.status["conditions"] = [
        _condition(before.get(kind), kind, status, reason) for kind, status, reason in _truths(host)
    ]


def _truths(host: Host) -> list[tuple[str, bool, str]]:
    state, failed = host.state, host.failed
    managed = state not in ("", "unmanaged", "registering")
    error = host.status.get("errorType", "")
    registration = "RegistrationFailed" if error == "registration error" else ""
    power = "PowerFailure" if error == "power management error" else ""
    unmanaged = "Registering" if state == "registering" else "NotManaged"
    done = state in ("provisioned", "externally provisioned")
    running = PROGRESS.get(state, "")
    detached = "Detached" if DETACHED in host.annotations else ""
    trouble = "Error" if failed else detached
    idle = "Available" if state == "available" else "NotAvailable"
    return [
        (
            "Manageable",
            managed and not registration and not power,
            registration or power or ("Manageable" if managed else unmanaged),
        ),
        ("AvailableForProvisioning", state == "available" and not trouble, trouble or idle),
        (
            "Provisioned",
            done,
            "Provisioned"
            if done
            else "Provisioning"
            if state == "provisioning"
            else "NotProvisioned",
        ),
        (
            "Ready",
            (done or state == "available") and not trouble,
            trouble or running or ("Provisioned" if done else "Available"),
        ),
        ("Progressing", bool(running), running or "NotProgressing"),
        ("Healthy", not failed, "CriticalError" if failed else "Healthy"),
    ]


def _condition(
    before: dict[str, Any] | None, kind: str, status: bool, reason: str
) -> dict[str, Any]:
    word = "True" if status else "False"
    since = before["lastTransitionTime"] if before and before["status"] == word else stamp()
    return {
        "type": kind,
        "status": word,
        "reason": reason or "Unknown",
        "message": "",
        "lastTransitionTime": since,
    }
