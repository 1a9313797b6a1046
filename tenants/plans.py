"""The plan of a tenant cluster:

network first, the control plane's phases, and the same backwards for deletion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from gpucloud import vault
from gpucloud.drivers import DriverError, Progress
from gpucloud.live.publish import publish
from gpucloud.models import Step
from inventory.models import SharedEndpoint
from network.models import Fabric
from network.services import segments
from tenants.lifecycle import CLUSTER, PHASES
from tenants.models import TenantCluster
from tenants.services.access import cluster_spec, driver_of, keep_access
from tenants.services.clusters import DELETION

API_PORT = 8443


class ClusterPlan:
    kind = "cluster"

    def load(self, uid: UUID) -> TenantCluster | None:
        return (
            TenantCluster.objects.select_related(
                "tenant", "template__control_plane__connection", "segment__fabric"
            )
            .filter(uid=uid)
            .exclude(state__in=("gone", "failed"))
            .first()
        )

    def leases(self, owner: TenantCluster, step: Step) -> list[str]:
        wanted = [f"cluster:{owner.uid}"]
        if step.name in ("network", "remove network") and owner.segment is not None:
            wanted.append(f"fabric:{owner.segment.fabric.uid}")
        return wanted

    def lock(self, owner: TenantCluster) -> None:
        TenantCluster.objects.select_for_update(no_key=True).filter(pk=owner.pk).first()

    def run(self, owner: TenantCluster, step: Step) -> Progress:
        if step.name == "network":
            return _network(owner, step)
        if step.name in PHASES:
            return _phase(owner, step)
        if step.name == "release nodes":
            return _release_nodes(owner)
        if step.name == "remove control plane":
            return driver_of(owner).remove(cluster_spec(owner))
        return _remove_network(owner, step)

    def on_started(self, owner: TenantCluster, step: Step) -> None:
        if step.name in PHASES and step.name != "ready" and owner.state != step.name:
            CLUSTER.move(owner, f"enter {step.name}", "engine")
        self.on_looked(owner, step)

    def on_looked(self, owner: TenantCluster, step: Step) -> None:
        TenantCluster.objects.filter(pk=owner.pk).update(rev=F("rev") + 1, code=step.code)
        owner.refresh_from_db()
        publish(owner)

    def on_done(self, owner: TenantCluster, step: Step, progress: Progress) -> None:
        conditions = progress.evidence.get("conditions")
        if conditions:
            TenantCluster.objects.filter(pk=owner.pk).update(conditions=conditions)
        if step.name == "ready":
            CLUSTER.move(
                owner,
                "enter ready",
                "engine",
                f"The control plane of {owner} is ready.",
                ready_at=Now(),
            )
        self.on_looked(owner, step)

    def on_finished(self, owner: TenantCluster) -> None:
        owner.refresh_from_db()
        if owner.state == TenantCluster.State.DELETING:
            CLUSTER.move(owner, "gone", "engine", f"{owner} is gone.", segment=None)
            vault.drop("cluster", owner.uid)
            segments.free_addresses(owner.uid)

    def on_failed(self, owner: TenantCluster, step: Step, error: DriverError) -> None:
        CLUSTER.move(
            owner,
            "fail",
            "engine",
            f"{step.name.capitalize()} stopped: {error.message}",
            code=error.code,
            problem=error.message,
        )

    def halt(self, owner: TenantCluster, step: Step) -> None:
        """A control plane that comes up late does no harm; deletion takes it away."""

    def on_alarm(self, owner: TenantCluster, step: Step) -> None:
        from gpucloud import history

        history.record(
            owner,
            "alarm",
            "engine",
            f"{owner} waits longer than usual in {step.name}.",
            code=step.code,
        )


def _network(cluster: TenantCluster, step: Step) -> Progress:
    """The segment on the fabric, the shared endpoints' trunk, the attachment on the host side;

    each read back.
    """
    segment = cluster.segment or _make_segment(cluster)
    on_fabric = segments.ensure(segment, "engine")
    if not on_fabric.done:
        return on_fabric
    for endpoint in SharedEndpoint.objects.filter(
        interfaces__link__fabric=segment.fabric
    ).distinct():
        carried = segments.trunk(segment, endpoint, "engine", _ref_of(step, endpoint))
        if not carried.done:
            return replace(carried, ref=f"{endpoint.name}:{carried.ref}")
    if not cluster.node_endpoint:
        address = segments.take_address(segment, "endpoint", cluster.uid)
        cluster.node_endpoint = f"{address}:{API_PORT}"
        TenantCluster.objects.filter(pk=cluster.pk).update(node_endpoint=cluster.node_endpoint)
    host = driver_of(cluster).ensure_network(cluster_spec(cluster))
    if not host.done:
        return host
    return Progress(
        True,
        f"Segment {segment} (VLAN {segment.vlan}) is on {segment.fabric}, the shared "
        "endpoints carry it; "
        f"node endpoint {cluster.node_endpoint}.",
        host.ref,
        evidence={
            "segment": segment.name,
            "vlan": segment.vlan,
            "node_endpoint": cluster.node_endpoint,
        },
    )


def _ref_of(step: Step, endpoint: SharedEndpoint) -> str:
    """The fabric's id of the change under way for this endpoint."""
    name, _, ref = step.ref.partition(":")
    return ref if name == endpoint.name else ""


