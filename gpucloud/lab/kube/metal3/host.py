"""A BareMetalHost as the operator sees it: wishes, status, and what one reconcile changes."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

FINALIZER = "baremetalhost.metal3.io"
PAUSED = "baremetalhost.metal3.io/paused"
DETACHED = "baremetalhost.metal3.io/detached"
STATUS = "baremetalhost.metal3.io/status"
REBOOT = "reboot.metal3.io"
INSPECT = "inspect.metal3.io"
HARDWARE_DETAILS = "inspect.metal3.io/hardwaredetails"

EMPTY_STATUS: dict[str, Any] = {
    "errorCount": 0,
    "errorMessage": "",
    "operationalStatus": "",
    "poweredOn": False,
    "provisioning": {"state": "", "ID": ""},
    "provisioningFailCount": 0,
    "operationHistory": {},
    "goodCredentials": {},
    "triedCredentials": {},
}


def stamp() -> str:
    """Now, as Kubernetes writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_diff(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from one object to the other, removals as explicit nulls."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_diff(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch


@dataclass
class Host:
    """One BareMetalHost during one reconcile: handlers change it, the controller saves it."""

    raw: dict[str, Any]
    status: dict[str, Any] = field(init=False)
    drop: set[str] = field(default_factory=set)
    finalizers: list[str] = field(init=False)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    credentials: dict[str, str] | None = None
    credentials_version: str = ""
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.status = {**copy.deepcopy(EMPTY_STATUS), **copy.deepcopy(self.raw.get("status") or {})}
        self.finalizers = list(self.meta.get("finalizers") or [])

    @property
    def meta(self) -> dict[str, Any]:
        found: dict[str, Any] = self.raw["metadata"]
        return found

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.raw.get("spec") or {}
        return found

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def namespace(self) -> str:
        return str(self.meta["namespace"])

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def annotations(self) -> dict[str, str]:
        return {k: v for k, v in (self.meta.get("annotations") or {}).items() if k not in self.drop}

    @property
    def deleting(self) -> bool:
        return bool(self.meta.get("deletionTimestamp"))

    @property
    def online(self) -> bool:
        return bool(self.spec.get("online"))

    @property
    def bmc(self) -> dict[str, Any]:
        found: dict[str, Any] = self.spec.get("bmc") or {}
        return found

    @property
    def image(self) -> dict[str, Any]:
        """The wanted image, empty when none is wanted."""
        found: dict[str, Any] = self.spec.get("image") or {}
        return found if found.get("url") else {}

    @property
    def provisioned_image(self) -> dict[str, Any]:
        found: dict[str, Any] = self.status["provisioning"].get("image") or {}
        return found if found.get("url") else {}

    @property
    def state(self) -> str:
        return str(self.status["provisioning"].get("state") or "")

    @state.setter
    def state(self, value: str) -> None:
        self.status["provisioning"]["state"] = value

    @property
    def boot_mac(self) -> str:
        return str(self.spec.get("bootMACAddress") or "").lower()

    @property
    def cleaning_wanted(self) -> bool:
        return str(self.spec.get("automatedCleaningMode") or "metadata") != "disabled"

    @property
    def inspection_disabled(self) -> bool:
        return (
            self.spec.get("inspectionMode") == "disabled"
            or self.annotations.get(INSPECT) == "disabled"
        )

    def held_off(self) -> bool:
        """Whether somebody asks for power off by a reboot annotation, with or without a key."""
        return any(self._reboot_names())

    def held_hard(self) -> bool:
        """Whether one of the reboot annotations asks for a hard power off; any hard wins."""
        return any(_mode(self.annotations[name]) == "hard" for name in self._reboot_names())

    def clear_reboots(self) -> None:
        """Forget every reboot annotation, keys included, as happens when provisioning completes.

        Beware: this is why a hold key set before `provisioned` is lost.
        """
        self.drop.update(self._reboot_names())

    def _reboot_names(self) -> list[str]:
        return [k for k in self.annotations if k == REBOOT or k.startswith(f"{REBOOT}/")]

    def begin(self, operation: str) -> None:
        """Open the operation's slot in operationHistory; it is overwritten every time."""
        self.status["operationHistory"][operation] = {"start": stamp()}

    def finish(self, operation: str) -> None:
        self.status["operationHistory"].setdefault(operation, {"start": stamp()})["end"] = stamp()

    def fail(self, error_type: str, message: str) -> None:
        """Record a failed action: the state stays, the count goes up, the caller backs off."""
        if (self.status.get("errorType"), self.status["errorMessage"]) != (error_type, message):
            self.events.append(("Warning", "".join(w.title() for w in error_type.split()), message))
        self.status["operationalStatus"] = "error"
        self.status["errorType"] = error_type
        self.status["errorMessage"] = message
        self.status["errorCount"] += 1

    def clear_error(self, status: str = "OK") -> None:
        """Back to OK; the count stays until an action completes, so a failing loop backs off."""
        self.status["operationalStatus"] = status
        self.status.pop("errorType", None)
        self.status["errorMessage"] = ""

    def complete(self, reason: str, message: str) -> None:
        """An action came to its end: errors and their count are over."""
        self.clear_error()
        self.status["errorCount"] = 0
        self.events.append(("Normal", reason, message))

    @property
    def failed(self) -> bool:
        return bool(self.status.get("errorType"))


def _mode(value: str) -> str:
    try:
        read = json.loads(value) if value else {}
    except ValueError:
        return "soft"
    return str(read.get("mode", "soft")) if isinstance(read, dict) else "soft"
