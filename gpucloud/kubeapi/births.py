"""What the API itself adds to objects of the built-in kinds when they are written."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from gpucloud.kubeapi.deletion import CRDS, NAMESPACES
from gpucloud.kubeapi.errors import Obj, bad_request, invalid
from gpucloud.kubeapi.kinds import Resource, from_crd

_SCHEMA_PARTS: dict[str, type] = {
    "properties": dict,
    "items": dict,
    "required": list,
    "enum": list,
    "pattern": str,
    "type": str,
    "x-kubernetes-list-map-keys": list,
}
CRD_KIND = "CustomResourceDefinition.apiextensions.k8s.io"


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
    """At every write: refuse and complete what the built-in kinds hold."""
    if resource.id == "secrets":
        _tidy_secret(new)
    elif resource.id == CRDS:
        _check_definition(new)


def _tidy_secret(new: Obj) -> None:
    """stringData becomes data, and data must be base64."""
    try:
        for name, text in (new.pop("stringData", None) or {}).items():
            held = base64.b64encode(str(text).encode()).decode()
            new["data"] = (new.get("data") or {}) | {name: held}
        for value in (new.get("data") or {}).values():
            base64.b64decode(value or "", validate=True)
    except (AttributeError, binascii.Error, TypeError, ValueError) as error:
        message = (
            f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data: {error}'
        )
        raise bad_request(message) from None


def _check_definition(new: Obj) -> None:
    name = new["metadata"].get("name", "")
    try:
        resource = from_crd(new)
        defined = resource.id
        if not all(isinstance(v, str) for v in (resource.version, resource.kind)):
            raise ValueError("version and kind must be strings")
        for version in new["spec"]["versions"]:
            _check_schema((version.get("schema") or {}).get("openAPIV3Schema") or {})
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
        cause = ("FieldValueInvalid", f"Invalid value: {error!r}", "spec")
        raise invalid(CRD_KIND, name, [cause]) from None
    if defined != name:
        message = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        raise invalid(CRD_KIND, name, [("FieldValueInvalid", message, "metadata.name")])


def _check_schema(schema: Any) -> None:
    """Refuse a schema that could not be followed later."""
    for name, kind in _SCHEMA_PARTS.items():
        if not isinstance(schema.get(name, kind()), kind):
            raise ValueError(f"{name} must be of type {kind.__name__}")
    re.compile(schema.get("pattern", ""))
    extra = schema.get("additionalProperties")
    below = [*schema.get("properties", {}).values(), schema.get("items", {})]
    for inner in [*below, extra if isinstance(extra, dict) else {}]:
        if inner:
            _check_schema(inner)
