"""A BareMetalHost as our drivers read and patch it: only our own keys are ever written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpucloud.drivers import DriverError
from inventory.drivers.kube import MANAGER, Kube, Obj, path_of

API = "metal3.io/v1alpha1"
HOLD = "reboot.metal3.io/gpucloud"
HOLD_VALUE = '{"mode":"hard"}'
PAUSED, DETACHED = "baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"
DHCP = "metal3.vcluster.com/"
OPERATOR = "baremetal-operator"

# Fields of spec that a claim has to write; another applier of one of them owns the host.
GUARDED = ("f:online", "f:image", "f:consumerRef")


@dataclass(frozen=True)
class Host:
    """One BareMetalHost as read."""

    raw: Obj

    @property
    def meta(self) -> Obj:
        return dict(self.raw["metadata"])

    @property
    def spec(self) -> Obj:
        return dict(self.raw.get("spec") or {})

    @property
    def status(self) -> Obj:
        return dict(self.raw.get("status") or {})

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.meta.get("annotations") or {})

    @property
    def state(self) -> str:
        return str((self.status.get("provisioning") or {}).get("state") or "")

    @property
    def online(self) -> bool:
        return bool(self.spec.get("online"))

    @property
    def powered(self) -> bool:
        return bool(self.status.get("poweredOn"))

    @property
    def image_url(self) -> str:
        return str((self.spec.get("image") or {}).get("url") or "")

    @property
    def written_url(self) -> str:
        """The image that Metal3 says is on the machine now."""
        written = (self.status.get("provisioning") or {}).get("image") or {}
        return str(written.get("url") or "")

    @property
    def live(self) -> bool:
        """Whether what runs from this host's image is an ISO, not an installed system."""
        return (self.spec.get("image") or {}).get("format") == "live-iso"

    @property
    def consumer(self) -> Obj:
        return dict(self.spec.get("consumerRef") or {})

    @property
    def error_type(self) -> str:
        return str(self.status.get("errorType") or "")

    @property
    def error(self) -> str:
        return str(self.status.get("errorMessage") or "")

    @property
    def provisioned(self) -> bool:
        return self.state in ("provisioned", "externally provisioned")

    @property
    def updated(self) -> datetime | None:
        return moment(self.status.get("lastUpdated"))

    def operation(self, name: str, end: str) -> datetime | None:
        """When an operation (`provision`) had its `start` or `end`, in the operator's clock."""
        slot = (self.status.get("operationHistory") or {}).get(name) or {}
        return moment(slot.get(end))

    def our_last_write(self) -> datetime | None:
        """When this host was last written by us, as the API recorded it."""
        times = [
            moment(entry.get("time"))
            for entry in self.meta.get("managedFields") or []
            if entry.get("manager") == MANAGER
        ]
        return max((one for one in times if one), default=None)

    def stopped_by(self) -> str:
        """Who keeps the operator away from this host; empty when nobody does."""
        if PAUSED in self.annotations:
            return f"paused by {self.annotations[PAUSED] or 'somebody'}"
        return "detached" if DETACHED in self.annotations else ""

    def dhcp_repair(self, wanted: dict[str, str]) -> dict[str, str]:
        """The provisioning annotations that are missing or wrong, ready for a patch."""
        notes = self.annotations
        keys = {f"{DHCP}{name}": value for name, value in wanted.items() if value}
        return {key: value for key, value in keys.items() if notes.get(key) != value}

    def git_owner(self, managers: tuple[str, ...] = ()) -> str:
        """The other applier that owns power, image or consumer of this host; empty when none does.

        An applier is a manager that used server-side apply, or one that the settings name;
        kubectl's client-side apply and the operator itself are not refused.
        """
        for entry in self.meta.get("managedFields") or []:
            manager = str(entry.get("manager", ""))
            applies = entry.get("operation") == "Apply" or manager in managers
            if not applies or manager in (MANAGER, OPERATOR):
                continue
            owned = (entry.get("fieldsV1") or {}).get("f:spec") or {}
            if any(name in owned for name in GUARDED):
                return manager
        return ""


@dataclass(frozen=True)
class Hosts:
    """The BareMetalHosts of one namespace."""

    kube: Kube
    namespace: str

    def path(self, name: str = "") -> str:
        return path_of(API, "baremetalhosts", self.namespace, name)

    def find(self, name: str) -> Host | None:
        found = self.kube.get(self.path(name))
        return Host(found) if found else None

    def get(self, name: str) -> Host:
        found = self.find(name)
        if found is None:
            raise DriverError(
                f"There is no BareMetalHost {self.namespace}/{name} at {self.kube.host}.",
                code="HOST_MISSING",
                permanent=True,
                hint="Register the host again, then retry.",
            )
        return found

    def list(self, selector: dict[str, str]) -> Iterator[Host]:
        labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        for raw in self.kube.list(self.path(), labelSelector=labels):
            yield Host(raw)

    def patch(
        self, host: Host, spec: Obj | None = None, annotations: dict[str, Any] | None = None
    ) -> Host:
        """Write these keys and no others, on the very version that was read."""
        body: Obj = {"metadata": {"resourceVersion": host.meta["resourceVersion"]}}
        if annotations:
            body["metadata"]["annotations"] = annotations
        if spec:
            body["spec"] = spec
        return Host(self.kube.merge(self.path(host.name), body))


def moment(text: Any) -> datetime | None:
    """A time as Kubernetes writes it."""
    return datetime.fromisoformat(str(text)) if text else None


def refuse_stopped(host: Host) -> None:
    """Raise when somebody keeps the operator away: what we write would not be acted on."""
    if why := host.stopped_by():
        raise DriverError(
            f"The BareMetalHost {host.name} is {why}: Metal3 does not act on it.",
            code="HOST_PAUSED",
            hint="Have it resumed, then retry.",
            wait=10,
        )
