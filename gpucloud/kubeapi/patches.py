"""JSON patch, JSON merge patch and strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from gpucloud.kubeapi.errors import Obj, bad_request, rejected_patch
from gpucloud.kubeapi.fields import ListType, ListTypes, Path, item_element

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def json_patch(obj: Obj, operations: Any) -> Obj:
    """A failed `test`, or a path that is not there, rejects the whole patch (422)."""
    if not isinstance(operations, list):
        raise bad_request("json patch: expected a list of operations")
    try:
        patched = jsonpatch.apply_patch(copy.deepcopy(obj), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise rejected_patch(str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise bad_request(f"json patch: {error}") from None
    if not isinstance(patched, dict):
        raise rejected_patch("the patched document is no object")
    return patched


def merge_patch(obj: Any, patch: Any) -> Any:
    """RFC 7386: null removes, maps merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_patch(obj: Any, patch: Obj, types: ListTypes, path: Path = ()) -> Any:
    """A merge patch that knows which lists merge by key, and the `$` directives of kubectl."""
    if patch.get("$patch") == "replace":
        return {k: copy.deepcopy(v) for k, v in patch.items() if k != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    merged: Obj = dict(obj) if isinstance(obj, dict) else {}
    if "$retainKeys" in patch:
        merged = {k: v for k, v in merged.items() if k in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            kept = merged.get(field) or []
            if not isinstance(value, list) or not isinstance(kept, list):
                raise bad_request(f"{name} needs a list")
            merged[field] = [v for v in kept if v not in value]
        elif name.startswith("$"):
            continue  # $setElementOrder: order is the server's here
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _strategic_value(merged.get(name), value, types, (*path, f"f:{name}"))
    return merged


def _strategic_value(held: Any, value: Any, types: ListTypes, path: Path) -> Any:
    if isinstance(value, dict):
        return strategic_patch(held, value, types, path)
    if isinstance(value, list) and (list_type := types(path)) != "atomic":
        kept = held if isinstance(held, list) else []
        return _strategic_list(kept, value, types, path, list_type)
    return copy.deepcopy(value)


def _strategic_list(
    held: list[Any], patch: list[Any], types: ListTypes, path: Path, list_type: ListType
) -> list[Any]:
    if list_type == "set":
        return held + [item for item in patch if item not in held]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [copy.deepcopy(item) for item in patch if "$patch" not in item]
    # A patch may name only the first key (kubectl drops the defaulted ones).
    merged = list(held)
    for item in patch:
        at = _position(merged, item, list_type)
        element = (*path, item_element(item, list_type))
        if isinstance(item, dict) and item.get("$patch") == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(strategic_patch({}, item, types, element))
        else:
            merged[at] = strategic_patch(merged[at], item, types, element)
    return merged


def _position(items: list[Any], wanted: Any, keys: ListType) -> int | None:
    if not isinstance(wanted, dict):
        raise bad_request(f"expected a map in a list that merges by {keys[0]}, got {wanted!r}")
    named = {k: wanted[k] for k in keys if k in wanted}
    if keys[0] not in named:
        raise bad_request(f"map: {wanted} does not contain declared merge key: {keys[0]}")
    for at, item in enumerate(items):
        if all(item.get(k, v) == v for k, v in named.items()):
            return at
    return None
