"""Servers: enrol, label, power by hand, maintenance, quarantine, declare blank, retire."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from gpucloud import history, names
from gpucloud.drivers import DriverError
from gpucloud.live.publish import publish
from gpucloud.problems import Invalid, NotAllowed
from inventory.drivers import PowerState
from inventory.lifecycle import SERVER
from inventory.models import Interface, KubernetesConnection, Rack, Server, Site, WipeRecord
from inventory.services.bmcs import driver_of, forget_bmc, set_bmc


def enroll(
    actor: str,
    name: str,
    *,
    bmc: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    interfaces: Sequence[dict[str, Any]] = (),
    connection: KubernetesConnection | None = None,
    engine_id: str = "",
    site: str = "",
    rack: str = "",
    slot: int | None = None,
    provisioning: dict[str, str] | None = None,
) -> Server:
    """Register a server with its BMC and ports; tenancy 1 begins. Raises Invalid with the fields
    that are wrong.

    `bmc` is {driver, address, username, password, config}; `interfaces` are {name, mac, roles,
    speed_mbps}; `provisioning` is {address (CIDR), gateway, dns}.
    """
    wanted = provisioning or {}
    errors = _problems(name, labels or {}, interfaces, wanted)
    if errors:
        raise Invalid(errors)
    try:
        with transaction.atomic():
            server = Server.objects.create(
                name=name,
                labels=labels or {},
                connection=connection,
                engine_id=engine_id,
                rack=_rack(site, rack),
                slot=slot,
                provisioning_address=wanted.get("address", ""),
                provisioning_gateway=wanted.get("gateway", ""),
                provisioning_dns=wanted.get("dns", ""),
            )
            for one in interfaces:
                Interface.objects.create(
                    server=server,
                    name=one["name"],
                    mac=one["mac"].lower(),
                    roles=one.get("roles", []),
                    speed_mbps=one.get("speed_mbps"),
                )
            history.record(server, "enroll", actor, f"{server} was registered.")
            if bmc:
                credentials = {k: bmc[k] for k in ("username", "password") if bmc.get(k)}
                set_bmc(
                    server,
                    actor,
                    bmc["driver"],
                    bmc.get("address", ""),
                    credentials,
                    bmc.get("config"),
                )
    except IntegrityError as error:
        raise Invalid(_clash(str(error), name)) from error
    return server


def _problems(
    name: str,
    labels: dict[str, str],
    interfaces: Sequence[dict[str, Any]],
    provisioning: dict[str, str],
) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    try:
        names.check(name)
    except ValidationError as error:
        errors["name"] = list(error.messages)
    if Server.objects.exclude(state=Server.State.RETIRED).filter(name=name).exists():
        errors["name"] = [f"There is a server called {name} already."]
    for index, one in enumerate(interfaces):
        mac = str(one.get("mac", "")).lower()
        if Interface.objects.filter(mac=mac).exists():
            errors[f"interfaces.{index}.mac"] = [f"{mac} belongs to another port already."]
        if unknown := set(one.get("roles", [])) - set(Interface.ROLES):
            errors[f"interfaces.{index}.roles"] = [
                f"Unknown NIC role {', '.join(sorted(unknown))}."
            ]
    errors |= _address_problems(provisioning.get("address", ""))
    if any(not isinstance(value, str) for value in labels.values()):
        errors["labels"] = ["Labels are text."]
    return errors


def _address_problems(address: str) -> dict[str, list[str]]:
    try:
        if address and (not ipaddress.ip_interface(address) or "/" not in address):
            raise ValueError
    except ValueError:
        return {
            "provisioning.address": ["Give an address with its prefix, for example 10.10.0.12/22."]
        }
    return {}


def _clash(text: str, name: str) -> dict[str, list[str]]:
    if "mac" in text:
        return {"interfaces": ["One of the MAC addresses belongs to another port already."]}
    if "address" in text:
        return {"bmc.address": ["This BMC address belongs to another server already."]}
    return {"name": [f"A server like {name} is registered already."]}


def _rack(site: str, rack: str) -> Rack | None:
    if not rack:
        return None
    place, _ = Site.objects.get_or_create(name=site or "default")
    return Rack.objects.get_or_create(site=place, name=rack)[0]


def set_labels(server: Server, labels: dict[str, str], actor: str) -> None:
    with transaction.atomic():
        Server.objects.filter(pk=server.pk).update(labels=labels, rev=F("rev") + 1)
        server.refresh_from_db()
        history.record(
            server, "label", actor, f"Labels of {server} were set.", data={"labels": labels}
        )


def set_provisioning(server: Server, wanted: dict[str, str], actor: str) -> None:
    """Set the provisioning address {address (CIDR), gateway, dns}; blank takes it away."""
    if errors := _address_problems(wanted.get("address", "")):
        raise Invalid(errors)
    with transaction.atomic():
        Server.objects.filter(pk=server.pk).update(
            **{f"provisioning_{key}": wanted.get(key, "") for key in ("address", "gateway", "dns")},
            rev=F("rev") + 1,
        )
        server.refresh_from_db()
        address = server.provisioning_address or "none"
        history.record(
            server, "address", actor, f"The provisioning address of {server} is {address}."
        )


def note_power(server: Server, state: PowerState) -> None:
    """Keep a power reading with its time; live pages are told when what they show has changed."""
    changed = server.power != state.power or (state.health and state.health != server.health)
    fields: dict[str, Any] = {
        "power": state.power,
        "power_at": state.at or Now(),
        "power_via": state.via,
        "power_problem": "",
    }
    if state.health:
        fields |= {"health": state.health, "health_at": state.at or Now()}
    if changed:
        fields["rev"] = F("rev") + 1
    Server.objects.filter(pk=server.pk).update(**fields)
    server.refresh_from_db()
    if changed:
        publish(server)


def power_refusal(server: Server, state: str) -> str:
    """Why this power may not be asked for now, in a sentence; "" when it may."""
    if state != "on":
        return ""
    ports = server.interfaces.all()
    if server.state == Server.State.AVAILABLE and not ports:
        return "No ports are recorded, so nobody knows which network it would boot in."
    # A tenant's system never runs in the provisioning segment, not even by hand.
    had_tenant = server.tenancy > 1 and server.clean_tenancy != server.tenancy
    there = Q(attachments__segment__role="tenant", attachments__state="applied")
    if had_tenant and not ports.filter(there).exists():
        return (
            "Its disks may hold a tenant's system and its ports are not in a tenant's segment. "
            "Release it, so that it is wiped."
        )
    return ""


def set_power(server: Server, state: str, actor: str) -> PowerState:
    """A person switches the power;

    refused while an operation is active or a claim holds the server.
    """
    if state not in ("on", "off"):
        raise Invalid({"state": ["Say on or off."]})
    if server.operations.filter(state="active").exists():
        raise NotAllowed(
            f"{server} has an operation under way; its power belongs to that until it ends."
        )
    if refusal := power_refusal(server, state):
        raise NotAllowed(f"{server}: {refusal}")
    if not hasattr(server, "bmc"):
        raise NotAllowed(f"{server} has no BMC recorded, so its power cannot be switched.")
    driver = driver_of(server.bmc)
    try:
        driver.set_power("on" if state == "on" else "off")
        seen = driver.power()
    except DriverError as error:
        history.record(
            server,
            "power",
            actor,
            f"Power {state} was asked for and failed: {error.message}",
            code=error.code,
        )
        raise
    with transaction.atomic():
        note_power(server, seen)
        history.record(
            server,
            "power",
            actor,
            f"Power {state} was asked for by hand; read back as {seen.power}.",
        )
    return seen


def read_power(server: Server) -> PowerState:
    """Read the power at the BMC now and keep it."""
    seen = driver_of(server.bmc).power()
    note_power(server, seen)
    return seen


def set_maintenance(
    server: Server, on: bool, actor: str, reason: str = "", until: datetime | None = None
) -> None:
    """Take the server out of selection, or back; what it does now goes on."""
    if on and not reason:
        raise Invalid({"reason": ["Say why, so that the next person knows."]})
    with transaction.atomic():
        Server.objects.filter(pk=server.pk).update(
            maintenance=on,
            maintenance_reason=reason if on else "",
            maintenance_until=until if on else None,
            rev=F("rev") + 1,
        )
        server.refresh_from_db()
        history.record(
            server,
            "maintenance",
            actor,
            f"{server} is in maintenance: {reason}"
            if on
            else f"{server} is back from maintenance.",
        )


def set_quarantine(server: Server, on: bool, actor: str, reason: str = "") -> None:
    """Set the flag that only a person lifts."""
    if on and not reason:
        raise Invalid({"reason": ["Say why, so that the next person knows."]})
    with transaction.atomic():
        Server.objects.filter(pk=server.pk).update(
            quarantined=on, quarantine_reason=reason if on else "", rev=F("rev") + 1
        )
        server.refresh_from_db()
        history.record(
            server,
            "quarantine",
            actor,
            f"{server} was put in quarantine: {reason}"
            if on
            else f"{server} was let out of quarantine.",
        )


def declare_blank(server: Server, actor: str, typed_name: str) -> WipeRecord:
    """An admin vouches that the drives hold nobody's data;

    opens the clean gate for this tenancy only.
    """
    if typed_name != server.name:
        raise Invalid(
            {"name": [f"Type {server.name} to declare that its drives hold nobody's data."]}
        )
    if server.state not in (Server.State.ENROLLED,):
        raise NotAllowed(
            f"{server} is {server.get_state_display().lower()}; only an enrolled "
            "server is declared."
        )
    if server.tenancy != 1:
        raise NotAllowed(f"{server} had tenants; it leaves through a wipe, not by a declaration.")
    with transaction.atomic():
        drives = [
            {"serial": d.serial, "model": d.model, "ok": True, "method": "declared"}
            for d in server.drives.all()
        ]
        wiped = WipeRecord.objects.create(
            server=server,
            tenancy=server.tenancy,
            kind=WipeRecord.Kind.DECLARED,
            passed=True,
            drives=drives,
            drive_serials=sorted(d["serial"] for d in drives),
            actor=actor,
        )
        SERVER.move(
            server,
            "offer",
            actor,
            f"{server} was declared blank by {actor} and is on offer.",
            clean_tenancy=F("tenancy"),
            code="",
        )
    return wiped


def retire(server: Server, actor: str, typed_name: str) -> None:
    """Take the server out for good; its name, BMC and ports become free."""
    if typed_name != server.name:
        raise Invalid({"name": [f"Type {server.name} to retire it."]})
    with transaction.atomic():
        SERVER.move(server, "retire", actor)
        # The machine may be registered anew: its BMC and its ports with their cables are let go,
        # credentials are forgotten. History and wipe records stay.
        forget_bmc(server)
        server.interfaces.all().delete()
