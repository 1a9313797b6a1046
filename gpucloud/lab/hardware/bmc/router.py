"""Finds what serves a Redfish path; a `*` in a pattern stands for one identifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Router(Generic[T]):
    """A table of patterns; a literal segment is preferred to a `*`."""

    def __init__(self, table: Mapping[str, T]) -> None:
        self._tree: dict[str, object] = {}
        for pattern, target in table.items():
            node = self._tree
            for part in _parts(pattern):
                node = node.setdefault(part, {})  # type: ignore[assignment]
            node[""] = target

    def find(self, path: str) -> tuple[T, list[str]] | None:
        """The target and the identifiers that stood where the pattern has stars."""
        return self._find(self._tree, _parts(path), [])

    def _find(
        self, node: dict[str, object], parts: list[str], stars: list[str]
    ) -> tuple[T, list[str]] | None:
        if not parts:
            return (node[""], stars) if "" in node else None  # type: ignore[return-value]
        head, rest = parts[0], parts[1:]
        for key, found in ((head, stars), ("*", [*stars, head])):
            below = node.get(key)
            if isinstance(below, dict):
                answer = self._find(below, rest, found)
                if answer is not None:
                    return answer
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
