"""The part of JSONPath that printer columns use."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)              # .name, .a\.b, .*
      | \['(?P<quoted>[^']*)'\]                    # ['name']
      | \[(?P<index>-?\d+|\*)\]                    # [0], [*]
      | \[\?\(@\.(?P<key>[\w.]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]   # [?(@.type=="Ready")]
    """,
    re.VERBOSE,
)


def find(obj: Any, path: str) -> list[Any]:
    """Every value at the path, in order."""
    found = [obj]
    for kind, wanted, value in _steps(path):
        found = [held for at in found for held in _step(at, kind, wanted, value)]
    return found


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[tuple[str, str, str], ...]:
    steps: list[tuple[str, str, str]] = []
    path = path.strip().removeprefix("{").removesuffix("}")
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if not match:
            return (("name", "\0", ""),)  # a path nobody can follow finds nothing
        at = match.end()
        if match["name"] is not None:
            steps.append(("name", re.sub(r"\\(.)", r"\1", match["name"]), ""))
        elif match["quoted"] is not None:
            steps.append(("name", match["quoted"], ""))
        elif match["index"] is not None:
            steps.append(("index", match["index"], ""))
        else:
            steps.append(("filter", match["key"], match["value"]))
    return tuple(steps)


def _step(at: Any, kind: str, wanted: str, value: str) -> list[Any]:
    if wanted == "*":
        if isinstance(at, dict):
            return list(at.values())
        return at if isinstance(at, list) else []
    if kind == "name":
        return [at[wanted]] if isinstance(at, dict) and wanted in at else []
    if not isinstance(at, list):
        return []
    if kind == "index":
        return at[int(wanted) :][:1]
    return [item for item in at if str(_deep(item, wanted)) == value]


def _deep(obj: Any, path: str) -> Any:
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj
