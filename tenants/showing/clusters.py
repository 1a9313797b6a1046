"""A cluster in one line, and everything its page shows; the live hub renders from the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from gpucloud import durations, history, policy, tones, ui
from gpucloud.live import ViewClass
from gpucloud.models import Event, Step, User
from gpucloud.policy import visible
from gpucloud.reasons import reason
from network.models import Attachment
from provisioning.models import NodeClaim, Operation
from provisioning.showing import claims as showing_claims
from tenants.models import NodePool, TenantCluster
from tenants.services.access import OPEN_STATES
from tenants.services.clusters import DELETION
from tenants.templates import attachment_name

EVENTS_SHOWN: Final = 12
STEP_TITLES: Final = {
    "network": "Network",
    "scheduling": "Scheduling control plane",
    "creating-namespace": "Creating namespace",
    "deploying": "Deploying control plane",
    "available": "Control plane available",
    "connected": "Connecting to platform",
    "ready": "Ready",
    "release nodes": "Releasing nodes",
    "remove control plane": "Removing control plane",
    "remove network": "Removing network",
}


@dataclass(frozen=True)
class Phase:
    """One step of the sequence."""

    name: str
    state: ui.StepState
    note: str


@dataclass(frozen=True)
class Summary:
    """One cluster in a line: its nodes, and the steps of its newest run."""

    cluster: TenantCluster
    nodes: Sequence[NodeClaim]
    steps: Sequence[Step]

    @property
    def step(self) -> Step | None:
        return next((s for s in self.steps if s.current or s.state == "failed"), None)

    @property
    def words(self) -> tuple[str, str]:
        """State and tone as rows, heads and titles say them."""
        cluster, step = self.cluster, self.step
        if cluster.state == "failed":
            return (f"{title(step.name)} failed" if step else "Failed"), "bad"
        if cluster.state == "deleting" and self.nodes:
            return f"Deleting, {len(self.nodes)} nodes left", "busy"
        return str(cluster.get_state_display()), tones.tone(TenantCluster, cluster.state)

    @property
    def ready(self) -> int:
        return sum(node.state == "ready" for node in self.nodes)

    @property
    def failed(self) -> int:
        return sum(node.state == "failed" for node in self.nodes)

    @property
    def wanted(self) -> int:
        return sum(pool.quantity for pool in self.cluster.pools.all())

    @property
    def counted(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ready} of {self.wanted}{failed}"


def title(name: str) -> str:
    return STEP_TITLES.get(name, name.capitalize())


def clusters(user: Any) -> QuerySet[TenantCluster]:
    """The clusters that a person may see, with what one row needs, in a fixed number of queries."""
    live = NodeClaim.objects.live().select_related("node_type", "server", "tenant")
    runs = Operation.objects.filter(kind__in=("claim", "release")).order_by("-id")
    live = live.prefetch_related(Prefetch("operations", runs, to_attr="runs")).order_by("id")
    return (
        visible(user, TenantCluster.objects.all())
        .select_related("tenant", "template", "segment__fabric")
        .prefetch_related(
            Prefetch("pools", NodePool.objects.select_related("node_type")),
            Prefetch("claims", live, to_attr="nodes"),
        )
    )


def summarise(rows: Iterable[TenantCluster]) -> list[TenantCluster]:
    """Give each cluster of `clusters` its `summary`; one query for the steps of all."""
    found = list(rows)
    steps = defaultdict(list)
    uids = [cluster.uid for cluster in found]
    for step in Step.objects.filter(kind="cluster", owner_uid__in=uids).order_by("run", "index"):
        steps[step.owner_uid].append(step)
    for cluster in found:
        own = [step for step in steps[cluster.uid] if step.run == cluster.run]
        cluster.summary = Summary(cluster, cluster.nodes, own)  # type: ignore[attr-defined]
    return found


def context(cluster: TenantCluster, view: ViewClass) -> dict[str, Any]:
    """The context of the page and of its fragments; `cluster` is of `clusters`."""
    summarise([cluster])
    summary: Summary = cluster.summary  # type: ignore[attr-defined]
    staff = view.sees_all
    showing_claims.summarise(summary.nodes)
    return {
        "object": cluster,
        "cluster": cluster,
        "view": view,
        "staff": staff,
        "summary": summary,
        "phases": [phase(step) for step in summary.steps],
        "going": bool(summary.steps) and summary.steps[0].name in DELETION,
        "now_doing": _doing(summary, staff),
        "sequence_note": _sequence_note(cluster, summary),
        "trouble": trouble(cluster, summary, staff),
        "network": network(cluster, summary, staff),
        "endpoints": endpoints(cluster, summary),
        "pools": [_pool(pool, summary) for pool in cluster.pools.all()],
        "moments": moments(cluster, staff),
        "conditions": [_condition(one) for one in cluster.conditions if not cluster.deleting],
        "follow": f"{cluster.state}",
    }


def phase(step: Step) -> Phase:
    note = ""
    if step.took is not None and step.state == "done":
        note = durations.words(step.took)
    elif step.started and step.state in ("running", "waiting"):
        note = f"for {durations.words(timezone.now() - step.started)}"
    elif step.state == "failed":
        note = step.code or "stopped"
    elif step.state == "skipped":
        note = "skipped"
    return Phase(title(step.name), ui.STEP_STATES[step.state], note)


def _condition(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "at": parse_datetime(str(one.get("at") or ""))}


def _doing(summary: Summary, staff: bool) -> str:
    """The words of the step that runs; a driver's own stay with the platform."""
    step = summary.step
    if step is None or step.state == "failed":
        return ""
    if staff or not step.sentence:
        return step.sentence
    return reason(step.code).sentence if step.code else f"{title(step.name)} is under way."


