"""Processes of this installation that outlived a killed supervisor: find them, end them.

A process is ours when its environment, fixed when it was started, names this data folder and a
process of the supervisor. A pid file alone proves nothing: numbers are used again.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


class StillThere(Exception):
    """A leftover that does not end, not even by SIGKILL."""


def leftovers(data: Path) -> dict[int, str]:
    """Pid and name of every process of ours that still runs."""
    spared = _self_and_ancestors()
    found: dict[int, str] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) not in spared:
            name = _our_name(int(entry.name), data)
            if name:
                found[int(entry.name)] = name
    return found


def end_leftovers(data: Path, seconds: float = 5.0) -> list[str]:
    """Kill what a killed supervisor left, wait until it is gone, return the names."""
    names: set[str] = set()
    deadline = time.monotonic() + seconds
    while found := leftovers(data):
        if time.monotonic() > deadline:
            left = ", ".join(f"{name} ({pid})" for pid, name in sorted(found.items()))
            raise StillThere(f"these processes of the last run do not end: {left}")
        names |= set(found.values())
        for pid, name in found.items():
            _kill(pid, name, data)
        time.sleep(0.05)
    for stale in (*(data / "run").glob("*.pid"), *(data / "run").glob("*.beat")):
        stale.unlink(missing_ok=True)
    return sorted(names)


def _kill(pid: int, name: str, data: Path) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # The handle pins the process; asked again, the number cannot be a stranger's.
        if _our_name(pid, data) == name:
            with suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def _our_name(pid: int, data: Path) -> str:
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return ""
    variables = dict(item.partition(b"=")[::2] for item in environ.split(b"\0"))
    if variables.get(b"GPUCLOUD_DATA") != os.fsencode(data):
        return ""
    return os.fsdecode(variables.get(b"GPUCLOUD_PROCESS", b""))


def _self_and_ancestors() -> set[int]:
    spared, pid = set(), os.getpid()
    while pid > 1:
        spared.add(pid)
        # The name in brackets may hold spaces; the parent is the second field after it.
        stat = (PROC / str(pid) / "stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return spared
