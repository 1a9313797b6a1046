"""Every in-between state's deadline:

how long a step may last, and whether it then fails or alarms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Deadline:
    """`seconds` of real time (scaled by TIME_FACTOR), then fail the step or alarm and go on
    waiting.
    """

    seconds: float
    then: Literal["fail", "alarm"] = "fail"
    code: str = "STEP_TIMEOUT"


DEADLINES: dict[tuple[str, str], Deadline] = {
    ("operation", "select"): Deadline(900, "alarm", "WAITING_FOR_CAPACITY"),
    ("operation", "configure"): Deadline(600),
    ("operation", "setup"): Deadline(600),
    ("operation", "install"): Deadline(3600, code="INSTALL_SILENT"),
    ("operation", "stop"): Deadline(600, code="NOT_OFF"),
    ("operation", "move"): Deadline(600, code="PORT_MISMATCH"),
    ("operation", "boot"): Deadline(1800, code="NOT_BOOTED"),
    ("operation", "join"): Deadline(900, code="NODE_NOT_READY"),
    ("operation", "verify"): Deadline(600),
    ("operation", "drain"): Deadline(900),
    ("operation", "return"): Deadline(600, code="PORT_MISMATCH"),
    ("operation", "deprovision"): Deadline(1800),
    ("operation", "wipe"): Deadline(14400, code="AGENT_SILENT"),
    ("operation", "check"): Deadline(900),
    ("operation", "inspect"): Deadline(900),
    ("cluster", "network"): Deadline(600),
    ("cluster", "scheduling"): Deadline(600, code="CONTROL_PLANE_FAILED"),
    ("cluster", "creating-namespace"): Deadline(600, code="CONTROL_PLANE_FAILED"),
    ("cluster", "deploying"): Deadline(900, code="CONTROL_PLANE_FAILED"),
    ("cluster", "available"): Deadline(900, code="CONTROL_PLANE_FAILED"),
    ("cluster", "connected"): Deadline(600, code="TENANT_API_UNREACHABLE"),
    ("cluster", "ready"): Deadline(600, code="CONTROL_PLANE_FAILED"),
    ("cluster", "release nodes"): Deadline(21600, "alarm"),
    ("cluster", "remove control plane"): Deadline(1800),
    ("cluster", "remove network"): Deadline(600),
}


def deadline_of(kind: str, name: str) -> Deadline:
    """The step's deadline; every step has one, which a test compares with the plans."""
    return DEADLINES[(kind, name)]
