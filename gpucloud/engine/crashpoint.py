"""crashpoint(): named places where a fault test may kill this very process; nothing otherwise."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# "name:n" kills at the n-th hit of that name; the marker file makes it once, across restarts.
_WANTED, _, _nth = os.environ.get("GPUCLOUD_CRASH_AT", "").rpartition(":")
_MARKER = os.environ.get("GPUCLOUD_CRASH_MARKER", "")
_hits = 0


def crashpoint(name: str) -> None:
    """Die by SIGKILL here when the environment asks for it."""
    global _hits
    if not _WANTED or name != _WANTED:
        return
    _hits += 1
    if _hits < int(_nth) or (_MARKER and Path(_MARKER).exists()):
        return
    if _MARKER:
        Path(_MARKER).write_text(name)
    os.kill(os.getpid(), signal.SIGKILL)
