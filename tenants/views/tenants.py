"""Pages of tenants: list, detail with quota, members, clusters and segments, and the form."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from gpucloud import policy, refusals, ui
from gpucloud.listing import Column, Listing
from gpucloud.live import ViewClass
from gpucloud.pages import page
from gpucloud.problems import Problem
from provisioning.services.claims import quota_used
from tenants.forms import TenantForm
from tenants.models import Tenant
from tenants.services import tenants as services
from tenants.showing import clusters as showing
from tenants.showing.quota import meters

COLUMNS: Final = (
    Column("name", "Tenant", ("name",)),
    Column("clusters", "Clusters", ("live_clusters",), number=True),
    Column("servers", "Servers held", ("live_claims",), number=True),
    Column("limit", "Servers at most", number=True),
    Column("gpus", "GPUs at most", number=True),
    Column("members", "Members", ("people",), number=True),
)
NAMES: Final = {"quota.servers": "servers", "quota.gpus": "gpus"}


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = policy.visible(request.user, Tenant.objects.all()).annotate(
        live_clusters=Count("clusters", filter=~Q(clusters__state="gone"), distinct=True),
        live_claims=Count("claims", filter=~Q(claims__state="gone"), distinct=True),
        people=Count("memberships", distinct=True),
    )
    listing: Listing[Tenant] = Listing(
        request.GET, rows, name="tenants", search=("name", "display_name"), columns=COLUMNS
    )
    new = ui.Link("Add tenant", "/tenants/new/", "primary", "plus")
    links = [new] if policy.may(request.user, "create", Tenant) else []
    found = {"listing": listing, "actions": links, "new": links[0].label if links else ""}
    template = "tenants/tenant/list.html"
    return page(request, template, found, {"tenants": "tenants/tenant/listing.html"})


def find(request: HttpRequest, name: str) -> Tenant:
    return get_object_or_404(policy.visible(request.user, Tenant.objects.all()), name=name)


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    tenant = find(request, name)
    rows = showing.clusters(request.user).filter(tenant=tenant).exclude(state="gone")
    found = {
        "tenant": tenant,
        "quota": meters(quota_used(tenant)),
        "members": tenant.memberships.select_related("user").order_by("user__username"),
        "clusters": showing.summarise(rows),
        "segments": tenant.segments.exclude(state="gone").select_related("fabric"),
        "facts": _facts(tenant),
        "actions": _actions(request.user, tenant),
        "view": ViewClass.of(request.user),  # type: ignore[arg-type]
    }
    return render(request, "tenants/tenant/detail.html", found)


def _facts(tenant: Tenant) -> list[ui.Fact]:
    return [
        ui.Fact("Name for people", tenant.display_name),
        ui.Fact("Project namespace", tenant.namespace),
        ui.Fact("UID", str(tenant.uid), copy=True),
    ]


def _actions(user: Any, tenant: Tenant) -> list[ui.Link]:
    found = []
    if policy.may(user, "change", tenant) and not tenant.builtin:
        found.append(ui.Link("Edit", f"{tenant.get_absolute_url()}edit/", "", "edit"))
    if policy.may(user, "create cluster", tenant) and not tenant.builtin:
        at = f"/clusters/new/?tenant={tenant.name}"
        found.append(ui.Link("Create cluster", at, "primary", "plus"))
    return found


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    refusals.require(request.user, "create", Tenant)
    form = TenantForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form)
    data = form.cleaned_data
    fields = {key: data[key] for key in ("display_name", "project_namespace")}
    try:
        actor = request.user.get_username()
        tenant = services.create(actor, data["name"], quota=form.quota, **fields)
    except Problem as problem:
        refusals.beside_fields(form, problem, NAMES)
        return _form(request, form)
    messages.success(request, f"Tenant {tenant} was added")
    return redirect(tenant.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    tenant = find(request, name)
    refusals.require(request.user, "change", tenant)
    form = TenantForm(request.POST or None, tenant=tenant)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form, tenant)
    try:
        wish = {"display_name": form.cleaned_data["display_name"], "quota": form.quota}
        services.update(tenant, request.user.get_username(), **wish)
    except Problem as problem:
        refusals.beside_fields(form, problem, NAMES)
        return _form(request, form, tenant)
    messages.success(request, f"Tenant {tenant} was changed")
    return redirect(tenant.get_absolute_url())


def _form(request: HttpRequest, form: TenantForm, tenant: Tenant | None = None) -> HttpResponse:
    found: dict[str, Any] = {
        "form": form,
        "title": f"Edit {tenant}" if tenant else "Add tenant",
        "lede": "A quota below what is held takes nothing away: it stops only what comes.",
        "section": ("Tenants", "/tenants/"),
        "parent": tenant,
        "back": tenant.get_absolute_url() if tenant else "/tenants/",
        "verb": "Save tenant" if tenant else "Add tenant",
    }
    return render(request, "ui/form_page.html", found, status=422 if form.errors else 200)