def _sequence_note(cluster: TenantCluster, summary: Summary) -> str:
    when = f"{timezone.localtime(cluster.created):%d %b %H:%M:%S} by {cluster.asked_by}"
    asked = f"Asked for {when}"
    done = [step for step in summary.steps if step.took is not None]
    if summary.steps and summary.steps[0].name in DELETION:
        return f"Cluster asked for {when}"
    if cluster.ready_at is None or not done:
        return asked
    took = durations.words(cluster.ready_at - cluster.created)
    return f"{asked}, ready after {took}. It never waits for nodes"


def trouble(cluster: TenantCluster, summary: Summary, staff: bool) -> ui.Notice | None:
    """What stopped or is tried again: code, cause, effect, next."""
    step = summary.step
    if cluster.state == "failed":
        code = cluster.code or (step.code if step else "")
        known = reason(code)
        cause = cluster.problem if staff and cluster.problem else known.sentence
        effect = f"{summary.ready} ready nodes are not touched. Nothing else is done until a retry."
        what = title(step.name) if step else "The cluster"
        facts = [("Cause", cause), ("Effect", effect), ("Next", known.next)]
        return ui.Notice(f"{what} stopped", "", "bad", "warn", code, facts)
    if cluster.state == "ready" and cluster.code:
        known = reason(cluster.code)
        cause = cluster.problem if staff and cluster.problem else known.sentence
        facts = [("Cause", cause), ("Next", f"It is tried again by itself. {known.next}")]
        return ui.Notice("A pool gets no more nodes", "", "warn", "warn", cluster.code, facts)
    if step is not None and step.code and step.failures:
        known = reason(step.code)
        cause = step.sentence if staff else known.sentence
        facts = [("Cause", cause), ("Next", f"It is tried again by itself. {known.next}")]
        return ui.Notice(
            f"{title(step.name)} is tried again", "", "warn", "refresh", step.code, facts
        )
    return None


