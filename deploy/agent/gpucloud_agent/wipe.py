"""Wiping: the strongest verb each drive takes, what the drive said, and what is left on it.

The report holds facts only. A drive is `ok` when it said so; whether the read-back found data and
whether the set of drives is the right one is judged by the console, not by the machine itself.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Callable, Optional

from gpucloud_agent.hardware import Drive, Hardware, OnProgress, VerbFailed

BLOCK = 4096
SHOWN_BYTES = 64
SIDE_BY_SIDE = 16
METHODS = {
    "NVME": ("sanitize", "format", "overwrite"),
    "SATA": ("secure_erase", "overwrite"),
    "ATA": ("secure_erase", "overwrite"),
}
OTHER_METHODS = ("sanitize", "overwrite")
Tell = Callable[[int, str, Optional[str]], None]


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wipe_all(
    hardware: Hardware, planned: list[str], samples: int, tell: Tell
) -> tuple[bool, str, dict[str, Any]]:
    """Wipe every planned drive, all at the same time; answers (ok, error, report).

    A drive that is here but not in the plan is reported and left alone: it may not be ours.
    """
    seen = hardware.drives()
    wanted = set(planned)
    share = _Share(tell, [d.name for d in seen if d.serial in wanted])

    def one(drive: Drive) -> dict[str, Any]:
        if drive.serial not in wanted:
            return {**_blank_report(drive), "planned": False}
        report = wipe_drive(hardware, drive, samples, lambda f, t: share.tell(drive, f, t))
        return {**report, "planned": True}

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        reports = list(pool.map(one, seen))
    serials = {drive.serial for drive in seen}
    failed = [r["name"] for r in reports if r["planned"] and not r["ok"]]
    report = {
        "drives": reports,
        "missing": [serial for serial in planned if serial not in serials],
        "extra": [drive.serial for drive in seen if drive.serial not in wanted],
    }
    return not failed, f"Not wiped: {', '.join(failed)}." if failed else "", report


def wipe_drive(
    hardware: Hardware, drive: Drive, samples: int, tell: Callable[[float, str], None]
) -> dict[str, Any]:
    """Try the drive's methods, strongest first, until one succeeds; then read back."""
    report = {**_blank_report(drive), "started": now()}
    for method in METHODS.get(drive.protocol.upper(), OTHER_METHODS):
        if not hardware.supports(drive, method):
            report["methods_tried"].append({"method": method, "status": "unsupported", "raw": ""})
            continue
        tell(0.0, f"{drive.name}: {method}")
        try:
            raw = hardware.erase(drive, method, _scaled(tell, f"{drive.name}: {method}"))
        except (VerbFailed, OSError) as error:
            tried = {"method": method, "status": "failed", "raw": str(error)}
            report["methods_tried"].append(tried)
            continue
        report["methods_tried"].append({"method": method, "status": "ok", "raw": raw})
        report["method"] = method
        break
    report["ended"] = now()
    if report["method"]:
        try:
            report["readback"] = read_back(hardware, drive, samples)
            report["ok"] = True
        except OSError as error:
            tried = {"method": "readback", "status": "failed", "raw": str(error)}
            report["methods_tried"].append(tried)
    tell(1.0, f"{drive.name}: {'done' if report['ok'] else 'not wiped'}")
    return report


def read_back(hardware: Hardware, drive: Drive, samples: int) -> dict[str, Any]:
    """Look at the first, the last and random blocks for anything that is not blank."""
    blocks = max(hardware.readable_bytes(drive) // BLOCK, 1)
    wanted = min(max(samples, 2), blocks)
    chosen = {0, blocks - 1}
    chosen |= set(random.SystemRandom().sample(range(blocks), wanted))
    offsets = [block * BLOCK for block in sorted(chosen)]
    nonblank, first = 0, ""
    for offset in offsets:
        data = hardware.read(drive, offset, BLOCK)
        if data.strip(b"\0") and data.strip(b"\xff"):
            nonblank += 1
            first = first or data[:SHOWN_BYTES].hex()
    return {
        "samples": len(offsets),
        "nonblank": nonblank,
        "first_nonblank_hex": first or None,
        "offsets": offsets,
    }


class _Share:
    """The percentage of the whole job, from the fractions of drives that run side by side."""

    def __init__(self, tell: Tell, names: list[str]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._done = dict.fromkeys(names, 0.0)

    def tell(self, drive: Drive, fraction: float, text: str) -> None:
        with self._lock:
            self._done[drive.name] = max(fraction, self._done[drive.name])
            percent = int(100 * sum(self._done.values()) / len(self._done))
        self._tell(percent, text, drive.serial)


def _scaled(tell: Callable[[float, str], None], text: str) -> OnProgress:
    # The read-back still follows, so a finished verb is not yet a finished drive.
    return lambda fraction: tell(min(fraction, 1.0) * 0.95, text)


def _blank_report(drive: Drive) -> dict[str, Any]:
    return {
        **drive.facts(),
        "methods_tried": [],
        "method": None,
        "started": None,
        "ended": None,
        "ok": False,
        "readback": None,
    }
