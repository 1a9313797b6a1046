"""Pages of clusters: the list, the page of one, its pools, kubeconfig, YAML, retry and deletion."""

from __future__ import annotations

from typing import Any, Final

import yaml
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from gpucloud import policy, refusals, ui
from gpucloud.drivers import DriverError
from gpucloud.listing import Column, Filter, Listing
from gpucloud.live import ViewClass
from gpucloud.pages import page
from gpucloud.problems import Problem
from tenants.forms import SizeForm
from tenants.models import ClusterTemplate, NodePool, Tenant, TenantCluster
from tenants.services import access
from tenants.services import clusters as services
from tenants.showing import clusters as showing
from tenants.showing.deletion import items
from tenants.templates import render_values

COLUMNS: Final = (
    Column("name", "Cluster", ("name",)),
    Column("state", "State", ("state", "state_since")),
    Column("nodes", "Nodes ready"),
    Column("pools", "Pools"),
    Column("segment", "Segment", ("segment__name",)),
    Column("template", "Template", ("template__title", "template__version")),
    Column("reason", "Reason", ("code",)),
    Column("age", "Age", ("-created",), number=True),
)


CONSEQUENCE: Final = (
    "In this order: nodes are drained, powered off, returned and wiped; then the control plane and "
    "its data go; the network last. This cannot be undone."
)


def _filters(user: Any) -> list[Filter]:
    def tenants() -> list[tuple[str, str]]:
        rows = policy.visible(user, Tenant.objects.all())
        return [(name, name) for name in rows.values_list("name", flat=True)]

    def templates() -> list[tuple[str, str]]:
        rows = ClusterTemplate.objects.filter(latest=True)
        return [(str(name), str(title)) for name, title in rows.values_list("name", "title")]

    return [
        Filter("state", "State", TenantCluster.State.choices, "state"),
        Filter("tenant", "Tenant", tenants, "tenant__name"),
        Filter("template", "Template", templates, "template__name"),
    ]


def may_create(user: Any) -> list[Tenant]:
    """The tenants for which this person may create clusters."""
    rows = policy.visible(user, Tenant.objects.filter(builtin=False))
    return [tenant for tenant in rows if policy.may(user, "create cluster", tenant)]


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = showing.clusters(request.user)
    if "gone" not in request.GET.getlist("state"):
        rows = rows.live()  # type: ignore[attr-defined]
    listing: Listing[TenantCluster] = Listing(
        request.GET,
        rows,
        name="clusters",
        search=("name", "client_endpoint", "segment__name"),
        columns=COLUMNS,
        filters=_filters(request.user),
        topic="cluster-row",
    )
    listing.page.object_list = showing.summarise(listing.page.object_list)
    new = ui.Link("Create cluster", "/clusters/new/", "primary", "plus")
    links = [new] if may_create(request.user) else []
    found = {"listing": listing, "actions": links, "view": _view(request)}
    found["create_words"] = "Create cluster" if links else ""
    template = "tenants/cluster/list.html"
    return page(request, template, found, {"clusters": "tenants/cluster/listing.html"})


def _view(request: HttpRequest) -> ViewClass:
    return ViewClass.of(request.user)  # type: ignore[arg-type]


def find(request: HttpRequest, tenant: str, name: str) -> TenantCluster:
    """The live cluster of this name, or the one that `?uid=` names, or the last that went."""
    rows = showing.clusters(request.user).filter(tenant__name=tenant, name=name)
    if uid := request.GET.get("uid"):
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


def show(request: HttpRequest, cluster: TenantCluster) -> HttpResponse:
    """The page of this very row, which the cluster's address may no longer lead to."""
    return _page(request, showing.clusters(request.user).get(pk=cluster.pk))


def _page(
    request: HttpRequest,
    cluster: TenantCluster,
    refusal: refusals.Refusal | None = None,
    form: SizeForm | None = None,
) -> HttpResponse:
    """The page; with a refusal above it, or with a pool's form as it was sent."""
    found = showing.context(cluster, _view(request))
    found["actions"] = showing.actions(request.user, cluster)  # type: ignore[arg-type]
    found["notices"] = [refusals.notice(refusal)] if refusal else []
    found["live"] = [f"cluster:{cluster.uid}"]
    if not cluster.deleting and policy.may(request.user, "change", cluster):
        sent = {form.pool.pk: form} if form is not None else {}
        pools = [p for p in cluster.pools.all() if p.kind == NodePool.Kind.STATIC]
        found["sizes"] = [(pool, sent.get(pool.pk) or SizeForm(pool=pool)) for pool in pools]
    status = refusals.status(refusal) if refusal else 422 if form is not None else 200
    return render(request, "tenants/cluster/detail.html", found, status=status)


