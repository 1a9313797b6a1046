"""History: one Event per change, inserted in the change's transaction, and the live pages told
after commit.
"""

from __future__ import annotations

from typing import Any

from gpucloud.live.publish import publish
from gpucloud.models import Event

KINDS = {
    "Server": "server",
    "NodeClaim": "claim",
    "Operation": "operation",
    "TenantCluster": "cluster",
    "NodePool": "pool",
    "Segment": "segment",
    "Attachment": "attachment",
    "Tenant": "tenant",
    "NodeProvider": "provider",
    "NodeType": "node_type",
    "OSImage": "image",
    "Fabric": "fabric",
    "ClusterTemplate": "template",
    "WipeRecord": "wipe",
    "Bmc": "bmc",
    "ApiToken": "token",
    "User": "user",
}


def kind_of(row: Any) -> str:
    return KINDS.get(type(row).__name__, type(row).__name__.lower())


def record(
    row: Any,
    verb: str,
    actor: str,
    message: str,
    *,
    code: str = "",
    data: dict[str, Any] | None = None,
    tenant: Any = None,
) -> Event:
    """Insert the history row of a change;

    call it inside the change's transaction. Never put a secret in `data`.
    """
    event = Event.objects.create(
        actor=actor,
        kind=kind_of(row),
        object_uid=row.uid,
        object_name=str(row),
        tenant=tenant or getattr(row, "tenant", None),
        verb=verb,
        message=message,
        code=code,
        data=data or {},
    )
    publish(row)
    return event
