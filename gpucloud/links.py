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


def find(user: User, uid: uuid.UUID) -> Any | None:
    """Return the object with this uid that the user may see, or None alike for foreign and absent.
    """
    for label in LINKED:
        rows = policy.visible(user, apps.get_model(label)._default_manager.all())
        if (found := rows.filter(uid=uid).first()) is not None:
            return found
    return None
