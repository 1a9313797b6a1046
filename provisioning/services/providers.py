"""Node providers, types and images: drivers built from rows, stock counted, forms checked."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud import driver_settings, history, names, vault
from gpucloud.drivers import DriverError, driver_class, load
from gpucloud.problems import Invalid, Problem
from inventory.models import KubernetesConnection, Server
from inventory.services.bmcs import connection_values
from provisioning.drivers import ProviderDriver
from provisioning.models import NodeClaim, NodeProvider, NodeType


def driver_of(provider: NodeProvider) -> ProviderDriver:
    kind = driver_class("provider", provider.driver)
    names = set(kind.Config.__dataclass_fields__)
    offered = {
        **connection_values(provider.connection),
        **(vault.get("provider", provider.uid, "credentials", {}) or {}),
    }
    driver: ProviderDriver = load(
        "provider",
        provider.driver,
        provider.config,
        {k: v for k, v in offered.items() if k in names and v},
    )
    return driver


def create(
    actor: str,
    name: str,
    driver: str,
    *,
    config: dict[str, Any] | None = None,
    connection: KubernetesConnection | None = None,
    display_name: str = "",
    properties: dict[str, Any] | None = None,
) -> NodeProvider:
    """Make a provider; secret settings in `config` go to the vault and are never shown."""
    try:
        names.check(name)
        if len(name) > 40:
            raise Invalid({"name": ["Use 40 characters at most."]})
    except ValidationError as error:
        raise Invalid({"name": list(error.messages)}) from error
    plain, secret = driver_settings.clean(
        "provider", driver, config or {}, connection_values(connection)
    )
    try:
        with transaction.atomic():
            made = NodeProvider.objects.create(
                name=name,
                driver=driver,
                config=plain,
                connection=connection,
                display_name=display_name,
                properties=properties or {},
            )
            if secret:
                vault.put("provider", made.uid, "credentials", secret)
            history.record(made, "create", actor, f"Node provider {made} was made.")
    except IntegrityError as error:
        raise Invalid({"name": [f"There is a provider called {name} already."]}) from error
    return made


def update(provider: NodeProvider, actor: str, **fields: Any) -> NodeProvider:
    """Change a provider; secrets that `config` leaves out stay as they are."""
    if "connection" in fields and fields["connection"] != provider.connection:
        live = NodeClaim.objects.live().filter(node_type__provider=provider)
        if live.exists():
            raise Problem(f"Claims live on {provider}, so its connection stays.", "IN_USE")
    kept = vault.get("provider", provider.uid, "credentials", {}) or {}
    secret: dict[str, Any] = {}
    if "config" in fields or "connection" in fields:
        connection = fields.get("connection", provider.connection)
        fields["config"], secret = driver_settings.clean(
            "provider",
            provider.driver,
            fields.get("config", provider.config),
            {**connection_values(connection), **kept},
        )
    with transaction.atomic():
        NodeProvider.objects.filter(pk=provider.pk).update(**fields, rev=F("rev") + 1)
        if secret:
            vault.put("provider", provider.uid, "credentials", {**kept, **secret})
        provider.refresh_from_db()
        changed = ", ".join(sorted(fields))
        history.record(
            provider,
            "change",
            actor,
            f"Node provider {provider}: {changed} changed.",
            data={"secrets_changed": sorted(secret)},
        )
    return provider


def check(provider: NodeProvider) -> list[str]:
    """Test the provider's connection now and keep what was found."""
    try:
        problems = driver_of(provider).check()
    except DriverError as error:
        problems = [error.message]
    NodeProvider.objects.filter(pk=provider.pk).update(
        checked=Now(), problem=" ".join(problems), rev=F("rev") + 1
    )
    return problems


def matches(labels: dict[str, str], selector: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def servers_of(node_type: NodeType) -> list[Server]:
    """The provider's servers whose labels match the type's selector, retired ones left out."""
    return [s for s in of_provider(node_type.provider) if matches(s.labels, node_type.selector)]


def of_provider(provider: NodeProvider) -> list[Server]:
    rows = Server.objects.exclude(state=Server.State.RETIRED).select_related("rack")
    if provider.connection_id:
        return list(rows.filter(connection=provider.connection_id).exclude(engine_id=""))
    return list(rows.filter(connection=None, bmc__driver=provider.driver))


def matching(provider: NodeProvider, selector: dict[str, str]) -> list[Server]:
    """For the form's live count: servers that a type with this selector would have."""
    return [s for s in of_provider(provider) if matches(s.labels, selector)]


def capacity(node_type: NodeType) -> dict[str, int]:
    """{total, claimed, available, waiting, out}: counted from rows, never from counters."""
    servers = servers_of(node_type)
    usable = set(
        Server.objects.usable().filter(pk__in=[s.pk for s in servers]).values_list("pk", flat=True)
    )
    claimed = node_type.claims.live().filter(server__isnull=False).count()
    waiting = node_type.claims.filter(state="pending", server=None).count()
    return {
        "total": len(servers),
        "claimed": claimed,
        "available": len(usable),
        "waiting": waiting,
        "out": max(0, len(servers) - claimed - len(usable)),
    }


def save_type(actor: str, provider: NodeProvider, name: str, **fields: Any) -> NodeType:
    """Make a node type; Invalid names the field."""
    if not isinstance(fields.get("selector", {}), dict):
        raise Invalid({"selector": ['Give labels as an object, for example {"role": "gpu"}.']})
    try:
        with transaction.atomic():
            made = NodeType.objects.create(provider=provider, name=name, **fields)
            history.record(made, "create", actor, f"Node type {made} was made.")
    except IntegrityError as error:
        raise Invalid({"name": [f"{provider} has a type called {name} already."]}) from error
    return made
