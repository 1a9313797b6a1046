"""The first page: the fleet, what is in flight and what needs a person; or a tenant's own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models.functions import Now
from django.utils import timezone

from gpucloud import durations, history, ui
from gpucloud.engine.heartbeat import silent
from gpucloud.live import ViewClass
from gpucloud.models import Event, Heartbeat, User
from gpucloud.policy import may, visible
from inventory.models import Gpu, Server
from provisioning.models import NodeClaim, NodeType
from provisioning.services.claims import quota_used
from provisioning.showing import claims
from provisioning.showing.attention import attention
from provisioning.showing.types import measure
from provisioning.showing.usual import finish, usual
from tenants.models import Tenant, TenantCluster
from tenants.showing import clusters
from tenants.showing.quota import meters

IN_FLIGHT: Final = ("pending", "provisioning", "releasing")
FLIGHTS_SHOWN: Final = 12
EVENTS_SHOWN: Final = 10
ATTENTION_SHOWN: Final = 8
# What only the platform has a page of.
PLATFORM_KINDS: Final = ("server", "wipe", "bmc", "provider", "fabric")
WEEK: Final = timedelta(days=7)


def platform(user: User) -> dict[str, Any]:
    """For people of the platform: everything at a glance."""
    queue = attention(user)
    flying, count = flights(user)
    types = measure(NodeType.objects.select_related("provider__connection"))
    servers = Server.objects.exclude(state="retired").count()
    tenants = TenantCluster.objects.live().count()
    return {
        "figures": _figures(count),
        "types": types,
        "queue": queue[:ATTENTION_SHOWN],
        "waiting": len(queue),
        "flights": flying,
        "flight_count": count,
        "moments": moments(user),
        "silent": silent(),
        "processes": Heartbeat.objects.count(),
        "servers": servers,
        "clusters": tenants,
        "may_register": may(user, "create", Server),
        "view": ViewClass.of(user),
    }


def tenancy(user: User) -> dict[str, Any]:
    """For people of tenants: their clusters, claims in flight, and quota."""
    rows = list(visible(user, Tenant.objects.all()).prefetch_related("memberships"))
    own = clusters.summarise(clusters.clusters(user).exclude(state="gone").order_by("name"))
    flying, count = flights(user)
    return {
        "tenants": [(tenant, meters(quota_used(tenant))) for tenant in rows],
        "clusters": own,
        "ready": sum(one.state == "ready" for one in own),
        "flights": flying,
        "flight_count": count,
        "troubled": [c for c in flying if c.summary.stopped],  # type: ignore[attr-defined]
        "failed": list(visible(user, NodeClaim.objects.filter(state="failed"))[:ATTENTION_SHOWN]),
        "moments": moments(user),
        "may_create": any(may(user, "create cluster", tenant) for tenant in rows),
        "view": ViewClass.of(user),
    }


def flights(user: User) -> tuple[list[NodeClaim], int]:
    """Claims on their way, the oldest first, each with when it is usually there."""
    rows = claims.claims(user).filter(state__in=IN_FLIGHT)
    found = claims.summarise(rows.order_by("id")[:FLIGHTS_SHOWN])
    now = timezone.now()
    known: dict[tuple[int, str], Any] = {}
    for claim in found:
        summary: claims.Summary = claim.summary  # type: ignore[attr-defined]
        claim.expected = None  # type: ignore[attr-defined]
        if summary.operation is None or summary.waits or summary.stopped:
            continue
        key = (claim.node_type_id, summary.operation.kind)
        if key not in known:
            known[key] = usual(claim.node_type, summary.operation.kind)
        claim.expected = finish(summary.steps, known[key], now)  # type: ignore[attr-defined]
    return found, rows.count()


def _figures(count: int) -> list[ui.Figure]:
    """Numbers that decide something, counted from rows of this moment and of seven days."""
    gpus = Gpu.objects.exclude(server__state="retired")
    held = gpus.filter(server__state="held").count()
    week = NodeClaim.objects.filter(created__gte=Now() - WEEK)
    asked, failed = week.count(), week.filter(state="failed").count()
    times = _times(week.filter(ready_at__isnull=False).values_list("created", "ready_at"))
    planes = _times(
        TenantCluster.objects.filter(ready_at__gte=Now() - WEEK).values_list("created", "ready_at")
    )
    return [
        ui.Figure("GPUs claimed", held, f"of {gpus.count()}", "as of the last inspections"),
        ui.Figure("Claims in flight", count, "", "asked, installing or on their way home"),
        ui.Figure("Time to node, 7 days", *_middle(times, "ready claim")),
        ui.Figure("Failed claims, 7 days", failed, f"of {asked}", "that still hold a server"),
        ui.Figure("Control plane to Ready", *_middle(planes, "cluster")),
    ]


def _times(rows: Any) -> list[timedelta]:
    return sorted(ready - created for created, ready in rows[:500])


def _middle(times: list[timedelta], what: str) -> tuple[str, str, str]:
    if not times:
        return "–", "", f"no {what} in 7 days"
    p90 = times[min(len(times) - 1, int(0.9 * len(times)))]
    note = f"p90 {durations.words(p90)}, {len(times)} {what}{'s' if len(times) > 1 else ''}"
    return durations.words(times[len(times) // 2]), "", note


def moments(user: User) -> list[ui.Moment]:
    """The newest events that the person may see; a driver's words stay with the platform."""
    hidden = ("operation",) if user.sees_all else ("operation", *PLATFORM_KINDS)
    rows = visible(user, Event.objects.exclude(kind__in=hidden)).order_by("-id")[:EVENTS_SHOWN]
    found = []
    for event in rows:
        words = history.words(event, user.sees_all)
        tone: ui.Tone = "neutral" if not event.code else "warn" if event.verb == "alarm" else "bad"
        found.append(
            ui.Moment(words, event.code, event.at, tone, event.actor, f"/o/{event.object_uid}/")
        )
    return found
