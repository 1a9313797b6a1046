"""Clusters: create, change a pool, delete, retry; and settle those whose nodes have all gone."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F

from gpucloud import history, labels
from gpucloud.engine import steps
from gpucloud.models import Step, name_validator
from gpucloud.problems import Invalid, NotAllowed
from network.models import Segment
from tenants import templates
from tenants.lifecycle import CLUSTER, PHASES
from tenants.models import ClusterTemplate, NodePool, Tenant, TenantCluster

DELETION = ("release nodes", "remove control plane", "remove network")
POOL_LIMIT = 1000


def create_cluster(
    actor: str,
    tenant: Tenant,
    name: str,
    template: ClusterTemplate,
    parameters: dict[str, Any],
    pools: list[dict[str, Any]],
) -> TenantCluster:
    """Write the wish for a cluster with its pools and begin its plan.

    `pools` are {name, kind, node_type (a NodeType), quantity, labels, taints, image (an OSImage
    or None)}.
    """
    errors = _problems(name, pools)
    try:
        values = templates.clean(template, parameters)
        choose_segment(tenant, values)
    except Invalid as invalid:
        errors.update(invalid.fields)
        values = {}
    if errors:
        raise Invalid(errors)
    try:
        with transaction.atomic():
            Tenant.objects.filter(pk=tenant.pk).update(rev=F("rev") + 1)
            if TenantCluster.objects.live().filter(tenant=tenant, name=name).exists():
                raise Invalid({"name": [f"Tenant {tenant} has a cluster called {name} already."]})
            # Again, now that the tenant's row is ours: two clusters at once get two segments.
            segment = choose_segment(tenant, values)
            cluster = TenantCluster.objects.create(
                tenant=tenant,
                name=name,
                template=template,
                parameters=values,
                segment=segment,
                asked_by=actor,
            )
            for pool in pools:
                NodePool.objects.create(
                    cluster=cluster,
                    name=pool["name"],
                    kind=pool.get("kind", "static"),
                    node_type=pool["node_type"],
                    quantity=pool.get("quantity", 1),
                    labels=pool.get("labels", {}),
                    taints=pool.get("taints", []),
                    image=pool.get("image"),
                )
            run = steps.begin("cluster", cluster.uid, PHASES)
            TenantCluster.objects.filter(pk=cluster.pk).update(run=run)
            wanted = ", ".join(f"{p['name']} ×{p.get('quantity', 1)}" for p in pools) or "no pools"
            history.record(cluster, "create", actor, f"Cluster {name} was asked for: {wanted}.")
    except IntegrityError as error:
        raise Invalid(
            {"parameters.segment": ["Another cluster took this segment at the same moment."]}
        ) from error
    cluster.refresh_from_db()
    return cluster


def _problems(name: str, pools: list[dict[str, Any]]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    try:
        name_validator(name)
        if len(name) > 50:
            errors["name"] = ["Use 50 characters at most: claims add five of their own."]
    except ValidationError as error:
        errors["name"] = list(error.messages)
    seen: set[str] = set()
    for index, pool in enumerate(pools):
        at = f"pools.{index}"
        try:
            name_validator(pool["name"])
        except ValidationError as error:
            errors[f"{at}.name"] = list(error.messages)
        if pool["name"] in seen:
            errors[f"{at}.name"] = ["Two pools have this name."]
        seen.add(pool["name"])
        if not 0 <= int(pool.get("quantity", 1)) <= POOL_LIMIT:
            errors[f"{at}.quantity"] = [f"Give a number from 0 to {POOL_LIMIT}."]
        if wrong := labels.node_problems(pool.get("labels", {})):
            errors[f"{at}.labels"] = wrong
        if pool.get("kind", "static") != "static":
            errors[f"{at}.kind"] = ["Only static pools can be made now."]
        if not (pool.get("image") or pool["node_type"].image):
            errors[f"{at}.image"] = [f"{pool['node_type']} has no OS image of its own; name one."]
    return errors


def free_segments(tenant: Tenant) -> list[Segment]:
    """The tenant's segments that no live cluster uses."""
    used = TenantCluster.objects.live().exclude(segment=None).values("segment")
    return list(tenant.segments.exclude(state__in=("removing", "gone")).exclude(pk__in=used))


