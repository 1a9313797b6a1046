"""Find anything: one word against the names, serials and addresses of everything a person
may see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.apps import apps

from gpucloud import policy, words
from gpucloud.models import User

MOST: Final = 10


@dataclass(frozen=True)
class Kind:
    """One kind of thing: its model, what several are called, its icon, and where a word may hit."""

    model: str
    plural: str
    icon: str
    paths: tuple[str, ...] = ("name",)


KINDS: Final = (
    Kind(
        "inventory.Server",
        "Servers",
        "server",
        ("name", "serial", "system_uuid", "interfaces__mac"),
    ),
    Kind("provisioning.NodeClaim", "Claims", "claim", ("name", "tenant_address", "node_name")),
    Kind("tenants.TenantCluster", "Clusters", "cluster", ("name", "client_endpoint")),
    Kind("network.Segment", "Segments", "network", ("name", "cidr")),
    Kind("tenants.Tenant", "Tenants", "user", ("name", "display_name")),
    Kind("provisioning.NodeType", "Node types", "gpu", ("full_name", "display_name")),
    Kind("provisioning.NodeProvider", "Providers", "provider"),
    Kind("provisioning.OSImage", "Images", "image", ("name", "display_name")),
    Kind("tenants.ClusterTemplate", "Templates", "template", ("name", "title")),
)


@dataclass(frozen=True)
class Found:
    kind: Kind
    rows: list[Any]
    more: bool


def find(user: User, text: str) -> list[Found]:
    """What holds every word of `text`, by kind; nothing for an empty text."""
    asked = text.split()[: words.MOST]
    if not asked:
        return []
    found = []
    for kind in KINDS:
        rows = list(_rows(user, kind, asked)[: MOST + 1])
        if rows:
            found.append(Found(kind, rows[:MOST], len(rows) > MOST))
    return found


def _rows(user: User, kind: Kind, asked: list[str]) -> Any:
    model = apps.get_model(kind.model)
    rows = policy.visible(user, model._default_manager.all())
    return rows.filter(words.hits(asked, kind.paths)).order_by(kind.paths[0]).distinct()
