"""A VirtualClusterInstance's status while one look is taken."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from gpucloud.lab.kube.client import Obj


def stamp() -> str:
    """Now, as Kubernetes writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Status:
    """Phase and conditions; a condition keeps the time since which its truth holds."""

    def __init__(self, obj: Obj) -> None:
        self.status: dict[str, Any] = json.loads(json.dumps(obj.get("status") or {}))
        self.conditions: list[dict[str, Any]] = self.status.setdefault("conditions", [])
        self.status.setdefault("phase", "Pending")

    def find(self, kind: str) -> dict[str, Any] | None:
        return next((one for one in self.conditions if one["type"] == kind), None)

    def true(self, kind: str) -> bool:
        found = self.find(kind)
        return bool(found and found["status"] == "True")

    def set(self, kind: str, truth: bool, reason: str = "", message: str = "") -> None:
        word = "True" if truth else "False"
        found = self.find(kind)
        new: dict[str, Any] = {"type": kind, "status": word, "lastTransitionTime": stamp()}
        if not truth:
            new |= {"severity": "Error", "reason": reason, "message": message}
        if found and found["status"] == word:
            new["lastTransitionTime"] = found["lastTransitionTime"]
        if found:
            self.conditions[self.conditions.index(found)] = new
        else:
            self.conditions.append(new)

    def drop(self, *kinds: str) -> None:
        self.conditions[:] = [one for one in self.conditions if one["type"] not in kinds]
        self.status["online"] = False

    def left(self, kind: str, seconds: float) -> float:
        """Seconds until a condition has been true for so long; 0 when it has."""
        found = self.find(kind)
        if not found:
            return seconds
        since = datetime.fromisoformat(found["lastTransitionTime"])
        return max(0.0, seconds - (datetime.now(UTC) - since).total_seconds())

    def phase(self, phase: str, reason: str = "", message: str = "") -> None:
        self.status |= {"phase": phase, "reason": reason, "message": message}
