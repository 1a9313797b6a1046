"""crashpoint(): named places where a fault test may kill this very process; nothing otherwise."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# "name:n, name:n": dies at the n-th hit of each name. The marker file holds a line for each death,
# which makes each happen once, across restarts.
_WANTED: dict[str, int] = {}
for _one in filter(None, os.environ.get("GPUCLOUD_CRASH_AT", "").split(",")):
    _name, _, _nth = _one.strip().rpartition(":")
    _WANTED[_name] = int(_nth)
_MARKER = os.environ.get("GPUCLOUD_CRASH_MARKER", "")
_hits: dict[str, int] = {}


def crashpoint(name: str) -> None:
    """Die by SIGKILL here when the environment asks for it."""
    if name not in _WANTED:
        return
    _hits[name] = _hits.get(name, 0) + 1
    if _hits[name] < _WANTED[name] or _died_before(name):
        return
    if _MARKER:
        with Path(_MARKER).open("a") as out:
            out.write(f"{name}\n")
    os.kill(os.getpid(), signal.SIGKILL)


def _died_before(name: str) -> bool:
    marker = Path(_MARKER) if _MARKER else None
    return bool(marker and marker.exists() and name in marker.read_text().splitlines())
