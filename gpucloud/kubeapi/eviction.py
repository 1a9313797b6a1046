"""Evicting a pod: what draining a node asks for instead of a plain delete."""

from __future__ import annotations

from gpucloud.kubeapi.cluster import Cluster, Writer
from gpucloud.kubeapi.deletion import options
from gpucloud.kubeapi.errors import Obj


def evict(cluster: Cluster, namespace: str, name: str, body: Obj, writer: Writer) -> Obj:
    """No disruption budgets are served here, so nothing stands in its way."""
    pods = cluster.registry.find("pods")
    cluster.delete(pods, namespace, name, writer, options(body.get("deleteOptions") or {}))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
