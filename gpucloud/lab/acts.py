"""The act log: an append-only record of what really happened in the lab, which tests judge by."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def now() -> str:
    """The time of day as the whole lab writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ActLog:
    """Appends one JSON object a line; `seq` goes on where an earlier process stopped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._seq = _repair(path)
        self._file = path.open("ab", buffering=0)

    def write(
        self, actor: str, object: str, verb: str, before: Any = None, after: Any = None
    ) -> dict[str, Any]:
        self._seq += 1
        act = {
            "seq": self._seq,
            "at": now(),
            "actor": actor,
            "object": object,
            "verb": verb,
            "before": before,
            "after": after,
        }
        # One write call a line: a killed process leaves whole lines, or one torn last line that
        # the next start cuts off.
        self._file.write(json.dumps(act, separators=(",", ":"), default=str).encode() + b"\n")
        return act

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """Every whole act of a log, oldest first."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def _repair(path: Path) -> int:
    """Cut a torn last line and return the last sequence number."""
    if not path.exists():
        return 0
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        size = 64 * 1024
        while end:
            start = max(0, end - size)
            file.seek(start)
            tail = file.read(end - start)
            cut = tail.rfind(b"\n")
            line = tail[:cut].rpartition(b"\n")[2] if cut >= 0 else b""
            if cut >= 0 and (b"\n" in tail[:cut] or start == 0):
                file.truncate(start + cut + 1)
                return int(json.loads(line)["seq"])
            if start == 0:
                file.truncate(0)
                return 0
            size *= 8
    return 0
