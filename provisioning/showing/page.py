"""Everything that a claim's page shows, as plain values; the live hub renders from the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from django.utils import timezone

from gpucloud import history, ui
from gpucloud.live import ViewClass
from gpucloud.models import Event, Step
from provisioning.models import NodeClaim
from provisioning.showing import claims, proofs, runs
from provisioning.showing.trouble import trouble

SELECTION_SHOWN: Final = 12
EVENTS_SHOWN: Final = 12


def context(claim: NodeClaim, view: ViewClass) -> dict[str, Any]:
    """The context of the page and of its fragments; `claim` is of `claims.claims`."""
    claims.summarise([claim])
    summary: claims.Summary = claim.summary  # type: ignore[attr-defined]
    staff = view.sees_all
    vlans = proofs.Vlans(claim)
    steps = _steps(claim)
    made = [
        runs.run(claim, operation, steps[operation.uid], staff, vlans)
        for operation in claim.runs  # type: ignore[attr-defined]
    ]
    every = [step for operation in reversed(claim.runs) for step in steps[operation.uid]]  # type: ignore[attr-defined]
    selection = claim.selection if staff else {}
    return {
        "object": claim,
        "claim": claim,
        "view": view,
        "staff": staff,
        "summary": summary,
        "runs": [run for run, _ in made],
        "plan": made[0][1] if made else None,
        "trouble": trouble(claim, summary, staff),
        "facts": facts(claim, staff),
        "network": proofs.network(claim, every, vlans) if staff else None,
        "network_read": _read_at(every),
        "proofs": None if staff else proofs.for_tenant(claim, every),
        "selection": explanation(selection, SELECTION_SHOWN),
        "moments": moments(claim, staff),
        "follow": f"{claim.state} {summary.stopped}",
    }


def _steps(claim: NodeClaim) -> dict[Any, list[Step]]:
    found = defaultdict(list)
    uids = [operation.uid for operation in claim.runs]  # type: ignore[attr-defined]
    for step in Step.objects.filter(kind="operation", owner_uid__in=uids).order_by("run", "index"):
        found[step.owner_uid].append(step)
    return found


def _read_at(steps: Sequence[Step]) -> Any:
    """When ports were last read in a step."""
    keys = {"ports", "before", "in_quarantine", "after"}
    moments = [s.ended or s.started for s in steps if keys & set(s.evidence)]
    return max((m for m in moments if m), default=None)


def facts(claim: NodeClaim, staff: bool) -> list[ui.Fact]:
    """What the claim is, as far as the reader may know."""
    fact, cluster, server = ui.Fact, claim.cluster, claim.server
    found = [fact("Tenant", claim.tenant, href=claim.tenant.get_absolute_url())]
    if cluster is not None:
        note = f"namespace {claim.tenant.namespace}" if staff else ""
        found.append(fact("Cluster", cluster, note, href=cluster.get_absolute_url()))
    found.append(
        fact(
            "Node type", claim.node_type, _hardware(claim), href=claim.node_type.get_absolute_url()
        )
    )
    if claim.pool_name:
        pool = claim.pool
        size = f"{pool.get_kind_display().lower()}, {pool.quantity} wanted" if pool else "removed"
        found.append(fact("Pool", claim.pool_name, size))
    if staff and server is not None:
        place = f"{server.rack or ''}{f' U{server.slot:02d}' if server.slot else ''}".strip()
        found.append(fact("Server", server, place, href=server.get_absolute_url()))
    if claim.node_name:
        found.append(fact("Node", claim.node_name))
    if claim.image is not None:
        found.append(fact("Image", claim.image, href=claim.image.get_absolute_url()))
    if staff and server is not None and server.provisioning_address:
        note = "by DHCP, only while in the provisioning segment"
        found.append(fact("Provisioning", server.provisioning_address, note, copy=True))
    if claim.tenant_address:
        segment = cluster.segment if cluster else None
        note = f"in {segment}, in the network data only, from Boot on" if segment else ""
        found.append(fact("Tenant address", claim.tenant_address, note, copy=True))
    if claim.labels:
        labels = " ".join(f"{key}={value}" for key, value in sorted(claim.labels.items()))
        found.append(fact("Node labels", labels))
    at = f"{timezone.localtime(claim.created):%d %b %H:%M:%S %Z}"
    found.append(fact("Asked by", claim.asked_by or "nobody known", at))
    found.append(fact("UID", str(claim.uid), copy=True))
    return found


def _hardware(claim: NodeClaim) -> str:
    sku = claim.node_type.sku
    if not sku.get("gpu_count"):
        return ""
    return f"{sku['gpu_count']}× {sku.get('gpu_model') or 'GPU'}"


def explanation(selection: dict[str, Any], most: int | None = None) -> dict[str, Any] | None:
    """Every check and verdict of the servers considered, the chosen one first."""
    considered = selection.get("considered") or []
    if not considered:
        return None
    rows = [
        {
            "name": row["name"],
            "uid": row["uid"],
            "result": row["result"],
            "tone": {"Chosen": "good", "Fits": "neutral"}.get(row["result"], "neutral"),
            "checks": [(c["text"], "good" if c["passed"] else "bad") for c in row["checks"]],
            "score": row["score"],
        }
        for row in considered[:most]
    ]
    fit = sum(row["result"] != "Refused" for row in considered)
    chosen = next((row["name"] for row in considered if row["result"] == "Chosen"), "")
    return {
        "heads": [check["name"] for check in considered[0]["checks"]],
        "rows": rows,
        "count": len(considered),
        "fit": fit,
        "chosen": chosen,
        "more": len(considered) - len(rows),
    }


def moments(claim: NodeClaim, staff: bool) -> list[ui.Moment]:
    """The newest events of the claim; a driver's words stay with the platform."""
    rows = Event.objects.filter(object_uid=claim.uid).order_by("-id")[:EVENTS_SHOWN]
    tones: dict[str, ui.Tone] = {"ready": "good", "alarm": "warn", "let go": "neutral"}
    found = []
    for event in rows:
        words = history.words(event, staff)
        tone: ui.Tone = (
            "bad" if event.code and event.verb == "fail" else tones.get(event.verb, "busy")
        )
        found.append(ui.Moment(words, event.code, event.at, tone, event.actor))
    return found