def choose_segment(tenant: Tenant, values: dict[str, Any]) -> Segment | None:
    """The segment named by the parameter, else the tenant's only free one, else None:

    a new one is made.
    """
    free = free_segments(tenant)
    if name := values.get("segment"):
        for segment in free:
            if segment.name == name:
                return segment
        if tenant.segments.exclude(state="gone").filter(name=name).exists():
            raise Invalid(
                {"parameters.segment": [f"{name} is used by another cluster of {tenant}."]}
            )
        names = ", ".join(s.name for s in free) or "none; leave it blank to have one made"
        raise Invalid(
            {
                "parameters.segment": [
                    f"Tenant {tenant} has no segment called {name}. Free are: {names}."
                ]
            }
        )
    return free[0] if len(free) == 1 else None


def resize_pool(pool: NodePool, quantity: int, actor: str) -> NodePool:
    """Write another quantity; the sweep brings claims in line."""
    if not 0 <= quantity <= POOL_LIMIT:
        raise Invalid({"quantity": [f"Give a number from 0 to {POOL_LIMIT}."]})
    cluster = pool.cluster
    if cluster.deleting:
        raise NotAllowed(f"{cluster} is being deleted.")
    with transaction.atomic():
        before = pool.quantity
        NodePool.objects.filter(pk=pool.pk).update(quantity=quantity, rev=F("rev") + 1)
        TenantCluster.objects.filter(pk=cluster.pk).update(rev=F("rev") + 1)
        pool.refresh_from_db()
        cluster.refresh_from_db()
        history.record(
            cluster, "resize", actor, f"Pool {pool} of {cluster}: {before} → {quantity}."
        )
    return pool


def delete_cluster(cluster: TenantCluster, actor: str) -> TenantCluster:
    """Begin the deletion: nodes go home and are wiped, then the control plane goes, the network
    last.
    """
    with transaction.atomic():
        # Read again under the row's lock: phases move on while a person decides.
        cluster.refresh_from_db(from_queryset=TenantCluster.objects.select_for_update())
        if cluster.deleting:
            return cluster
        CLUSTER.move(cluster, "delete", actor, f"{cluster} is to be deleted.", code="", problem="")
        run = steps.begin("cluster", cluster.uid, DELETION)
        TenantCluster.objects.filter(pk=cluster.pk).update(run=run)
    return cluster


def retry(cluster: TenantCluster, actor: str) -> TenantCluster:
    """Try the step again that stopped."""
    if cluster.state != TenantCluster.State.FAILED:
        raise NotAllowed(f"{cluster} has no step that stopped, so there is nothing to retry.")
    step = (
        Step.objects.filter(kind="cluster", owner_uid=cluster.uid, state="failed")
        .order_by("-run")
        .first()
    )
    with transaction.atomic():
        if step is not None and step.name in DELETION:
            CLUSTER.move(
                cluster,
                "delete",
                actor,
                f"The deletion of {cluster} is tried again.",
                code="",
                problem="",
            )
        else:
            CLUSTER.move(
                cluster,
                f"enter {step.name if step else 'network'}",
                actor,
                f"{cluster} is tried again.",
                code="",
                problem="",
            )
        steps.retry("cluster", cluster.uid)
    return cluster


def settle() -> None:
    """Deletions whose last claim has gone since are looked at now;

    called every second, cheap when none.
    """
    for cluster in TenantCluster.objects.filter(state="deleting"):
        waiting = Step.objects.filter(
            kind="cluster", owner_uid=cluster.uid, current=True, name="release nodes"
        ).exists()
        if waiting and not cluster.claims.exclude(state="gone").exists():
            steps.look_now("cluster", cluster.uid)
