"""Pages of claims: the list, the page of one, its selection, retry and release."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from gpucloud import policy, refusals
from gpucloud.listing import Column, Filter, Listing
from gpucloud.live import ViewClass
from gpucloud.pages import page
from gpucloud.problems import Problem
from provisioning.models import NodeClaim, NodeType
from provisioning.services import claims as services
from provisioning.showing import claims as showing
from provisioning.showing.page import context, explanation
from provisioning.showing.trouble import actions
from tenants.models import Tenant, TenantCluster

COLUMNS: Final = (
    Column("name", "Claim", ("name",)),
    Column("state", "State", ("state", "state_since")),
    Column("step", "Steps"),
    Column("type", "Node type", ("node_type__full_name",)),
    Column("server", "Node", ("server__name",)),
    Column("reason", "Reason", ("code",)),
    Column("age", "Age", ("-created",), number=True),
)


def _filters(user: Any) -> list[Filter]:
    def tenants() -> list[tuple[str, str]]:
        rows = policy.visible(user, Tenant.objects.all())
        return [(name, name) for name in rows.values_list("name", flat=True)]

    def clusters() -> list[tuple[str, str]]:
        rows = policy.visible(user, TenantCluster.objects.live()).order_by("name")
        return [(name, name) for name in rows.values_list("name", flat=True).distinct()]

    def types() -> list[tuple[str, str]]:
        return [(name, name) for name in NodeType.objects.values_list("full_name", flat=True)]

    return [
        Filter("state", "State", NodeClaim.State.choices, "state"),
        Filter("tenant", "Tenant", tenants, "tenant__name"),
        Filter("cluster", "Cluster", clusters, "cluster__name"),
        Filter("type", "Node type", types, "node_type__full_name"),
    ]


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = showing.claims(request.user)
    if "gone" not in request.GET.getlist("state"):
        rows = rows.live()  # type: ignore[attr-defined]
    listing: Listing[NodeClaim] = Listing(
        request.GET,
        rows,
        name="claims",
        search=("name", "node_name", "server__name", "tenant_address"),
        columns=COLUMNS,
        filters=_filters(request.user),
        default_sort="age",
        topic="claim-row",
    )
    listing.page.object_list = showing.summarise(listing.page.object_list)
    found = {"listing": listing, "view": _view(request), "request": request}
    template = "provisioning/claim/list.html"
    return page(request, template, found, {"claims": "provisioning/claim/listing.html"})


def _view(request: HttpRequest) -> ViewClass:
    return ViewClass.of(request.user)  # type: ignore[arg-type]


def find(request: HttpRequest, tenant: str, name: str) -> NodeClaim:
    """The live claim of this name, or the one that `?uid=` names, or the last that went."""
    rows: QuerySet[NodeClaim] = showing.claims(request.user).filter(tenant__name=tenant, name=name)
    if uid := request.GET.get("uid") or request.POST.get("uid"):
        found = next((one for one in rows if str(one.uid) == uid), None)
    else:
        found = rows.exclude(state="gone").first() or rows.order_by("-id").first()
    if found is None:
        raise Http404
    return found


@login_required
@require_GET
def detail(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    return _page(request, find(request, tenant, name))


def show(request: HttpRequest, claim: NodeClaim) -> HttpResponse:
    """The page of this very row, which the claim's address may no longer lead to."""
    return _page(request, showing.claims(request.user).get(pk=claim.pk))


def _page(request: HttpRequest, claim: NodeClaim, refusal: Problem | None = None) -> HttpResponse:
    found = context(claim, _view(request))
    found["actions"] = actions(request.user, claim, found["summary"])  # type: ignore[arg-type]
    found["notices"] = [refusals.notice(refusal)] if refusal else []
    found["live"] = [f"claim:{claim.uid}"]
    status = refusals.status(refusal) if refusal else 200
    return render(request, "provisioning/claim/detail.html", found, status=status)


@login_required
@require_GET
def buttons(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The buttons alone, which the page reads again when the claim's state has changed."""
    claim = find(request, tenant, name)
    showing.summarise([claim])
    links = actions(request.user, claim, claim.summary)  # type: ignore[arg-type, attr-defined]
    return render(request, "provisioning/claim/actions.html", {"actions": links})


@login_required
@require_GET
def selection(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    if not policy.sees_platform(request.user):
        raise Http404
    claim = find(request, tenant, name)
    found = {"claim": claim, "selection": explanation(claim.selection)}
    return render(request, "provisioning/claim/selection.html", found)


@login_required
@require_POST
def retry(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    claim = find(request, tenant, name)
    refusals.require(request.user, "retry", claim)
    try:
        services.retry(claim, request.user.get_username())
    except Problem as problem:
        return _page(request, find(request, tenant, name), problem)
    messages.success(request, f"{claim} is tried again")
    return redirect(claim.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def release(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    claim = find(request, tenant, name)
    refusals.require(request.user, "release", claim)
    if request.method == "GET":
        return _ask(request, claim)
    try:
        services.release(claim, request.user.get_username())
    except Problem as problem:
        return _ask(request, find(request, tenant, name), problem)
    messages.success(request, f"{claim} is being released")
    return redirect(claim.get_absolute_url())


def _ask(request: HttpRequest, claim: NodeClaim, refusal: Problem | None = None) -> HttpResponse:
    """The question before a release: what goes, what stays, what it costs."""
    found = {
        "section": ("Claims", "/claims/"),
        "parent": claim,
        "heading": "Release claim",
        "title": f"Release {claim}?",
        "text": _consequence(claim),
        "items": [{"name": str(claim), "note": f"one {claim.node_type}, {_state(claim)}"}],
        "verb": "Release claim",
        "keep": "Keep claim",
        "action": f"{claim.get_absolute_url()}release/",
        "back": claim.get_absolute_url(),
        "notices": [refusals.notice(refusal)] if refusal else [],
    }
    status = refusals.status(refusal) if refusal else 200
    return render(request, "ui/confirm_page.html", found, status=status)


def _consequence(claim: NodeClaim) -> str:
    text = "Nothing is held yet, so the claim just leaves the queue."
    if claim.server is not None:
        text = (
            f"Node {claim.node_name or claim.server} is drained and powered off, its ports go back "
            "to provisioning through quarantine, and every drive is wiped there. "
            "This cannot be undone."
        )
    if claim.pool is not None and claim.state != "gone":
        text += f" Pool {claim.pool} still wants {claim.pool.quantity}, so another claim follows."
    return text


def _state(claim: NodeClaim) -> str:
    return str(claim.get_state_display()).lower()