def network(
    cluster: TenantCluster, summary: Summary, staff: bool
) -> list[tuple[tuple[str, str], str, str]]:
    """What the network step has put in place: verdict, what, when it was read."""
    segment = cluster.segment
    if segment is None:
        words = "Undone" if cluster.state == "gone" else "Not yet"
        when = "" if cluster.state == "gone" else "made in the network step"
        return [((words, "neutral"), "A segment of the tenant's own", when)]
    read = f"read {timezone.localtime(segment.seen_at):%H:%M:%S}" if segment.seen_at else ""
    on = segment.state == "applied"
    verdict = ("In place", "good") if on else (segment.get_state_display(), "busy")
    own = "made for this cluster, dies with it" if segment.made_for == cluster.uid else "yours"
    found = [(verdict, f"Segment {segment}, VLAN {segment.vlan}, {segment.cidr}, {own}", read)]
    if staff:
        found += [_trunk(row) for row in _trunks(segment.pk)]
    done = any(s.name == "network" and s.state == "done" for s in summary.steps)
    done = done or cluster.ready_at is not None or cluster.state in ("available", *OPEN_STATES)
    name = attachment_name(segment.host_bridge, cluster.name)
    text = f"NetworkAttachmentDefinition {cluster.tenant.namespace}/{name}"
    found.append(((("In place", "good") if done else ("Not yet", "neutral")), text, ""))
    return found


def _trunks(segment: int) -> QuerySet[Attachment]:
    rows = Attachment.objects.filter(segment=segment, mode="trunk").exclude(state="gone")
    return rows.select_related("interface__shared_endpoint", "segment")


def _trunk(row: Attachment) -> tuple[tuple[str, str], str, str]:
    verdict = ("Carried", "good") if row.state == "applied" else (row.get_state_display(), "busy")
    read = f"read {timezone.localtime(row.observed_at):%H:%M:%S}" if row.observed_at else ""
    owner = row.interface.shared_endpoint
    return verdict, f"Shared endpoint {owner} carries VLAN {row.segment.vlan}", read


def endpoints(cluster: TenantCluster, summary: Summary) -> list[dict[str, Any]]:
    """The two addresses of the API, and who reaches which."""
    segment = cluster.segment
    if cluster.state == "gone":
        return []
    up = cluster.state in OPEN_STATES
    few = "node" if summary.ready == 1 else f"{summary.ready} nodes"
    nodes = f"Your {few}" if summary.ready else "Nodes of this cluster"
    return [
        {
            "name": "Node endpoint",
            "note": f"on segment {segment}, in user data" if segment else "not there yet",
            "address": cluster.node_endpoint,
            "who": (nodes, "good" if summary.ready else "neutral"),
            "but": f"only from {segment}, nobody outside" if segment else "",
        },
        {
            "name": "Client endpoint",
            "note": "in your kubeconfig",
            "address": cluster.client_endpoint,
            "who": ("You, from outside", "good" if up and cluster.client_endpoint else "neutral"),
            "but": "not from the nodes' segment",
        },
    ]


def _pool(pool: NodePool, summary: Summary) -> dict[str, Any]:
    own = [n for n in summary.nodes if n.pool_id == pool.pk and n.state != "releasing"]
    ready = sum(n.state == "ready" for n in own)
    rest = max(0, pool.quantity - ready)
    parts = [ui.Part("claimed", ready, "ready"), ui.Part("planned", rest, "still to come")]
    return {"pool": pool, "ready": ready, "live": len(own), "meter": ui.Meter(parts)}


def moments(cluster: TenantCluster, staff: bool) -> list[ui.Moment]:
    """The newest events of the cluster."""
    found = []
    for event in Event.objects.filter(object_uid=cluster.uid).order_by("-id")[:EVENTS_SHOWN]:
        words = history.words(event, staff)
        tone: ui.Tone = "bad" if event.verb == "fail" else "neutral"
        found.append(ui.Moment(words, event.code, event.at, tone, event.actor))
    return found


def actions(user: User, cluster: TenantCluster) -> list[ui.Link]:
    """What this person may do with the cluster now; destructive last."""
    at, found = cluster.get_absolute_url(), []
    if cluster.state == "gone":
        return []
    found.append(ui.Link("YAML", f"{at}yaml/", "", "file"))
    if cluster.state == "failed" and policy.may(user, "retry", cluster):
        found.append(ui.Link("Retry the step", f"{at}retry/", "primary", "refresh", "post"))
    if cluster.state in OPEN_STATES and policy.may(user, "kubeconfig", cluster):
        link = ui.Link("Download kubeconfig", f"{at}kubeconfig/", "primary", "download", "post")
        found.append(link)
    if not cluster.deleting and policy.may(user, "delete", cluster):
        found.append(ui.Link("Delete cluster…", f"{at}delete/", "danger"))
    return found
