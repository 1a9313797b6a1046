"""What a control plane does by itself: silent nodes become NotReady, old tokens and Events go."""

from __future__ import annotations

import asyncio
import copy
import time
from datetime import UTC, datetime

from gpucloud.kubeapi import deletion
from gpucloud.kubeapi.cluster import Cluster, Patch, Writer, now
from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.patches import MERGE
from gpucloud.lab.kube.access import BOOTSTRAP_TYPE, expired
from gpucloud.lab.kube.clusters import Running
from gpucloud.lab.kube.context import Context

GRACE = 40.0  # seconds of wall time without a word from the kubelet
EVENTS_LAST = 3600.0  # as a real API keeps them
UNREACHABLE = "node.kubernetes.io/unreachable"
ITSELF = Writer("system:kube-controller-manager", "kube-controller-manager")


async def run(context: Context) -> None:
    while True:
        for running in context.clusters:
            look(running)
        await asyncio.sleep(1)


def look(running: Running) -> None:
    """One round over garbage, nodes, tokens and Events of one cluster."""
    cluster = running.cluster
    deletion.sweep(cluster, ITSELF)
    for node in cluster.store.list("nodes"):
        name = node["metadata"]["name"]
        # After a restart every kubelet gets the whole grace anew, as with a new leader.
        heard = running.access.heard.setdefault(name, time.monotonic())
        silent = time.monotonic() - heard > GRACE
        if silent and _ready(node) not in ("", "Unknown"):
            _lose(cluster, node)
        _taint(cluster, node, silent)
    secrets = cluster.registry.find("secrets")
    for secret in cluster.store.list("secrets", "kube-system"):
        if secret.get("type") == BOOTSTRAP_TYPE and expired(secret):
            cluster.delete(secrets, "kube-system", secret["metadata"]["name"], ITSELF)
    events = cluster.registry.find("events")
    for event in cluster.store.list("events"):
        if _age(event) > EVENTS_LAST:
            meta = event["metadata"]
            cluster.delete(events, meta["namespace"], meta["name"], ITSELF)


def _age(event: Obj) -> float:
    """Seconds since an Event last happened."""
    said = event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(str(said))).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _ready(node: Obj) -> str:
    for condition in (node.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Ready":
            return str(condition.get("status"))
    return ""


def _lose(cluster: Cluster, node: Obj) -> None:
    conditions = copy.deepcopy(node["status"]["conditions"])
    for condition in conditions:
        condition |= {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now(),
        }
    _patch(cluster, node, {"status": {"conditions": conditions}}, "status")


def _taint(cluster: Cluster, node: Obj, silent: bool) -> None:
    taints = (node.get("spec") or {}).get("taints") or []
    others = [taint for taint in taints if taint.get("key") != UNREACHABLE]
    effects = ("NoSchedule", "NoExecute")
    wanted = [{"key": UNREACHABLE, "effect": effect} for effect in effects] if silent else []
    if len(taints) - len(others) != len(wanted):
        _patch(cluster, node, {"spec": {"taints": others + wanted}})


def _patch(cluster: Cluster, node: Obj, body: Obj, subresource: str = "") -> None:
    resource = cluster.registry.find("nodes")
    name = node["metadata"]["name"]
    cluster.patch(resource, "", name, Patch(MERGE, body), ITSELF, subresource)
