"""Live fragments of tenants: clusters and pools, as open pages show them."""

from __future__ import annotations

import uuid
from typing import Any

from gpucloud.live import Fragment, ViewClass
from gpucloud.models import User
from tenants.models import TenantCluster
from tenants.showing import clusters

CLUSTER_PARTS = (
    "title",
    "lede",
    "trouble",
    "sequence",
    "nodes",
    "pools",
    "network",
    "conditions",
    "events",
    "follow",
)


def _cluster(user: User, uid: uuid.UUID) -> TenantCluster | None:
    return clusters.clusters(user).filter(uid=uid).first()


def _row(cluster: TenantCluster, view: ViewClass) -> dict[str, Any]:
    clusters.summarise([cluster])
    return {}


FRAGMENTS: list[Fragment] = [
    Fragment(
        "cluster",
        tuple(f"tenants/cluster/_{part}.html" for part in CLUSTER_PARTS),
        _cluster,
        clusters.context,
    ),
    Fragment("cluster", ("tenants/cluster/_row.html",), _cluster, _row, name="cluster-row"),
]
