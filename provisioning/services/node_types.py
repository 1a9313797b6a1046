"""Node types: make and change them, and count what all of them have at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, F, Q

from gpucloud import history
from gpucloud.models import name_validator
from gpucloud.problems import Invalid
from inventory.models import Interface, Server
from provisioning.models import NodeClaim, NodeProvider, NodeType
from provisioning.services.providers import matches, of_provider, save_type

SKU = {"gpu_model": str, "gpu_count": int}
WIPE_POLICIES = ("verified", "engine")


def create(actor: str, provider: NodeProvider, name: str, **fields: Any) -> NodeType:
    """Make a node type of the provider; its full name is `<provider>.<name>`."""
    errors = _problems(fields)
    try:
        name_validator(name)
        if len(name) > 40:
            errors["name"] = ["Use 40 characters at most."]
    except ValidationError as error:
        errors["name"] = list(error.messages)
    if errors:
        raise Invalid(errors)
    return save_type(actor, provider, name, **fields)


def update(node_type: NodeType, actor: str, **fields: Any) -> NodeType:
    """Change a node type. Claims that were made keep the server and the image they have."""
    if errors := _problems(fields):
        raise Invalid(errors)
    with transaction.atomic():
        NodeType.objects.filter(pk=node_type.pk).update(**fields, rev=F("rev") + 1)
        node_type.refresh_from_db()
        changed = ", ".join(sorted(fields))
        history.record(node_type, "change", actor, f"Node type {node_type}: {changed} changed.")
    return node_type


def _problems(fields: dict[str, Any]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    if unknown := set(fields.get("nic_plan", [])) - set(Interface.ROLES):
        errors["nic_plan"] = [
            f"Unknown NIC role {', '.join(sorted(unknown))}. Known: {', '.join(Interface.ROLES)}."
        ]
    for key, value in fields.get("sku", {}).items():
        if key not in SKU:
            errors[f"sku.{key}"] = [f"Unknown key. Known are: {', '.join(SKU)}."]
        elif not _fits(key, value):
            errors[f"sku.{key}"] = ["Give text." if key == "gpu_model" else "Give 0 to 64."]
    if fields.get("wipe_policy", "verified") not in WIPE_POLICIES:
        errors["wipe_policy"] = [f"Choose one of {', '.join(WIPE_POLICIES)}."]
    return errors


def _fits(key: str, value: Any) -> bool:
    if type(value) is not SKU[key]:
        return False
    return key != "gpu_count" or value in range(65)


def capacities(types: Iterable[NodeType]) -> dict[int, dict[str, int]]:
    """{total, claimed, available, waiting, out} of many types by primary key, in few queries."""
    types = list(types)
    owned: dict[int, list[Server]] = {}
    for one in types:
        if one.provider_id not in owned:
            owned[one.provider_id] = of_provider(one.provider)
    usable = set(Server.objects.usable().values_list("pk", flat=True))
    counts = {
        row["node_type"]: (row["claimed"], row["waiting"])
        for row in NodeClaim.objects.live()
        .filter(node_type__in=[one.pk for one in types])
        .order_by()
        .values("node_type")
        .annotate(
            claimed=Count("pk", filter=Q(server__isnull=False)),
            waiting=Count("pk", filter=Q(server__isnull=True, state="pending")),
        )
    }
    found = {}
    for one in types:
        servers = [s for s in owned[one.provider_id] if matches(s.labels, one.selector)]
        available = sum(1 for s in servers if s.pk in usable)
        claimed, waiting = counts.get(one.pk, (0, 0))
        found[one.pk] = {
            "total": len(servers),
            "claimed": claimed,
            "available": available,
            "waiting": waiting,
            "out": max(0, len(servers) - claimed - available),
        }
    return found