def _make_segment(cluster: TenantCluster) -> Any:
    fabric = Fabric.objects.order_by("pk").first()
    if fabric is None:
        raise DriverError(
            "There is no fabric to make a segment on.", code="NO_SEGMENT", permanent=True
        )
    made = fabric.segments.filter(made_for=cluster.uid).exclude(state="gone").first()
    segment = made or segments.create(
        "engine",
        fabric,
        f"{cluster.tenant.name}-{cluster.name}"[:63],
        tenant=cluster.tenant,
        made_for=cluster.uid,
        host_bridge="br0",
    )
    TenantCluster.objects.filter(pk=cluster.pk, segment=None).update(segment=segment)
    cluster.refresh_from_db()
    return segment


def _phase(cluster: TenantCluster, step: Step) -> Progress:
    """One look at the control plane; the step is done when the driver's phase is at or past it."""
    driver = driver_of(cluster)
    seen = driver.ensure(cluster_spec(cluster))
    phases = list(PHASES[1:])
    reached = str(seen.evidence.get("phase", ""))
    at = phases.index(reached) if reached in phases else -1
    if conditions := seen.evidence.get("conditions"):
        TenantCluster.objects.filter(pk=cluster.pk).update(conditions=conditions)
    if not (seen.done or at >= phases.index(step.name)):
        return Progress(
            False, seen.detail, seen.ref, min(seen.wait, 2.0), seen.percent, seen.evidence
        )
    if step.name == "available":
        keep_access(cluster)
    return Progress(True, seen.detail, seen.ref, evidence=seen.evidence)


def _release_nodes(cluster: TenantCluster) -> Progress:
    """Every claim of the cluster is asked to go; done when all are gone."""
    from django.utils.module_loading import import_string

    release = import_string("provisioning.services.claims.release")
    live = list(cluster.claims.exclude(state="gone"))
    for claim in live:
        if claim.state != "releasing":
            release(claim, "engine")
    left = cluster.claims.exclude(state="gone").count()
    if left:
        return Progress(
            False, f"{left} of {cluster.claims.count()} nodes are still on their way home.", wait=5
        )
    return Progress(
        True,
        "All nodes have gone home." if live or cluster.claims.exists() else "There were no nodes.",
    )


def _remove_network(cluster: TenantCluster, step: Step) -> Progress:
    """Trunk off, segment off the fabric when it was made for this cluster;

    network is undone last.
    """
    segment = cluster.segment
    if segment is None:
        return Progress(True, "There was no network to undo.")
    for endpoint in SharedEndpoint.objects.filter(
        interfaces__link__fabric=segment.fabric
    ).distinct():
        off = segments.trunk(segment, endpoint, "engine", _ref_of(step, endpoint), on=False)
        if not off.done:
            return replace(off, ref=f"{endpoint.name}:{off.ref}")
    if segment.made_for != cluster.uid:
        return Progress(
            True, f"Segment {segment} is {cluster.tenant}'s and stays; nobody is in it."
        )
    TenantCluster.objects.filter(pk=cluster.pk).update(node_endpoint="")
    return segments.remove(segment, "engine")


__all__ = ["DELETION", "ClusterPlan"]
