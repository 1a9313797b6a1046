"""Sets of field paths: who owns what in an object, in the FieldsV1 form of managedFields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.kinds import Resource

# A path is a tuple of FieldsV1 elements: `f:name`, `k:{"name":"x"}`, `v:"x"`; a final `.` says
# that the map or list item itself exists.
Path = tuple[str, ...]
ListType = tuple[str, ...] | str  # the keys of a map-like list, "set", or "atomic"
ListTypes = Callable[[Path], ListType]

_UNOWNED = frozenset(
    {
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
    }
)  # fmt: skip

# Lists of the built-in kinds that merge item by item, by the name of their field.
MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "taints": ("key", "effect"),
    "ports": ("port", "protocol"),
    "ownerReferences": ("uid",),
}


def list_types(resource: Resource) -> ListTypes:
    """How each list of this resource merges: from its schema, or from the built-in table."""

    def of(path: Path) -> ListType:
        if path == ("f:metadata", "f:finalizers"):
            return "set"
        if path == ("f:metadata", "f:ownerReferences"):
            return ("uid",)
        if resource.custom:
            return _declared(resource.schema or {}, path)
        name = path[-1].removeprefix("f:")
        if name == "ports" and "f:containers" in path:
            return ("containerPort", "protocol")
        return MERGE_KEYS.get(name, "atomic")

    return of


def _declared(schema: Obj, path: Path) -> ListType:
    for element in path:
        if element.startswith("f:"):
            properties = schema.get("properties") or {}
            schema = properties.get(element[2:]) or schema.get("additionalProperties") or {}
            if not isinstance(schema, dict):
                return "atomic"
        else:
            schema = schema.get("items") or {}
    kind = schema.get("x-kubernetes-list-type", "atomic")
    return tuple(schema["x-kubernetes-list-map-keys"]) if kind == "map" else str(kind)


def item_element(item: Any, list_type: ListType) -> str:
    """The path element of a list item. A missing `protocol` is TCP, as the API defaults it."""
    if list_type == "set":
        return "v:" + json.dumps(item)
    held = item if isinstance(item, dict) else {}
    keys = {k: held.get(k, "TCP" if k == "protocol" else "") for k in sorted(list_type)}
    return "k:" + json.dumps(keys, separators=(",", ":"))


def leaves(obj: Obj, types: ListTypes) -> dict[Path, Any]:
    """Every ownable field of the object with its value."""
    found: dict[Path, Any] = {}
    for name, value in obj.items():
        if name in ("apiVersion", "kind"):
            continue
        if name == "metadata":
            value = {k: v for k, v in value.items() if k not in _UNOWNED}
            for field, held in value.items():
                _collect(held, ("f:metadata", f"f:{field}"), types, found)
        else:
            _collect(value, (f"f:{name}",), types, found)
    return found


def _collect(value: Any, path: Path, types: ListTypes, found: dict[Path, Any]) -> None:
    if isinstance(value, dict):
        found[(*path, ".")] = None
        for name, held in value.items():
            _collect(held, (*path, f"f:{name}"), types, found)
        return
    if isinstance(value, list) and (list_type := types(path)) != "atomic":
        found[(*path, ".")] = None
        for item in value:
            element = (*path, item_element(item, list_type))
            if list_type == "set":
                found[element] = item
            else:
                _collect(item, element, types, found)
        return
    found[path] = value


def to_v1(paths: Iterable[Path]) -> Obj:
    tree: Obj = {}
    for path in sorted(paths):
        at = tree
        for element in path:
            at = at.setdefault(element, {})
    return tree


def from_v1(tree: Any) -> set[Path]:
    found: set[Path] = set()

    def walk(at: Any, path: Path) -> None:
        if not isinstance(at, dict):
            return
        if not at and path:
            found.add(path)
        for element, below in at.items():
            walk(below, (*path, element))

    walk(tree, ())
    return found


def spoken(path: Path) -> str:
    """A path as conflict messages name it: `.spec.ports[port=80].name`."""
    said = ""
    for element in path:
        if element == ".":
            continue
        kind, _, rest = element.partition(":")
        if kind == "f":
            said += f".{rest}"
        elif kind == "v":
            said += f"[={rest}]"
        else:
            pairs = json.loads(rest).items()
            said += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in pairs) + "]"
    return said
