"""How a tenant's API is reached:

the control plane's driver, the cluster's spec, and its kubeconfig from the vault.
"""

from __future__ import annotations

from typing import Any

import yaml
from django.db.models import F

from gpucloud import history, vault
from gpucloud.drivers import DriverError, driver_class, load
from gpucloud.problems import Problem
from inventory.services.bmcs import connection_values
from tenants.drivers import Access, ClusterSpec, ControlPlaneDriver
from tenants.models import ControlPlane, TenantCluster
from tenants.templates import render_values

# From here on the tenant's API answers.
OPEN_STATES = ("connected", "ready", "changing")


def control_plane_driver(row: ControlPlane) -> ControlPlaneDriver:
    kind = driver_class("control_plane", row.driver)
    names = set(kind.Config.__dataclass_fields__)
    offered = connection_values(row.connection)
    driver: ControlPlaneDriver = load(
        "control_plane",
        row.driver,
        row.config,
        {k: v for k, v in offered.items() if k in names and v},
    )
    return driver


def driver_of(cluster: TenantCluster) -> ControlPlaneDriver:
    return control_plane_driver(cluster.template.control_plane)


def segment_facts(cluster: TenantCluster) -> dict[str, Any]:
    segment = cluster.segment
    if segment is None:
        return {}
    prefix = segment.cidr.rpartition("/")[2]
    return {
        "name": segment.name,
        "vlan": segment.vlan,
        "cidr": segment.cidr,
        "gateway": segment.gateway,
        "gateway_cidr": f"{segment.gateway}/{prefix}",
        "host_bridge": segment.host_bridge,
    }


def cluster_spec(cluster: TenantCluster) -> ClusterSpec:
    """The cluster as its driver is to make it, rendered from the template's own version."""
    return ClusterSpec(
        uid=str(cluster.uid),
        name=cluster.name,
        tenant=cluster.tenant.name,
        namespace=cluster.tenant.namespace,
        chart_version=cluster.template.chart_version,
        values=render_values(cluster, segment_facts(cluster)),
        segment=segment_facts(cluster),
        node_endpoint=cluster.node_endpoint,
        owner=cluster.asked_by,
    )


def access_of(cluster: TenantCluster) -> Access:
    """The stored access, read from the control plane and kept when it is not there yet."""
    kubeconfig = vault.get("cluster", cluster.uid, "kubeconfig")
    if kubeconfig:
        return Access(kubeconfig, cluster.client_endpoint, cluster.node_endpoint, cluster.ca_hash)
    if cluster.state == TenantCluster.State.GONE:
        raise DriverError(f"{cluster} is gone.", code="TENANT_API_UNREACHABLE", permanent=True)
    return keep_access(cluster)


def keep_access(cluster: TenantCluster) -> Access:
    """Read the access from the control plane and keep it, encrypted."""
    found = driver_of(cluster).access(cluster_spec(cluster))
    vault.put("cluster", cluster.uid, "kubeconfig", found.kubeconfig)
    TenantCluster.objects.filter(pk=cluster.pk).update(
        client_endpoint=found.client_endpoint, ca_hash=found.ca_hash, rev=F("rev") + 1
    )
    cluster.client_endpoint, cluster.ca_hash = found.client_endpoint, found.ca_hash
    return found


def client_kubeconfig(cluster: TenantCluster, actor: str) -> dict[str, Any]:
    """The cluster's kubeconfig for people, at its client endpoint; who took it is history.

    A secret: for the answer only, never stored or logged.
    """
    # One that failed after it was connected may still be looked into.
    known = vault.get("cluster", cluster.uid, "kubeconfig") is not None
    if cluster.state not in OPEN_STATES and not (known and cluster.state == "failed"):
        raise Problem(
            f"The control plane of {cluster} is {cluster.get_state_display().lower()}.",
            "CLUSTER_NOT_READY",
        )
    access = access_of(cluster)
    document: dict[str, Any] = yaml.safe_load(access.kubeconfig)
    endpoint = access.client_endpoint
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    for one in document.get("clusters", []):
        if endpoint:
            one["cluster"]["server"] = endpoint
    history.record(cluster, "kubeconfig", actor, f"{actor} took the kubeconfig of {cluster}.")
    return document
