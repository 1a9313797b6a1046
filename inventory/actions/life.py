"""Into the pool by declaration, and out of it for good."""

from __future__ import annotations

from typing import Any, Final

from gpucloud.models import User
from inventory.actions import forms
from inventory.actions.action import Action, busy
from inventory.lifecycle import SERVER
from inventory.models import Server
from inventory.services import servers


def _blank_refusal(server: Server) -> str:
    if server.tenancy != 1:
        return "It had tenants: it leaves through a wipe, not by a declaration."
    if server.state != Server.State.ENROLLED:
        return f"It is {server.get_state_display().lower()}; only an enrolled server is declared."
    return busy(server)


def _blank(server: Server, user: User, data: dict[str, Any]) -> str:
    servers.declare_blank(server, user.username, data["confirm"])
    return f"{server} was declared blank and is on offer."


def _retire_refusal(server: Server) -> str:
    if found := busy(server):
        return found
    if not SERVER.may(server.state, "retire"):
        return f"It is {server.get_state_display().lower()}; release it first."
    return ""


def _retire(server: Server, user: User, data: dict[str, Any]) -> str:
    servers.retire(server, user.username, data["confirm"])
    return f"{server} was retired."


ACTIONS: Final = (
    Action(
        "declare-blank",
        "declare blank",
        "Declare blank",
        "disk",
        "You vouch that its drives hold nobody's data.",
        lambda server: f"Declare {server} blank",
        lambda server: (
            f"You vouch that the {server.drives.count()} drives of {server} hold nobody's "
            "data. The record names you, the clean gate opens, and the next claim may have it."
        ),
        _blank_refusal,
        _blank,
        forms.TypedNameForm,
        kind="danger",
        shown=lambda server: server.clean_tenancy != server.tenancy,
    ),
    Action(
        "retire",
        "retire",
        "Retire",
        "close",
        "For good: its name becomes free.",
        lambda server: f"Retire {server}",
        lambda server: (
            f"{server} is never selected again and its name becomes free. Its history and "
            "wipe records stay under its permanent link. This cannot be undone."
        ),
        _retire_refusal,
        _retire,
        forms.TypedNameForm,
        kind="danger",
    ),
)
