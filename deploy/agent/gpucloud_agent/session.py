"""One life of the agent: say hello, fetch the plan, do it, report, and power off if told so."""

from __future__ import annotations

import threading
import time
from typing import Any

from gpucloud_agent import VERSION
from gpucloud_agent.door import Door, GaveUp, say
from gpucloud_agent.hardware import Hardware
from gpucloud_agent.wipe import now, wipe_all

REPORT_EVERY_SECONDS = 2.0


def run(door: Door, hardware: Hardware, key: str) -> None:
    """Carry one operation through; GaveUp when the door wants nothing of us."""
    machine = hardware.machine()
    door.hello(key, machine.system_uuid, machine.macs, machine.serial)
    say("the door knows us")
    plan = door.plan()
    ok, error, report = _carry_out(plan, hardware, _Reporter(door))
    report = {"agent": VERSION, "finished": now(), **vars(machine), **report}
    door.result(ok, error, report)
    say(f"{plan.get('verb')}: {'done' if ok else error}")
    if plan.get("after") == "poweroff":
        hardware.power_off()


def _carry_out(
    plan: dict[str, Any], hardware: Hardware, reporter: _Reporter
) -> tuple[bool, str, dict[str, Any]]:
    """The result of the plan's verb. A bug in here must still become a report."""
    try:
        verb = plan.get("verb")
        if verb == "inspect":
            return True, "", {"drives": [drive.facts() for drive in hardware.drives()]}
        if verb == "wipe":
            planned = [str(drive["serial"]) for drive in plan["drives"]]
            samples = int(plan.get("readback_samples", 64))
            return wipe_all(hardware, planned, samples, reporter.tell)
        return False, f"This agent cannot {verb}.", {}
    except GaveUp:
        raise
    except Exception as error:
        return False, f"The agent failed: {type(error).__name__}: {error}", {}


class _Reporter:
    """Passes progress on, at most every two seconds, the drives' first and last words always."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._lock = threading.Lock()
        self._said: dict[str | None, str] = {}
        self._last = 0.0

    def tell(self, percent: int, message: str, drive: str | None) -> None:
        with self._lock:
            news = self._said.get(drive) != message
            if not news and time.monotonic() - self._last < REPORT_EVERY_SECONDS:
                return
            self._said[drive] = message
            self._last = time.monotonic()
        # Outside the lock: a slow door must not hold up the other drives.
        self._door.progress(percent, message, drive)
