"""Watching tenants' clusters: nodes wake their claims' operations, instances their clusters."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db.models import Q

from gpucloud.engine.offload import in_database
from gpucloud.engine.steps import look_now
from gpucloud.vaultcache import VaultCache
from inventory.watching.client import Api, Obj
from inventory.watching.runner import Subject
from tenants.models import TenantCluster

log = logging.getLogger(__name__)
NODES = "/api/v1/nodes"
INSTANCES = "/apis/management.loft.sh/v1/namespaces/{}/virtualclusterinstances"
CLUSTER_LABEL = "gpucloud.dev/cluster-uid"
PLATFORM = "vcluster_platform"

_cluster_configs = VaultCache("cluster", "kubeconfig")
_connection_configs = VaultCache("connection", "kubeconfig")


def node_subjects() -> Iterable[Subject]:
    """The nodes of every live cluster whose kubeconfig we hold."""
    kubeconfigs = _cluster_configs.all()
    rows = TenantCluster.objects.live().select_related("tenant")
    for cluster in rows.filter(uid__in=kubeconfigs):
        yield Subject(
            f"nodes of {cluster.tenant}/{cluster.name} {cluster.uid}",
            NODES,
            str(kubeconfigs[cluster.uid]),
            partial(NodeHandler, cluster.pk),
        )


def instance_subjects() -> Iterable[Subject]:
    """The VirtualClusterInstances of every project namespace with a live cluster."""
    kubeconfigs = _connection_configs.all()
    rows = TenantCluster.objects.live().filter(
        template__control_plane__driver=PLATFORM, template__control_plane__connection__isnull=False
    )
    rows = rows.select_related("tenant", "template__control_plane__connection")
    places = {(row.template.control_plane.connection, row.tenant.namespace) for row in rows}
    for connection, namespace in places:
        if connection is not None and (kubeconfig := kubeconfigs.get(connection.uid)):
            yield Subject(
                f"clusters of {connection.name}/{namespace}",
                INSTANCES.format(namespace),
                str(kubeconfig),
                partial(InstanceHandler, namespace),
            )


class _Changes:
    """Tells which objects differ in what matters from what was seen of them last."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def of(self, obj: Obj, matters: Any) -> bool:
        name = str(obj["metadata"]["name"])
        digest = hashlib.sha256(json.dumps(matters, sort_keys=True).encode()).hexdigest()
        before, self._digests[name] = self._digests.get(name), digest
        return digest != before

    def forget(self, obj: Obj) -> None:
        self._digests.pop(str(obj["metadata"]["name"]), None)

    def vanished(self, objects: list[Obj]) -> bool:
        """Whether an object seen before is not in the list; what is gone is forgotten."""
        names = {str(obj["metadata"]["name"]) for obj in objects}
        lost = self._digests.keys() - names
        for name in lost:
            del self._digests[name]
        return bool(lost)


class NodeHandler:
    """One cluster's nodes: a kubelet's status every ten seconds is no news, readiness is."""

    def __init__(self, cluster: int, api: Api) -> None:
        self._cluster = cluster
        self._changes = _Changes()

    async def listed(self, objects: list[Obj]) -> None:
        news = [obj for obj in objects if self._changes.of(obj, _node(obj))]
        if self._changes.vanished(objects) or news:
            await in_database(wake_claims, self._cluster)

    async def seen(self, kind: str, obj: Obj) -> None:
        if kind == "DELETED":
            self._changes.forget(obj)
        elif not self._changes.of(obj, _node(obj)):
            return
        info = (obj.get("status") or {}).get("nodeInfo") or {}
        uuid = str(info.get("systemUUID") or "")
        await in_database(wake_claims, self._cluster, str(obj["metadata"]["name"]), uuid)

    async def alive(self) -> None:
        return

    async def trouble(self, problem: str) -> None:
        log.info("nodes of cluster %s: %s", self._cluster, problem)


class InstanceHandler:
    """One project namespace's VirtualClusterInstances."""

    def __init__(self, namespace: str, api: Api) -> None:
        self._namespace = namespace
        self._changes = _Changes()

    async def listed(self, objects: list[Obj]) -> None:
        if self._changes.vanished(objects):
            await in_database(wake_clusters, self._namespace)
        for obj in objects:
            await self.seen("ADDED", obj)

    async def seen(self, kind: str, obj: Obj) -> None:
        meta = obj["metadata"]
        if kind == "DELETED":
            self._changes.forget(obj)
        elif not self._changes.of(obj, [obj.get("status"), meta.get("deletionTimestamp")]):
            return
        uid = str((meta.get("labels") or {}).get(CLUSTER_LABEL) or "")
        await in_database(wake_clusters, self._namespace, str(meta["name"]), uid)

    async def alive(self) -> None:
        return

    async def trouble(self, problem: str) -> None:
        log.info("clusters in %s: %s", self._namespace, problem)


def wake_claims(cluster: int, node: str = "", system_uuid: str = "") -> None:
    """Have the engine look at the claims of this node, or of the cluster when it is nobody's."""
    row = TenantCluster.objects.filter(pk=cluster).first()
    if row is None:
        return
    claims = row.claims.exclude(state="gone")
    same = Q(node_name=node) & ~Q(node_name="")
    if system_uuid:
        same |= Q(server__system_uuid__iexact=system_uuid)
    if node and claims.filter(same).exists():
        claims = claims.filter(same)
    active = claims.filter(operations__state="active")
    for uid in active.values_list("operations__uid", flat=True).distinct():
        look_now("operation", uid)


def wake_clusters(namespace: str, name: str = "", uid: str = "") -> None:
    """Have the engine look at the cluster of an instance, or at all of a project namespace."""
    for cluster in TenantCluster.objects.live().select_related("tenant"):
        if cluster.tenant.namespace != namespace:
            continue
        if not name or str(cluster.uid) == uid or (not uid and cluster.name == name):
            look_now("cluster", cluster.uid)


def _node(obj: Obj) -> Any:
    """What the engine asks of a node: who it is, whether it is ready, labels, taints, GPUs."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    ready = [c.get("status") for c in status.get("conditions") or [] if c.get("type") == "Ready"]
    return [
        meta.get("uid"),
        meta.get("labels"),
        meta.get("deletionTimestamp"),
        spec.get("taints"),
        spec.get("unschedulable"),
        ready,
        status.get("nodeInfo"),
        status.get("allocatable"),
    ]
