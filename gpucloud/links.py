"""Permanent links: find any object of ours by uid, as far as a person may see it."""

from __future__ import annotations

import uuid
from typing import Any

from django.apps import apps

from gpucloud import policy
from gpucloud.models import User

LINKED = (
    "inventory.Server",
    "provisioning.NodeClaim",
    "tenants.TenantCluster",
    "tenants.Tenant",
    "network.Segment",
    "provisioning.NodeProvider",
    "provisioning.NodeType",
    "provisioning.OSImage",
    "tenants.ClusterTemplate",
)
# Pages of rows that their address no longer leads to: a name lives on with the next of its kind.
# Each takes the request and the row.
GONE = {
    "retired": {"Server": "inventory.views.servers.show"},
    "gone": {
        "Segment": "network.views.show",
        "NodeClaim": "provisioning.views.claims.show",
        "TenantCluster": "tenants.views.clusters.show",
    },
}


def page_of(found: Any) -> str:
    """The dotted name of the view that shows this very row, or "" when its address leads to it."""
    return GONE.get(getattr(found, "state", ""), {}).get(type(found).__name__, "")


def find(user: User, uid: uuid.UUID) -> Any | None:
    """The object with this uid that the user may see, or None alike for foreign and absent."""
    for label in LINKED:
        rows = policy.visible(user, apps.get_model(label)._default_manager.all())
        if (found := rows.filter(uid=uid).first()) is not None:
            return found
    return None


def known(user: User, uids: set[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the uids under which this person finds a page."""
    found: set[uuid.UUID] = set()
    for label in LINKED:
        if left := uids - found:
            rows = policy.visible(user, apps.get_model(label)._default_manager.all())
            found.update(rows.filter(uid__in=left).values_list("uid", flat=True))
    return found
