"""Claims: request, release, retry; each writes the wish, its history and the operation that
carries it out.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Sum
from django.db.models.functions import Now

from gpucloud import history, vault
from gpucloud import labels as node_labels
from gpucloud.engine import steps
from gpucloud.models import name_validator
from gpucloud.problems import Invalid, NotAllowed, Problem
from inventory.lifecycle import SERVER
from inventory.models import Server
from provisioning.lifecycle import CLAIM, OPERATION
from provisioning.models import NodeClaim, NodeType, Operation, OSImage
from provisioning.services.providers import driver_of
from tenants.models import NodePool, Tenant, TenantCluster

# Reasons of Check that only another wipe can answer.
WIPE_AGAIN = ("WIPE_FAILED", "READBACK_NOT_BLANK", "DRIVE_SET_MISMATCH")
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def claim_name(stem: str) -> str:
    return f"{stem}-{''.join(secrets.choice(ALPHABET) for _ in range(5))}"


def check_quota(tenant: Tenant, node_type: NodeType, more: int = 1) -> None:
    """Refuse what the tenant's quota does not allow.

    The caller holds the tenant's row locked by an UPDATE.
    """
    live = tenant.claims.live()
    limit = tenant.quota.get("servers")
    if limit is not None and live.count() + more > limit:
        raise Problem(
            f"Tenant {tenant} may hold {limit} servers and has {live.count()}; {more} "
            "more is over its quota.",
            "QUOTA_EXCEEDED",
        )
    gpus, wanted = tenant.quota.get("gpus"), int(node_type.sku.get("gpu_count") or 0) * more
    if gpus is not None and wanted:
        held = sum(
            int(c.node_type.sku.get("gpu_count") or 0) for c in live.select_related("node_type")
        )
        if held + wanted > gpus:
            raise Problem(
                f"Tenant {tenant} may hold {gpus} GPUs and has {held}; {wanted} more "
                "is over its quota.",
                "QUOTA_EXCEEDED",
            )


def request(
    actor: str,
    tenant: Tenant,
    node_type: NodeType,
    *,
    cluster: TenantCluster | None = None,
    pool: NodePool | None = None,
    name: str = "",
    image: OSImage | None = None,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
) -> NodeClaim:
    """Write a claim and the operation that will carry it out.

    Quota is checked under the tenant's row lock.
    """
    chosen = image or (pool.image if pool else None) or node_type.image
    errors: dict[str, list[str]] = {}
    if chosen is None:
        errors["image"] = [f"Node type {node_type} has no OS image of its own; name one."]
    if cluster is None:
        errors["cluster"] = ["Name the cluster that the node joins."]
    elif cluster.deleting:
        errors["cluster"] = [f"Cluster {cluster} is being deleted."]
    if pool is None and (wrong := node_labels.node_problems(labels or {})):
        errors["labels"] = wrong
    try:
        if name:
            name_validator(name)
    except ValidationError as error:
        errors["name"] = list(error.messages)
    if errors:
        raise Invalid(errors)
    try:
        with transaction.atomic():
            Tenant.objects.filter(pk=tenant.pk).update(rev=F("rev") + 1)
            tenant.refresh_from_db(fields=["quota"])
            check_quota(tenant, node_type)
            _keep_cluster(cluster)
            claim = NodeClaim.objects.create(
                tenant=tenant,
                name=name or claim_name(cluster.name if cluster else node_type.name),
                purpose=NodeClaim.Purpose.POOL if pool else NodeClaim.Purpose.DIRECT,
                cluster=cluster,
                pool=pool,
                pool_name=pool.name if pool else "",
                node_type=node_type,
                image=chosen,
                labels=labels or (pool.labels if pool else {}),
                taints=taints or (pool.taints if pool else []),
                asked_by=actor,
            )
            history.record(claim, "request", actor, f"{claim} asks for one {node_type}.")
            _begin(claim, Operation.Kind.CLAIM, actor)
    except IntegrityError as error:
        raise Invalid({"name": [f"Tenant {tenant} has a claim called {name} already."]}) from error
    return claim


def _keep_cluster(cluster: TenantCluster | None) -> None:
    """Lock the cluster's row as one that stays: a deletion begins before this claim or sees it."""
    if cluster is None:
        return
    rows = TenantCluster.objects.filter(pk=cluster.pk).exclude(state__in=("deleting", "gone"))
    if not rows.update(rev=F("rev") + 1):
        raise Invalid({"cluster": [f"Cluster {cluster} is being deleted."]})


