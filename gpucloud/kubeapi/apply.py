"""Server-side apply: merge an intent into an object, and refuse what others own."""

from __future__ import annotations

import copy
from typing import Any

from gpucloud.kubeapi.errors import Obj, apply_conflict
from gpucloud.kubeapi.fields import ListTypes, Path, item_element, leaves, spoken
from gpucloud.kubeapi.managed import Entry, Ownership


def apply(
    live: Obj, intent: Obj, by: Entry, owned: Ownership, types: ListTypes, force: bool, now: str
) -> Obj:
    """The merged object; `owned` is brought up to date with it."""
    wanted = leaves(intent, types)
    current = leaves(live, types)
    _settle_conflicts(wanted, current, by, owned, force)
    merged: Obj = _merge(live, intent, types, ())
    before = owned.sets.get(by, set())
    others = set().union(*(paths for entry, paths in owned.sets.items() if entry != by))
    # Whole maps and items first: an item whose key field went could not be found any more.
    for path in sorted(before - wanted.keys() - others, key=lambda p: (p[-1] != ".", len(p))):
        _remove(merged, path, types, others)
    owned.sets[by] = set(wanted)
    if before != owned.sets[by] or merged != live:
        owned.times[by] = now
    return merged


def _settle_conflicts(
    wanted: dict[Path, Any], current: dict[Path, Any], by: Entry, owned: Ownership, force: bool
) -> None:
    causes: list[tuple[str, str]] = []
    for path, value in wanted.items():
        if path[-1] == "." or (path in current and current[path] == value):
            continue
        for entry, paths in owned.sets.items():
            if entry == by or path not in paths:
                continue
            if force or _is_earlier_self(by, entry):
                paths.discard(path)
            else:
                causes.append((_who(entry), spoken(path)))
    if causes:
        raise apply_conflict(causes)


def _is_earlier_self(by: Entry, entry: Entry) -> bool:
    """kubectl may go over from client-side to server-side apply without a conflict."""
    return (by.manager, entry.manager) == ("kubectl", "kubectl-client-side-apply")


def _who(entry: Entry) -> str:
    """As the API names a manager: the quoted name, and the door when it wrote through one."""
    said = f'"{entry.manager}"'
    if entry.subresource:
        said += f' with subresource "{entry.subresource}"'
    return said if entry.operation == "Apply" else f"{said} using {entry.operation}"


def _merge(live: Any, intent: Any, types: ListTypes, path: Path) -> Any:
    if isinstance(intent, dict) and isinstance(live, dict):
        merged = dict(live)
        for name, value in intent.items():
            if path == () and name == "metadata":
                value = {k: v for k, v in value.items() if k != "resourceVersion"}
            merged[name] = _merge(live.get(name), value, types, (*path, f"f:{name}"))
        return merged
    if isinstance(intent, list) and isinstance(live, list):
        list_type = types(path)
        if list_type == "atomic":
            return copy.deepcopy(intent)
        if list_type == "set":
            return live + [item for item in intent if item not in live]
        items = {item_element(item, list_type): item for item in live}
        for item in intent:
            element = item_element(item, list_type)
            items[element] = _merge(items.get(element), item, types, (*path, element))
        return list(items.values())
    return copy.deepcopy(intent)


def _remove(obj: Any, path: Path, types: ListTypes, others: set[Path]) -> None:
    """Take one abandoned field out, unless something within it is still held by another."""
    if path[-1] == ".":
        path = path[:-1]
        if any(other[: len(path)] == path for other in others):
            return
    at: Any = obj
    walked: Path = ()
    for element in path[:-1]:
        at, walked = _step(at, element, types, walked), (*walked, element)
        if at is None:
            return
    last = path[-1]
    if isinstance(at, dict):
        at.pop(last.removeprefix("f:"), None)
    elif isinstance(at, list):
        list_type = types(walked)
        at[:] = [item for item in at if item_element(item, list_type) != last]


def _step(at: Any, element: str, types: ListTypes, walked: Path) -> Any:
    if element.startswith("f:"):
        return at.get(element[2:]) if isinstance(at, dict) else None
    if not isinstance(at, list):
        return None
    list_type = types(walked)
    return next((item for item in at if item_element(item, list_type) == element), None)
