"""What we have recorded of a server: labels, BMC, cables, provisioning address."""

from __future__ import annotations

from typing import Any, Final

from gpucloud.models import User
from inventory.actions import forms
from inventory.actions.action import Action, busy, never
from inventory.models import Server
from inventory.services import bmcs, servers
from network.services import cables


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


def _plug(server: Server, user: User, data: dict[str, Any]) -> str:
    port = data["interface"]
    link = cables.plug(port, data["fabric"], data["switch"], data["port"], user.username)
    return f"{port} is in {link} of {link.fabric}."


def _unplug(server: Server, user: User, data: dict[str, Any]) -> str:
    port = data["interface"]
    cables.unplug(port.link, user.username)
    return f"The cable of {port} was forgotten."


def _address(server: Server, user: User, data: dict[str, Any]) -> str:
    wanted = {key: data[key] or "" for key in ("address", "gateway", "dns")}
    servers.set_provisioning(server, wanted, user.username)
    return f"The provisioning address of {server} was set."


def _held(server: Server) -> str:
    if server.claims.exclude(state="gone").exists():
        return "A claim counts on it; release that first."
    return busy(server)


ACTIONS: Final = (
    Action(
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
        never,
        _label,
        forms.LabelsForm,
    ),
    Action(
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
        busy,
        _set_bmc,
        forms.BmcSettingsForm,
    ),
    Action(
        "cable",
        "change",
        "Record a cable",
        "network",
        "Which switch port an interface is in.",
        lambda server: "Record the cable",
        lambda server: (
            "The record tells which switch port is moved between segments. Nothing is changed on "
            "the switch by it."
        ),
        _held,
        _plug,
        forms.CableForm,
        shown=lambda server: server.interfaces.filter(link=None).exists(),
    ),
    Action(
        "uncable",
        "change",
        "Forget a cable",
        "network",
        "When it was moved to another port.",
        lambda server: "Forget the cable",
        lambda server: (
            "The server is refused to claims whose NIC plan has this port until its cable is "
            "recorded again. Nothing is changed on the switch."
        ),
        _held,
        _unplug,
        forms.UncableForm,
        shown=lambda server: server.interfaces.filter(link__isnull=False).exists(),
    ),
    Action(
        "provisioning",
        "change",
        "Set address",
        "network",
        "Its provisioning address, kept across claims.",
        lambda server: "Set the provisioning address",
        lambda server: (
            "DHCP gives this address to the server while it is in the provisioning segment. A "
            "server without one is refused to claims."
        ),
        busy,
        _address,
        forms.AddressForm,
    ),
)
