"""Work for a person: what failed, what waits past its deadline, each with one safe next action."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from gpucloud import durations, ui
from gpucloud.models import Step, User
from gpucloud.policy import visible
from gpucloud.reasons import reason
from inventory.models import Server
from provisioning.models import NodeClaim, Operation
from tenants.models import TenantCluster

MOST: Final = 12
# What the one button says, by the catalogue's action; it leads to the object, where it is done.
WORDS: Final = {
    "retry": "Retry or release",
    "release": "Release",
    "quarantine": "Look at the server",
    "pick_another": "Look at the claim",
    "wait": "See the queue",
    "edit": "Correct it",
    "cable": "Record the cable",
    "power_off": "Power it off",
    "none": "Open",
}


def attention(user: User) -> list[ui.QueueItem]:
    """Oldest first, as far as the person may see."""
    found = [*_claims(user), *_releases(user), *_waiting(user), *_clusters(user), *_servers(user)]
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


def _item(
    title: str, href: str, effect: str, code: str, since: datetime, tone: ui.Tone = "bad"
) -> tuple[datetime, ui.QueueItem]:
    known = reason(code)
    age = durations.words((timezone.now() - since).total_seconds())
    link = ui.Link(WORDS[known.action], href)
    return since, ui.QueueItem(title, href, f"{effect} {known.next}", code, age, tone, link)


def _claims(user: User) -> Iterable[tuple[datetime, ui.QueueItem]]:
    rows = visible(user, NodeClaim.objects.filter(state="failed"))
    for claim in rows.select_related("tenant", "server", "cluster").order_by("id")[:MOST]:
        held = f"{claim.server} is held" if claim.server else "No server is held"
        effect = f"{held}; cluster {claim.cluster} lacks a node."
        told = claim.problem or reason(claim.code).sentence
        yield _item(
            f"{claim}: {_short(told)}",
            claim.get_absolute_url(),
            effect,
            claim.code,
            claim.state_since,
        )


def _releases(user: User) -> Iterable[tuple[datetime, ui.QueueItem]]:
    rows = Operation.objects.filter(kind="release", state="failed", claim__state="releasing")
    for operation in visible(user, rows).select_related("claim__tenant", "server")[:MOST]:
        claim = operation.claim
        assert claim is not None
        effect = f"Nobody gets {operation.server} before it is wiped and checked."
        told = operation.problem or reason(operation.code).sentence
        yield _item(
            f"{claim} does not get home: {_short(told)}",
            claim.get_absolute_url(),
            effect,
            operation.code,
            operation.ended or claim.state_since,
        )


def _waiting(user: User) -> Iterable[tuple[datetime, ui.QueueItem]]:
    """Steps past a deadline that alarms: they go on waiting, and somebody should know."""
    late = Step.objects.filter(current=True).filter(Q(alarmed=True) | Q(deadline__lt=Now()))
    steps = {step.owner_uid: step for step in late.order_by("deadline")[:100]}
    rows = visible(user, Operation.objects.filter(uid__in=steps, claim__isnull=False))
    for operation in rows.select_related("claim__tenant", "claim__node_type")[:MOST]:
        claim, step = operation.claim, steps[operation.uid]
        assert claim is not None
        yield _item(
            f"{claim} waits longer than usual in {step.name.capitalize()}",
            claim.get_absolute_url(),
            f"One {claim.node_type} is missing; the claim keeps its place.",
            step.code or "STEP_TIMEOUT",
            step.started or claim.created,
            "warn",
        )
    for cluster in visible(user, TenantCluster.objects.filter(uid__in=steps)):
        step = steps[cluster.uid]
        yield _item(
            f"Cluster {cluster} waits longer than usual in {step.name}",
            cluster.get_absolute_url(),
            "It goes on by itself.",
            step.code or "STEP_TIMEOUT",
            step.started or cluster.created,
            "warn",
        )


def _clusters(user: User) -> Iterable[tuple[datetime, ui.QueueItem]]:
    rows = visible(user, TenantCluster.objects.filter(state="failed")).select_related("tenant")
    for cluster in rows.order_by("id")[:MOST]:
        told = cluster.problem or reason(cluster.code).sentence
        yield _item(
            f"Cluster {cluster}: {_short(told)}",
            cluster.get_absolute_url(),
            "Its nodes that are ready are not touched.",
            cluster.code,
            cluster.state_since,
        )


def _servers(user: User) -> Iterable[tuple[datetime, ui.QueueItem]]:
    """Failed ones that no claim speaks for, quarantined ones, and those whose BMC is silent."""
    rows = visible(user, Server.objects.exclude(state="retired")).order_by("id")
    speaking = Q(claims__state="failed") | Q(claims__state="releasing")
    for server in rows.filter(state="failed").exclude(speaking)[:MOST]:
        told = server.problem or reason(server.code).sentence
        title = f"{server}: {_short(told)}"
        effect = "Nothing selects it."
        yield _item(title, server.get_absolute_url(), effect, server.code, server.state_since)
    for server in rows.filter(quarantined=True)[:MOST]:
        title = f"{server} is quarantined: {server.quarantine_reason}"
        since, item = _item(title, server.get_absolute_url(), "", "WIPE_FAILED", server.state_since)
        link = ui.Link("Look at the server", server.get_absolute_url())
        effect = "Nothing selects it until a person lifts the quarantine."
        yield since, ui.QueueItem(item.title, item.href, effect, "", item.age, "bad", link)
    silent = rows.exclude(power_problem="").exclude(state="failed").filter(quarantined=False)
    for server in silent[:MOST]:
        effect = "Its power counts as unknown, not as off."
        title = f"{server} does not answer on its BMC"
        since = server.power_at or server.created
        yield _item(title, server.get_absolute_url(), effect, "BMC_UNREACHABLE", since, "warn")


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}…"
