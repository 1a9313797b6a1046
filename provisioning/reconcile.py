"""Pools into claims: the wish of every pool against its live claims; pure difference first, then
apply.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud import history
from gpucloud.engine.nudge import nudge
from gpucloud.live.publish import publish
from gpucloud.models import Step
from gpucloud.problems import Problem
from provisioning.models import NodeClaim, Operation
from provisioning.services import claims
from tenants.models import NodePool, TenantCluster

# Claims are made as soon as the control plane is being brought up: their servers install while it
# deploys.
CLAIMABLE = ("available", "connected", "ready", "changing")


def difference(wanted: int, live: list[str]) -> int:
    """How many claims to make (positive) or to release (negative).

    `live` are the claims' states.
    """
    return wanted - sum(1 for state in live if state != "releasing")


def pools() -> None:
    """Bring every static pool of a running cluster in line with its quantity."""
    short: dict[int, Problem] = {}
    for pool in NodePool.objects.filter(kind="static", cluster__state__in=CLAIMABLE).select_related(
        "cluster__tenant", "node_type__provider", "image"
    ):
        try:
            _settle(pool)
        except Problem as problem:
            short[pool.cluster_id] = problem
    _tell(short)


def _tell(short: dict[int, Problem]) -> None:
    """Keep on a ready cluster why a pool of it gets no more claims, until it does.

    Before it is ready, its reason is its own steps' to tell.
    """
    ready = TenantCluster.objects.filter(state="ready")
    for cluster in ready.exclude(code="").exclude(pk__in=short):
        TenantCluster.objects.filter(pk=cluster.pk).update(code="", problem="", rev=F("rev") + 1)
        publish(cluster)
    for pk, problem in short.items():
        told = {"code": problem.code, "problem": problem.message}
        with transaction.atomic():
            rows = ready.filter(pk=pk).exclude(**told)
            if rows.update(**told, rev=F("rev") + 1):
                cluster = TenantCluster.objects.get(pk=pk)
                words = f"A pool of {cluster} stays short: {problem.message}"
                history.record(cluster, "pool short", "engine", words, code=problem.code)


def _settle(pool: NodePool) -> None:
    live = list(pool.claims.live().order_by("pk"))
    if difference(pool.quantity, [c.state for c in live]) == 0:
        return
    with transaction.atomic():
        # The pool's row is the lock: two sweeps at once would otherwise both see one claim too few.
        if not NodePool.objects.filter(pk=pool.pk, cluster__state__in=CLAIMABLE).update(
            rev=F("rev") + 1
        ):
            return
        pool.refresh_from_db()
        live = list(pool.claims.live().order_by("pk"))
        more = difference(pool.quantity, [c.state for c in live])
        refused = _request(pool, more)
    if refused:
        raise refused
    for claim in _surplus(live, -more):
        claims.release(claim, "engine")


def _request(pool: NodePool, more: int) -> Problem | None:
    """Make as many of these claims as may be; returns what kept the rest from being made."""
    for made in range(more):
        try:
            claims.request(
                pool.cluster.asked_by or "engine",
                pool.cluster.tenant,
                pool.node_type,
                cluster=pool.cluster,
                pool=pool,
            )
        except Problem as problem:
            if not made:
                raise  # nothing was changed: the transaction leaves no trace of the try
            return problem
    return None


def _surplus(live: list[NodeClaim], count: int) -> list[NodeClaim]:
    """Whom to let go when a pool shrinks:

    those without a server first, then failed ones, then the newest.
    """
    order = {"pending": 0, "failed": 1, "provisioning": 2, "ready": 3}
    held = [c for c in live if c.state != "releasing"]
    return sorted(held, key=lambda c: (order[c.state], -c.pk))[: max(0, count)]


def wake_waiting() -> None:
    """A server may be free: everybody who waits for capacity looks now, oldest first by their
    place.
    """
    waiting = Operation.objects.filter(state="active", kind="claim", server=None)
    uids = list(waiting.order_by("pk").values_list("uid", flat=True))
    steps = Step.objects.filter(kind="operation", owner_uid__in=uids, current=True)
    with transaction.atomic():
        # In one order: two that wake the same crowd would else wait for each other.
        rows = list(steps.order_by("pk").select_for_update(no_key=True).values_list("pk"))
        steps.filter(pk__in=[pk for (pk,) in rows]).update(next_try_at=Now(), nudged=None)
    for uid in uids[:50]:
        nudge("operation", uid)
