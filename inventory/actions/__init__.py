"""What a person may do to a server: label, when it applies or why not, what it means and calls.

Buttons, confirm pages and posts ask the same object, so a button never offers what is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpucloud.models import User
from gpucloud.policy import may
from inventory.actions import flags, life, power, records
from inventory.actions.action import Action
from inventory.models import Server

ACTIONS: Final[dict[str, Action]] = {
    action.name: action
    for action in (*power.ACTIONS, *flags.ACTIONS, *records.ACTIONS, *life.ACTIONS)
}


@dataclass(frozen=True)
class Offer:
    """An action as one person meets it on one server now."""

    action: Action
    href: str
    refusal: str

    @property
    def uid(self) -> str:
        return f"do-{self.action.name}"


def offers(user: User, server: Server) -> list[Offer]:
    """The actions that the person's role allows; those not possible now come with the reason."""
    if server.state == Server.State.RETIRED:
        return []
    return [
        Offer(action, f"{server.get_absolute_url()}{action.name}/", action.refusal(server))
        for action in ACTIONS.values()
        if action.shown(server) and may(user, action.verb, server)
    ]
