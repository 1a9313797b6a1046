"""The shape of an action, and what several of them ask alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpucloud.models import User
from inventory.actions import forms
from inventory.models import Server

# A page waits this long for a BMC; its driver refuses to write after that.
SECONDS: Final = 30.0


@dataclass(frozen=True)
class Action:
    """One action. `refusal` says in a sentence why it is not possible now, "" when it is; `run`
    does it and returns the sentence of the toast.
    """

    name: str
    verb: str
    label: str
    icon: str
    note: str
    button: Callable[[Server], str]
    consequence: Callable[[Server], str]
    refusal: Callable[[Server], str]
    run: Callable[[Server, User, dict[str, Any]], str]
    form: type[forms.ActionForm] = forms.ActionForm
    kind: Literal["", "danger"] = ""
    shown: Callable[[Server], bool] = lambda server: True
    head: bool = False


def busy(server: Server) -> str:
    running = server.operations.filter(state="active").first()
    if running is None:
        return ""
    return f"{running.get_kind_display()} is under way; wait until it has ended."


def no_bmc(server: Server) -> str:
    return "" if hasattr(server, "bmc") else "No BMC is recorded for it."


def never(server: Server) -> str:
    return ""
