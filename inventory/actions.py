"""What a person may do to a server: label, when it applies or why not, what it means and calls.

Buttons, confirm pages and posts ask the same object, so a button never offers what is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpucloud.drivers import call_budget
from gpucloud.models import User
from gpucloud.policy import may
from inventory import forms
from inventory.lifecycle import SERVER
from inventory.models import Server
from inventory.services import bmcs, servers
from provisioning.services import inspections

# A page waits this long for a BMC; its driver refuses to write after that.
SECONDS: Final = 30.0
FOLLOWS_WITHIN: Final = 3.0


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


def _busy(server: Server) -> str:
    running = server.operations.filter(state="active").first()
    if running is None:
        return ""
    return f"{running.get_kind_display()} is under way; wait until it has ended."


def _no_bmc(server: Server) -> str:
    return "" if hasattr(server, "bmc") else "No BMC is recorded for it."


def _power(state: str) -> Callable[[Server], str]:
    def refusal(server: Server) -> str:
        return _no_bmc(server) or _busy(server) or servers.power_refusal(server, state)

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
    if found := _no_bmc(server) or _busy(server):
        return found
    if not SERVER.may(server.state, "inspect"):
        return f"It is {server.get_state_display().lower()}; inspect it when it is free again."
    return ""


def _inspect(server: Server, user: User, data: dict[str, Any]) -> str:
    inspections.start(server, user.username)
    return f"{server} is being inspected."


def _blank_refusal(server: Server) -> str:
    if server.tenancy != 1:
        return "It had tenants: it leaves through a wipe, not by a declaration."
    if server.state != Server.State.ENROLLED:
        return f"It is {server.get_state_display().lower()}; only an enrolled server is declared."
    return _busy(server)


def _blank(server: Server, user: User, data: dict[str, Any]) -> str:
    servers.declare_blank(server, user.username, data["confirm"])
    return f"{server} was declared blank and is on offer."


def _retire_refusal(server: Server) -> str:
    if found := _busy(server):
        return found
    if not SERVER.may(server.state, "retire"):
        return f"It is {server.get_state_display().lower()}; release it first."
    return ""


def _retire(server: Server, user: User, data: dict[str, Any]) -> str:
    servers.retire(server, user.username, data["confirm"])
    return f"{server} was retired."


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


def _label(server: Server, user: User, data: dict[str, Any]) -> str:
    servers.set_labels(server, data["labels"], user.username)
    return f"Labels of {server} were set."


def _set_bmc(server: Server, user: User, data: dict[str, Any]) -> str:
    kept = server.bmc.config if hasattr(server, "bmc") else None
    same = hasattr(server, "bmc") and server.bmc.driver == data["driver"]
    credentials = {key: data[key] for key in ("username", "password") if data.get(key)}
    bmcs.set_bmc(
        server, user.username, data["driver"], data["address"], credentials, kept if same else None
    )
    return f"The BMC of {server} was set."


def _never(server: Server) -> str:
    return ""


def _all() -> Iterator[Action]:
    yield Action(
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
    )
    yield Action(
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
    )
    yield Action(
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
    )
    yield Action(
        "read-power",
        "inspect",
        "Read power now",
        "clock",
        "Asks the BMC and changes nothing.",
        lambda server: "Read power now",
        lambda server: "The BMC is asked for power and health; nothing is changed.",
        _no_bmc,
        _read,
    )
    yield Action(
        "maintenance",
        "maintenance",
        "Put in maintenance",
        "calendar",
        "Takes it out of selection; what it does now goes on.",
        lambda server: f"Put {server} in maintenance",
        lambda server: "New claims pass it by. A claim that holds it now keeps it.",
        _never,
        _maintain(True),
        forms.MaintenanceForm,
        shown=lambda server: not server.maintenance,
        head=True,
    )
    yield Action(
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
        _never,
        _maintain(False),
        shown=lambda server: server.maintenance,
        head=True,
    )
    yield Action(
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
        _never,
        _quarantine(True),
        forms.ReasonForm,
        shown=lambda server: not server.quarantined,
    )
    yield Action(
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
        _never,
        _quarantine(False),
        shown=lambda server: server.quarantined,
    )
    yield Action(
        "labels",
        "change",
        "Change labels",
        "edit",
        "Node types select servers by them.",
        lambda server: "Set labels",
        lambda server: (
            "Node types match by labels from the next selection on. A claim that holds "
            "the server now keeps it."
        ),
        _never,
        _label,
        forms.LabelsForm,
    )
    yield Action(
        "bmc",
        "change",
        "Change BMC",
        "key",
        "Address and credentials; these are only ever set.",
        lambda server: "Save BMC",
        lambda server: (
            "Power, inspection and every step on this server use these settings from now "
            "on. Test them first: nothing is saved by a test."
        ),
        _busy,
        _set_bmc,
        forms.BmcSettingsForm,
    )
    yield Action(
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
    )
    yield Action(
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
    )


ACTIONS: Final[dict[str, Action]] = {action.name: action for action in _all()}