def _begin(claim: NodeClaim, kind: str, actor: str, server: Server | None = None) -> Operation:
    operation = Operation.objects.create(kind=kind, claim=claim, server=server, actor=actor)
    names = driver_of(claim.node_type.provider).steps[kind]
    steps.begin("operation", operation.uid, names)
    return operation


def release(claim: NodeClaim, actor: str) -> NodeClaim:
    """Give the claim up: what runs is ended, and a bound server goes home through the whole
    release.
    """
    with transaction.atomic():
        # Read again under the row's lock: steps move on while a person decides.
        claim.refresh_from_db(from_queryset=NodeClaim.objects.select_for_update())
        if claim.state in (NodeClaim.State.RELEASING, NodeClaim.State.GONE):
            return claim
        if claim.server_id is None:
            _end_operations(claim, actor)
            # The guard loses against a Select that binds at this very moment; the caller then reads
            # again.
            let_go(claim, actor, f"{claim} was given up before it had a server.")
            return claim
        CLAIM.move(claim, "release", actor, code="", problem="", release_wanted=True)
        _end_operations(claim, actor)
        assert claim.server is not None
        if claim.server.state in (Server.State.FAILED, Server.State.CLEANING):
            SERVER.move(claim.server, "rehold", actor, code="", problem="")
        _begin(claim, Operation.Kind.RELEASE, actor, claim.server)
    return claim


def _end_operations(claim: NodeClaim, actor: str) -> None:
    for operation in claim.operations.filter(state__in=("active", "failed")):
        steps.cancel("operation", operation.uid)
        OPERATION.move(operation, "cancel", actor, ended=Now())


def let_go(claim: NodeClaim, actor: str, message: str) -> None:
    """The end of a claim: nothing of it is held any more."""
    from network.services.segments import free_addresses

    guard = None
    if claim.server_id is None:
        from django.db.models import Q

        guard = Q(server__isnull=True)
    CLAIM.move(claim, "let go", actor, message, gone_at=Now(), guard=guard)
    free_addresses(claim.uid)
    vault.drop("claim", claim.uid)
    from provisioning.reconcile import wake_waiting

    # After commit: other owners' steps are not waited for while rows of this claim are locked.
    transaction.on_commit(wake_waiting)
    if claim.cluster_id:
        steps.look_now("cluster", claim.cluster.uid)  # type: ignore[union-attr]


def retry(claim: NodeClaim, actor: str) -> NodeClaim:
    """Try the step again that stopped; the plan goes on from there."""
    operation = claim.operations.filter(state=Operation.State.FAILED).first()
    if operation is None:
        raise NotAllowed(f"{claim} has no step that stopped, so there is nothing to retry.")
    failed_for = operation.code
    with transaction.atomic():
        if operation.kind == Operation.Kind.CLAIM:
            verb = "retry" if claim.server_id else "retry unbound"
            CLAIM.move(claim, verb, actor, code="", problem="")
        else:
            NodeClaim.objects.filter(pk=claim.pk).update(code="", problem="", rev=F("rev") + 1)
            claim.refresh_from_db()
            server = claim.server
            if server and server.state == Server.State.FAILED:
                SERVER.move(server, "rehold", actor, code="", problem="")
        OPERATION.move(operation, "retry", actor, code="", problem="", ended=None)
        since = "wipe" if failed_for in WIPE_AGAIN else ""
        if not steps.retry("operation", operation.uid, since):
            raise NotAllowed(f"{claim} has no step that stopped, so there is nothing to retry.")
    return claim


def position(claim: NodeClaim) -> tuple[int, int]:
    """(place in the queue of its node type, how many wait), oldest first;

    (0, 0) when it does not wait.
    """
    waiting = NodeClaim.objects.filter(
        node_type=claim.node_type, state=NodeClaim.State.PENDING, server=None
    )
    if claim.state != NodeClaim.State.PENDING or claim.server_id:
        return 0, 0
    return waiting.filter(pk__lte=claim.pk).count(), waiting.count()


def quota_used(tenant: Tenant) -> dict[str, Any]:
    """{servers: {used, limit}, gpus: {used, limit}}, counted from live claims."""
    live = list(tenant.claims.live().select_related("node_type"))
    gpus = sum(int(c.node_type.sku.get("gpu_count") or 0) for c in live)
    return {
        "servers": {"used": len(live), "limit": tenant.quota.get("servers")},
        "gpus": {"used": gpus, "limit": tenant.quota.get("gpus")},
        "wanted": tenant.clusters.exclude(state="gone").aggregate(n=Sum("pools__quantity"))["n"]
        or 0,
    }
