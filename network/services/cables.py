"""Cables: which switch port an interface is in; never changed while a claim relies on it."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Lower

from gpucloud import history
from gpucloud.problems import Invalid, Problem
from inventory.models import Interface, Server, SharedEndpoint
from network.models import Attachment, Fabric, Link


def owner_of(interface: Interface) -> Server | SharedEndpoint:
    """Who has this port."""
    owner = interface.server or interface.shared_endpoint
    assert owner is not None
    return owner


def plug(interface: Interface, fabric: Fabric, switch: str, port: str, actor: str) -> Link:
    """Record that the interface's cable is in this port of the fabric's switch."""
    _free(interface)
    errors: dict[str, list[str]] = {}
    if Link.objects.filter(interface=interface).exists():
        errors["interface"] = [f"{interface} has a cable already; unplug that first."]
    taken = (
        Link.objects.alias(s=Lower("switch"), p=Lower("port"))
        .filter(fabric=fabric, s=switch.lower(), p=port.lower())
        .select_related("interface__server", "interface__shared_endpoint")
        .first()
    )
    if taken:
        errors["port"] = [f"{switch} {port} of {fabric} has the cable of {taken.interface}."]
    if errors:
        raise Invalid(errors)
    try:
        with transaction.atomic():
            link = Link.objects.create(interface=interface, fabric=fabric, switch=switch, port=port)
            _tell(link, "plug", actor, f"{interface} is in {switch} {port} of {fabric}.")
    except IntegrityError as error:
        raise Invalid({"port": ["Somebody recorded a cable there at this moment."]}) from error
    return link


def unplug(link: Link, actor: str) -> None:
    """Forget a cable. What the switch does with the port is not touched."""
    _free(link.interface)
    with transaction.atomic():
        _tell(link, "unplug", actor, f"{link.interface} is no longer in {link} of {link.fabric}.")
        link.delete()


def _free(interface: Interface) -> None:
    """Where a claim or an operation counts on a port, its cable stays as it is."""
    server = interface.server
    if server is not None:
        busy = server.claims.exclude(state="gone").exists()
        if busy or server.operations.filter(state="active").exists():
            raise Problem(f"{server} is in use, so its cables stay as they are.", "IN_USE")
        return
    if Attachment.objects.filter(interface=interface).exclude(state="gone").exists():
        raise Problem(f"{interface} carries segments, so its cable stays.", "IN_USE")


def _tell(link: Link, verb: str, actor: str, message: str) -> None:
    data: dict[str, Any] = {"switch": link.switch, "port": link.port, "fabric": link.fabric.name}
    history.record(owner_of(link.interface), verb, actor, message, data=data)
