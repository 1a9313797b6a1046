"""History: one Event per change, inserted in the change's transaction, and the live pages told
after commit.
"""

from __future__ import annotations

from typing import Any

from gpucloud.live.publish import publish
from gpucloud.models import Event
from gpucloud.reasons import reason

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


def words(event: Event, staff: bool) -> str:
    """What happened, for this reader.

    With a reason code the sentence is a driver's, which names what lies under the object (ports,
    BMCs, other servers): tenants get the catalogue's instead.
    """
    return reason(event.code).sentence if event.code and not staff else event.message


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
