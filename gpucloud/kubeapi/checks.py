"""Refusing objects that break the rules of names, labels or their schema."""

from __future__ import annotations

import copy
import re
from typing import Any

from gpucloud.kubeapi.errors import Obj, bad_request, invalid
from gpucloud.kubeapi.kinds import Resource

Cause = tuple[str, str, str]  # reason, message, field

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp")
_KINDS: dict[type, str] = {str: "strings", dict: "objects"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def shape(resource: Resource, obj: Any, namespace: str, name: str = "") -> None:
    """The body is this kind, at this address (400 when not)."""
    if not isinstance(obj, dict):
        raise bad_request("the object provided is unrecognized: it must be an object")
    _metadata_types(obj.setdefault("metadata", {}))
    version = obj.setdefault("apiVersion", resource.api_version)
    said = (version, obj.setdefault("kind", resource.kind))
    if said != (resource.api_version, resource.kind):
        raise bad_request(
            f"{said[1]} in version {said[0]!r} cannot be handled as a {resource.kind}: "
            f"expected {resource.api_version}"
        )
    meta = obj["metadata"]
    if namespace and meta.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not resource.namespaced:
        meta.pop("namespace", None)
    if name and meta.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        )


def _metadata_types(meta: Any) -> None:
    """Everything that the rest of this package takes for granted about metadata."""
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    for name in ("labels", "annotations"):
        if not isinstance(meta.get(name) or {}, dict):
            raise bad_request(f"metadata.{name} must be a map")
    for name in _TEXTS:
        if not isinstance(meta.get(name) or "", str):
            raise bad_request(f"metadata.{name} must be a string")
    for name, kind in (("finalizers", str), ("ownerReferences", dict), ("managedFields", dict)):
        held = meta.get(name) or []
        if not isinstance(held, list) or not all(isinstance(item, kind) for item in held):
            raise bad_request(f"metadata.{name} must be a list of {_KINDS[kind]}")


def whole(resource: Resource, obj: Obj) -> None:
    """The complete object is valid (422 with every cause when not)."""
    causes = [*_metadata(resource, obj["metadata"]), *_schema(obj, resource.schema or {})]
    if causes:
        raise invalid(resource.kind_id, obj["metadata"].get("name", ""), causes)


def _metadata(resource: Resource, meta: Obj) -> list[Cause]:
    causes: list[Cause] = []
    name = meta.get("name")
    if not name or not isinstance(name, str):
        return [("FieldValueRequired", "Required value: name or generateName is required",
                 "metadata.name")]  # fmt: skip
    free = resource.group == "rbac.authorization.k8s.io"  # "system:node" and the like
    if len(name) > 253 or not (free or _SUBDOMAIN.fullmatch(name)):
        message = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain is expected'
        causes.append(("FieldValueInvalid", message, "metadata.name"))
    for kind in ("labels", "annotations"):
        for key, value in (meta.get(kind) or {}).items():
            where = f"metadata.{kind}"
            pattern = _LABEL_KEY if kind == "labels" else re.compile(_LABEL_KEY.pattern, re.I)
            if not pattern.fullmatch(key):
                causes.append(("FieldValueInvalid", f'Invalid value: "{key}"', where))
            if not isinstance(value, str):
                message = f"Invalid value: {value!r}: must be a string"
                causes.append(("FieldValueInvalid", message, where))
            elif kind == "labels" and not _LABEL_VALUE.fullmatch(value):
                causes.append(("FieldValueInvalid", f'Invalid value: "{value}"', where))
    return causes


def _schema(value: Any, schema: Obj, path: str = "") -> list[Cause]:
    """The structural part of OpenAPI v3 that CRDs use."""
    if value is None:
        return []
    causes = _own_value(value, schema, path)
    if causes:
        return causes
    if isinstance(value, dict):
        for name in schema.get("required") or []:
            if value.get(name) is None:
                causes.append(("FieldValueRequired", "Required value", _under(path, name)))
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        for name, held in value.items():
            if path == "" and name in ("metadata", "apiVersion", "kind"):
                continue
            below = properties.get(name) or (extra if isinstance(extra, dict) else None)
            if below:
                causes += _schema(held, below, _under(path, name))
    elif isinstance(value, list) and schema.get("items"):
        for at, item in enumerate(value):
            if item is None and "type" in schema["items"]:
                message = f'Invalid value: "null": must be of type {schema["items"]["type"]}'
                causes.append(("FieldValueTypeInvalid", message, f"{path}[{at}]"))
            causes += _schema(item, schema["items"], f"{path}[{at}]")
    return causes


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _own_value(value: Any, schema: Obj, path: str) -> list[Cause]:
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        wanted = None
    if wanted and not _is(value, wanted):
        message = f'Invalid value: "{_type_name(value)}": must be of type {wanted}'
        return [("FieldValueTypeInvalid", message, path)]
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{v}"' for v in schema["enum"])
        message = f'Unsupported value: "{value}": supported values: {supported}'
        return [("FieldValueNotSupported", message, path)]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        message = f'Invalid value: "{value}": should match {schema["pattern"]!r}'
        return [("FieldValueInvalid", message, path)]
    return []


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    return isinstance(value, _TYPES.get(wanted, object))


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, kind in _TYPES.items() if isinstance(value, kind)), "null")


def with_defaults(value: Any, schema: Obj) -> Any:
    """The value with its schema's defaults filled in; maps are changed in place."""
    if isinstance(value, dict):
        for name, below in (schema.get("properties") or {}).items():
            if name not in value and "default" in below:
                value[name] = copy.deepcopy(below["default"])
            if name in value:
                with_defaults(value[name], below)
    elif isinstance(value, list) and schema.get("items"):
        for item in value:
            with_defaults(item, schema["items"])
    return value
