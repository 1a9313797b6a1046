"""Objects as the Tables that `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.jsonpath import find
from gpucloud.kubeapi.kinds import NAME, Column, Resource

_PLAIN_TYPES = {"string", "integer", "number", "boolean"}


def table(resource: Resource, objects: Iterable[Obj], meta: Obj, include: str = "Metadata") -> Obj:
    """`include` says what of each object goes into its row: None, Metadata or Object."""
    columns = _columns(resource)
    rows = []
    for obj in objects:
        row: Obj = {"cells": [_cell(resource, column, obj) for column in columns]}
        if include == "Metadata":
            row["object"] = partial(obj)
        elif include == "Object":
            row["object"] = obj
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def partial(obj: Obj) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def _columns(resource: Resource) -> tuple[Column, ...]:
    """A CustomResourceDefinition declares no name column; every Table has one."""
    return (NAME, *resource.columns) if resource.custom else resource.columns


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": column.type if column.type in _PLAIN_TYPES else "string",
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def _cell(resource: Resource, column: Column, obj: Obj) -> Any:
    if special := _SPECIAL.get(column.type):
        return special(obj)
    found = find(obj, column.path) if column.path else []
    if column.type == "count":
        return len(found[0]) if found and isinstance(found[0], list) else len(found)
    if column.type == "date":
        return age(str(found[0])) if found and found[0] else "<unknown>"
    if column.type in ("integer", "number", "boolean"):
        return found[0] if found else (None if resource.custom else 0)
    if not found or found[0] is None:
        return None if resource.custom else "<none>"
    return ",".join(_text(value) for value in found)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def age(timestamp: str) -> str:
    """The time since then as kubectl writes it: 45s, 5m30s, 3h, 2d4h."""
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<unknown>"
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int((datetime.now(UTC) - then).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d")


def _two(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}" + (f"{small}{small_unit}" if small else "")


def _node_status(obj: Obj) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or []
    ready = next((c for c in conditions if c.get("type") == "Ready"), None)
    said = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    cordoned = (obj.get("spec") or {}).get("unschedulable")
    return f"{said},SchedulingDisabled" if cordoned else said


def _node_roles(obj: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    held = obj["metadata"].get("labels") or {}
    return ",".join(sorted(k[len(prefix) :] for k in held if k.startswith(prefix))) or "<none>"


def _pod_ready(obj: Obj) -> str:
    ran = (obj.get("status") or {}).get("containerStatuses") or []
    wanted = len((obj.get("spec") or {}).get("containers") or [])
    return f"{sum(1 for c in ran if c.get('ready'))}/{wanted}"


def _event_object(obj: Obj) -> str:
    involved = obj.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


_SPECIAL = {
    "node-status": _node_status,
    "node-roles": _node_roles,
    "pod-ready": _pod_ready,
    "event-object": _event_object,
}
