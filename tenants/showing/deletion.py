"""What a deletion releases, removes and keeps, as the question before it lists."""

from __future__ import annotations

from typing import Any

from tenants.models import TenantCluster


def items(cluster: TenantCluster) -> list[dict[str, Any]]:
    """Things with name, note and whether they stay; `cluster` is of `showing.clusters`."""
    found: list[dict[str, Any]] = []
    for node in cluster.nodes:  # type: ignore[attr-defined]
        name = node.node_name or str(node.server or node)
        note = f"claim {node}, {node.node_type}: drained, powered off, returned, wiped"
        if node.server is None:
            note = f"claim {node} leaves the queue of {node.node_type}"
        found.append({"name": name, "note": note})
    found.append({"name": "Control plane", "note": "with every object that is stored in it"})
    segment = cluster.segment
    if segment is not None:
        own = segment.made_for == cluster.uid
        stays = f"stays with tenant {cluster.tenant}; nobody is left in it"
        note = "was made for this cluster and goes with it" if own else stays
        found.append({"name": f"Segment {segment}", "note": note, "kept": not own})
    return found
