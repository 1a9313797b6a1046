"""A server's BMC: its settings and credentials, the driver built from them, and the test of a
connection.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.db.models import F

from gpucloud import driver_settings, history, vault
from gpucloud.drivers import DriverError, driver_class, load
from gpucloud.problems import Invalid
from inventory.drivers import BmcDriver
from inventory.drivers.address import Address
from inventory.models import Bmc, KubernetesConnection, Server


def connection_values(connection: KubernetesConnection | None) -> dict[str, Any]:
    """Settings that a driver takes from a Kubernetes connection:

    namespace, and kubeconfig as a secret.
    """
    if connection is None:
        return {}
    return {
        "kubeconfig": vault.get("connection", connection.uid, "kubeconfig", ""),
        "namespace": connection.namespace,
    }


def driver_of(bmc: Bmc) -> BmcDriver:
    """Build the driver of a server's BMC;

    DriverError DRIVER_CONFIG when its settings are not usable.
    """
    config = dict(bmc.config)
    secrets = vault.get("bmc", bmc.uid, "credentials", {}) or {}
    kind = driver_class("bmc", bmc.driver)
    names = {f.name for f in kind.Config.__dataclass_fields__.values()}
    offered: dict[str, Any] = {
        "address": bmc.address,
        "certificate": bmc.certificate,
        "host": bmc.server.engine_id.rpartition("/")[2],
        **connection_values(bmc.server.connection),
        **secrets,
    }
    driver: BmcDriver = load(
        "bmc", bmc.driver, config, {k: v for k, v in offered.items() if k in names and v}
    )
    return driver


def test_connection(driver: str, values: dict[str, Any]) -> list[str]:
    """Try settings that are not saved yet;

    return what is wrong in sentences, nothing when usable.
    """
    try:
        tried: BmcDriver = load(
            "bmc", driver, {k: v for k, v in values.items() if v not in ("", None)}, {}
        )
        return tried.check()
    except DriverError as error:
        return [error.message]


def test_settings(server: Server, driver: str, values: dict[str, Any]) -> list[str]:
    """Like `test_connection`, with the kept credentials where the login was left blank."""
    bmc = getattr(server, "bmc", None)
    login = {} if bmc is None else vault.get("bmc", bmc.uid, "credentials", {}) or {}
    kept = {} if bmc is None or bmc.driver != driver else bmc.config
    if not values.get("username") and not values.get("password"):
        # Kept credentials go to the kept address only: a typed one could be anybody's.
        if bmc is not None and values.get("address", "") != bmc.address:
            return ["Type user name and password too: the kept ones are for the kept address only."]
        values = {**values, **{key: login[key] for key in values if key in login}}
    return test_connection(driver, {**kept, **values})


def set_bmc(
    server: Server,
    actor: str,
    driver: str,
    address: str = "",
    credentials: dict[str, str] | None = None,
    config: dict[str, Any] | None = None,
) -> Bmc:
    """Give the server its BMC or change it; credentials are only ever set, never read back."""
    driver_settings.require_kind("bmc", driver, "bmc.driver")
    if driver == "redfish" and not address:
        raise Invalid(
            {"bmc.address": ["Give the address of the BMC, for example https://10.0.0.5."]}
        )
    if "@" in address:
        raise Invalid(
            {"bmc.address": ["Give user name and password as such: the address is shown."]}
        )
    config, secret = driver_settings.split("bmc", driver, config or {}, at="bmc.config")
    credentials = {**(credentials or {}), **secret}
    if address:
        _refuse_taken(server, address)
    with transaction.atomic():
        bmc, made = Bmc.objects.get_or_create(server=server, defaults={"driver": driver})
        Bmc.objects.filter(pk=bmc.pk).update(
            driver=driver, address=address, config=config, rev=F("rev") + 1, problem=""
        )
        bmc.refresh_from_db()
        if credentials:
            vault.put("bmc", bmc.uid, "credentials", credentials)
        mark = hashlib.sha256(address.encode()).hexdigest()[:8]
        history.record(
            server,
            "bmc set",
            actor,
            f"BMC of {server}: {driver}, {address or 'no direct address'}.",
            data={"driver": driver, "address_mark": mark, "credentials_changed": bool(credentials)},
        )
    return bmc


def _refuse_taken(server: Server, address: str) -> None:
    """Invalid unless this is an address, and no other server's however that one was written."""
    try:
        place = Address.parse(address)
    except ValueError as error:
        text = "This is no address of a BMC. Write it as https://host or https://[2001:db8::10]."
        raise Invalid({"bmc.address": [text]}) from error
    others = Bmc.objects.exclude(address="").exclude(server=server).select_related("server")
    for other in others:
        with suppress(ValueError):
            if Address.parse(other.address) == place:
                raise Invalid({"bmc.address": [f"This is the BMC of {other.server}."]})


def forget_bmc(server: Server) -> None:
    """Forget how the server's power was switched, and the credentials for it."""
    bmc = Bmc.objects.filter(server=server).first()
    if bmc is not None:
        vault.drop("bmc", bmc.uid)
        bmc.delete()
    # The row that the caller holds still remembers it.
    server._state.fields_cache.pop("bmc", None)


def pin(bmc: Bmc, certificate: str, actor: str) -> None:
    """Pin the certificate seen at first use;

    another one later is an alarm, never accepted by itself.
    """
    if bmc.certificate or not certificate:
        return
    with transaction.atomic():
        if Bmc.objects.filter(pk=bmc.pk, certificate="").update(
            certificate=certificate, rev=F("rev") + 1
        ):
            history.record(
                bmc.server,
                "certificate pinned",
                actor,
                f"The certificate of {bmc.server}'s BMC is pinned: SHA-256 {certificate[:16]}….",
            )
    bmc.refresh_from_db()


def setting_names(driver: str) -> set[str]:
    """Names of the settings that this kind of BMC driver knows."""
    return set(driver_class("bmc", driver).Config.__dataclass_fields__)


def kept_settings(server: Server) -> dict[str, Any]:
    """What stays when somebody only changes the credentials: address and settings."""
    return {"address": server.bmc.address, "config": server.bmc.config}