@login_required
@require_GET
def buttons(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The buttons alone, which the page reads again when the cluster's state has changed."""
    cluster = find(request, tenant, name)
    links = showing.actions(request.user, cluster)  # type: ignore[arg-type]
    return render(request, "tenants/cluster/actions.html", {"actions": links})


@login_required
@require_GET
def document(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """vcluster.yaml as it is given to the control plane."""
    cluster = find(request, tenant, name)
    text = as_yaml(render_values(cluster, access.segment_facts(cluster)))
    return render(request, "tenants/cluster/yaml.html", {"cluster": cluster, "yaml": text})


def as_yaml(values: Any) -> str:
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return text


@login_required
@require_POST
def kubeconfig(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The kubeconfig as a file; who took it is history."""
    cluster = find(request, tenant, name)
    refusals.require(request.user, "kubeconfig", cluster)
    try:
        found = access.client_kubeconfig(cluster, request.user.get_username())
    except (Problem, DriverError) as refusal:
        return _page(request, cluster, refusal)
    answer = HttpResponse(as_yaml(found), content_type="application/yaml")
    answer["Content-Disposition"] = f'attachment; filename="{cluster.name}.kubeconfig.yaml"'
    answer["Cache-Control"] = "no-store"
    return answer


@login_required
@require_POST
def resize(request: HttpRequest, tenant: str, name: str, pool: str) -> HttpResponse:
    cluster = find(request, tenant, name)
    row = next((one for one in cluster.pools.all() if one.name == pool), None)
    if row is None:
        raise Http404
    refusals.require(request.user, "change", cluster)
    form = SizeForm(request.POST, pool=row)
    if not form.is_valid():
        return _page(request, cluster, form=form)
    try:
        services.resize_pool(row, form.cleaned_data["quantity"], request.user.get_username())
    except Problem as problem:
        refusals.beside_fields(form, problem, {})
        return _page(request, cluster, form=form)
    messages.success(request, f"Pool {row} of {cluster} wants {form.cleaned_data['quantity']}")
    return redirect(cluster.get_absolute_url())


@login_required
@require_POST
def retry(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    cluster = find(request, tenant, name)
    refusals.require(request.user, "retry", cluster)
    try:
        services.retry(cluster, request.user.get_username())
    except Problem as problem:
        return _page(request, find(request, tenant, name), problem)
    messages.success(request, f"{cluster} is tried again")
    return redirect(cluster.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Ask for the name, then begin the deletion."""
    cluster = find(request, tenant, name)
    refusals.require(request.user, "delete", cluster)
    if request.method == "GET":
        return _ask(request, cluster)
    typed = request.POST.get("confirm", "")
    if typed != cluster.name:
        return _ask(request, cluster, typed=typed, error=f"That is not {cluster.name}.")
    try:
        services.delete_cluster(cluster, request.user.get_username())
    except Problem as problem:
        return _ask(request, find(request, tenant, name), refusal=problem)
    messages.success(request, f"{cluster} is being deleted")
    return redirect(cluster.get_absolute_url())


def _ask(
    request: HttpRequest,
    cluster: TenantCluster,
    *,
    typed: str = "",
    error: str = "",
    refusal: Problem | None = None,
) -> HttpResponse:
    found = {
        **{"section": ("Clusters", "/clusters/"), "parent": cluster, "heading": "Delete cluster"},
        "title": f"Delete cluster {cluster}?",
        "text": CONSEQUENCE,
        "items": items(cluster),
        "type_name": cluster.name,
        "typed": typed,
        "error": error,
        "verb": "Delete cluster",
        "keep": "Keep cluster",
        "action": f"{cluster.get_absolute_url()}delete/",
        "back": cluster.get_absolute_url(),
        "notices": [refusals.notice(refusal)] if refusal else [],
    }
    status = refusals.status(refusal) if refusal else (422 if error else 200)
    return render(request, "ui/confirm_page.html", found, status=status)
