"""What the API itself adds to objects of the built-in kinds when they are written."""

from __future__ import annotations

import base64
import binascii

from gpucloud.kubeapi.deletion import CRDS, NAMESPACES
from gpucloud.kubeapi.errors import Obj, bad_request
from gpucloud.kubeapi.kinds import Resource


def prepare(resource: Resource, new: Obj) -> None:
    """What the API itself adds to an object at birth."""
    if resource.id == NAMESPACES:
        new["spec"] = {"finalizers": ["kubernetes"]}
        new["status"] = {"phase": "Active"}
        name = new["metadata"].get("name", "")
        new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    elif resource.id == "secrets":
        new.setdefault("type", "Opaque")
    elif resource.id == CRDS:
        new["status"] = _established(new)


def _established(crd: Obj) -> Obj:
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": crd["metadata"]["creationTimestamp"],
        }
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    names = crd["spec"]["names"]
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def tidy(resource: Resource, new: Obj) -> None:
    """At every write: a Secret's stringData becomes data, and data must be base64."""
    if resource.id != "secrets":
        return
    for name, text in (new.pop("stringData", None) or {}).items():
        new.setdefault("data", {})[name] = base64.b64encode(str(text).encode()).decode()
    for name, value in (new.get("data") or {}).items():
        try:
            base64.b64decode(value or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: data[{name}]: '
                "illegal base64 data"
            ) from None
