"""Power and inspection, by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from gpucloud.drivers import call_budget
from gpucloud.models import User
from inventory.actions.action import SECONDS, Action, busy, no_bmc
from inventory.lifecycle import SERVER
from inventory.models import Server
from inventory.services import servers
from provisioning.services import inspections

FOLLOWS_WITHIN: Final = 3.0


def _power(state: str) -> Callable[[Server], str]:
    def refusal(server: Server) -> str:
        return no_bmc(server) or busy(server) or servers.power_refusal(server, state)

    return refusal


def _switch(state: str) -> Callable[[Server, User, dict[str, Any]], str]:
    def run(server: Server, user: User, data: dict[str, Any]) -> str:
        with call_budget(SECONDS):
            seen = servers.set_power(server, state, user.username)
            # Most machines follow within a moment; the person waits that long for the read-back.
            until = time.monotonic() + FOLLOWS_WITHIN
            while seen.power != state and time.monotonic() < until:
                time.sleep(0.3)
                seen = servers.read_power(server)
        if seen.power == state:
            return f"{server} is {state}, read back at the BMC."
        return (
            f"The BMC took the order; it still reads {seen.power}. The page follows as it is read."
        )

    return run


def _off_means(server: Server) -> str:
    claim = server.claim
    if claim is not None:
        return (
            f"The power is cut at once, without a shutdown. {server} is held by claim {claim} of "
            f"tenant {claim.tenant}: its node goes away until somebody powers it on again."
        )
    return "The power is cut at once, without a shutdown, and read back at the BMC."


def _on_means(server: Server) -> str:
    if server.claim is not None:
        return (
            f"{server} boots from its disk, in its tenant's segment, and is read back at the BMC."
        )
    return (
        f"{server} boots what its firmware finds, in the segment where its ports are now. "
        "Selection expects available servers to be off, so power it off again afterwards."
    )


def _read(server: Server, user: User, data: dict[str, Any]) -> str:
    with call_budget(SECONDS):
        seen = servers.read_power(server)
    return f"{server} reads {seen.power}{f', via {seen.via}' if seen.via else ''}."


def _inspect_refusal(server: Server) -> str:
    if found := no_bmc(server) or busy(server):
        return found
    if not SERVER.may(server.state, "inspect"):
        return f"It is {server.get_state_display().lower()}; inspect it when it is free again."
    return ""


def _inspect(server: Server, user: User, data: dict[str, Any]) -> str:
    inspections.start(server, user.username)
    return f"{server} is being inspected."


ACTIONS: Final = (
    Action(
        "power-on",
        "power",
        "Power on",
        "power",
        "Boots what the firmware finds.",
        lambda server: f"Power on {server}",
        _on_means,
        _power("on"),
        _switch("on"),
        shown=lambda server: server.power_now != "on",
        head=True,
    ),
    Action(
        "power-off",
        "power",
        "Power off",
        "power",
        "Cuts the power at once.",
        lambda server: f"Power off {server}",
        _off_means,
        _power("off"),
        _switch("off"),
        kind="danger",
        shown=lambda server: server.power_now != "off",
        head=True,
    ),
    Action(
        "inspect",
        "inspect",
        "Inspect",
        "refresh",
        "Reads the hardware at the BMC again.",
        lambda server: f"Inspect {server}",
        lambda server: (
            "GPUs, drives, ports and firmware are read at the BMC and replace what the "
            "last inspection found. The server is out of selection until it has ended."
        ),
        _inspect_refusal,
        _inspect,
        head=True,
    ),
    Action(
        "read-power",
        "inspect",
        "Read power now",
        "clock",
        "Asks the BMC and changes nothing.",
        lambda server: "Read power now",
        lambda server: "The BMC is asked for power and health; nothing is changed.",
        no_bmc,
        _read,
    ),
)
