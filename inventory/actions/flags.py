"""Maintenance and quarantine: what keeps selection away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gpucloud.models import User
from inventory.actions import forms
from inventory.actions.action import Action, never
from inventory.models import Server
from inventory.services import servers


def _maintain(on: bool) -> Callable[[Server, User, dict[str, Any]], str]:
    def run(server: Server, user: User, data: dict[str, Any]) -> str:
        servers.set_maintenance(
            server, on, user.username, data.get("reason", ""), data.get("until")
        )
        return f"{server} is in maintenance." if on else f"{server} is back from maintenance."

    return run


def _quarantine(on: bool) -> Callable[[Server, User, dict[str, Any]], str]:
    def run(server: Server, user: User, data: dict[str, Any]) -> str:
        servers.set_quarantine(server, on, user.username, data.get("reason", ""))
        return f"{server} is quarantined." if on else f"{server} was let out of quarantine."

    return run


ACTIONS: Final = (
    Action(
        "maintenance",
        "maintenance",
        "Put in maintenance",
        "calendar",
        "Takes it out of selection; what it does now goes on.",
        lambda server: f"Put {server} in maintenance",
        lambda server: "New claims pass it by. A claim that holds it now keeps it.",
        never,
        _maintain(True),
        forms.MaintenanceForm,
        shown=lambda server: not server.maintenance,
        head=True,
    ),
    Action(
        "end-maintenance",
        "maintenance",
        "End maintenance",
        "calendar",
        "Lets selection have it again.",
        lambda server: f"End maintenance of {server}",
        lambda server: (
            f"Its reason was: {server.maintenance_reason}. Selection may take the server "
            "at once when it is available."
        ),
        never,
        _maintain(False),
        shown=lambda server: server.maintenance,
        head=True,
    ),
    Action(
        "quarantine",
        "quarantine",
        "Quarantine",
        "shield",
        "Out of selection until a person lifts it.",
        lambda server: f"Quarantine {server}",
        lambda server: (
            "The flag keeps every claim away until a person lifts it. Ports are not moved "
            "and what runs now goes on."
        ),
        never,
        _quarantine(True),
        forms.ReasonForm,
        shown=lambda server: not server.quarantined,
    ),
    Action(
        "lift-quarantine",
        "quarantine",
        "Lift quarantine",
        "shield",
        "Only a person does this.",
        lambda server: f"Lift quarantine of {server}",
        lambda server: (
            f"Its reason was: {server.quarantine_reason}. Lift it only when that is "
            "settled; selection may take the server at once."
        ),
        never,
        _quarantine(False),
        shown=lambda server: server.quarantined,
    ),
)
