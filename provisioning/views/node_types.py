"""Pages of node types: list with meters, detail, form with the live count of matching servers."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from gpucloud import policy, refusals, ui
from gpucloud.listing import Column, Filter, Listing
from gpucloud.live import ViewClass
from gpucloud.pages import page
from gpucloud.problems import Problem
from inventory.forms import LabelsField
from inventory.models import Server
from provisioning.forms import NodeTypeForm
from provisioning.models import NodeProvider, NodeType
from provisioning.services import node_types as services
from provisioning.services.providers import matching, servers_of
from provisioning.showing import claims as showing
from provisioning.showing.types import hardware, measure

COLUMNS: Final = (
    Column("name", "Node type", ("full_name",)),
    Column("hardware", "Promises"),
    Column("meter", "One notch is one server"),
    Column("claimed", "Claimed", number=True),
    Column("available", "Available", number=True),
    Column("out", "Out", number=True),
    Column("waiting", "Waiting", number=True),
    Column("total", "Total", number=True),
)
SKU_NAMES: Final = {"sku.gpu_count": "gpu_count", "sku.gpu_model": "gpu_model"}
MATCHES_SHOWN: Final = 20


def _providers() -> list[tuple[str, str]]:
    return [(name, name) for name in NodeProvider.objects.values_list("name", flat=True)]


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = policy.visible(request.user, NodeType.objects.select_related("provider__connection"))
    listing: Listing[NodeType] = Listing(
        request.GET,
        rows,
        name="node types",
        search=("full_name", "display_name"),
        columns=COLUMNS,
        filters=[Filter("provider", "Provider", _providers, "provider__name")],
    )
    listing.page.object_list = measure(listing.page.object_list)
    for one in listing.page:
        one.promises = hardware(one)  # type: ignore[attr-defined]
    new = ui.Link("Add node type", "/node-types/new/", "primary", "plus")
    links = [new] if policy.may(request.user, "create", NodeType) else []
    found = {"listing": listing, "actions": links, "new": links[0].label if links else ""}
    template = "provisioning/type/list.html"
    return page(request, template, found, {"types": "provisioning/type/listing.html"})


def find(request: HttpRequest, name: str) -> NodeType:
    rows = NodeType.objects.select_related("provider__connection", "image")
    return get_object_or_404(policy.visible(request.user, rows), full_name=name)


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    node_type = find(request, name)
    measure([node_type])
    staff = policy.sees_platform(request.user)
    claims = showing.claims(request.user).filter(node_type=node_type).exclude(state="gone")
    links = []
    if policy.may(request.user, "change", node_type):
        links = [ui.Link("Edit", f"{node_type.get_absolute_url()}edit/", "primary", "edit")]
    found = {
        "node_type": node_type,
        "actions": links,
        "staff": staff,
        "facts": _facts(node_type, staff),
        "servers": servers_of(node_type) if staff else [],
        "claims": showing.summarise(claims[:100]),
        "view": ViewClass.of(request.user),  # type: ignore[arg-type]
    }
    return render(request, "provisioning/type/detail.html", found)


def _facts(node_type: NodeType, staff: bool) -> list[ui.Fact]:
    provider, image = node_type.provider, node_type.image
    selector = ", ".join(f"{k}={v}" for k, v in sorted(node_type.selector.items()))
    found = [
        ui.Fact("Provider", provider, href=provider.get_absolute_url() if staff else ""),
        ui.Fact("Name for people", node_type.display_name),
        ui.Fact("Promises", hardware(node_type), "compared in Verify with the last inspection"),
        ui.Fact("Server labels", selector or "any"),
        ui.Fact("NIC plan", ", ".join(node_type.nic_plan) or "every port", "moved all or none"),
        ui.Fact("OS image", image or "", href=image.get_absolute_url() if image else ""),
        ui.Fact("Evidence of wipes", node_type.wipe_policy),
        ui.Fact("Longest POST", f"{node_type.post_seconds} s"),
        ui.Fact("UID", str(node_type.uid), copy=True),
    ]
    return found if staff else [f for f in found if f.label not in ("Longest POST",)]


@login_required
@require_GET
def matches(request: HttpRequest) -> HttpResponse:
    """How many servers a type with these labels would have, for the form as it is typed."""
    refusals.require(request.user, "create", NodeType)
    return render(request, "provisioning/type/_matches.html", {"matches": _matches(request.GET)})


def _matches(sent: Any, node_type: NodeType | None = None) -> dict[str, Any]:
    provider = node_type.provider if node_type else None
    provider = provider or NodeProvider.objects.filter(name=sent.get("provider")).first()
    if provider is None:
        return {"problem": "Choose a provider to see how many servers match."}
    try:
        selector = LabelsField(required=False).clean(sent.get("selector", ""))
    except forms.ValidationError as error:
        return {"problem": " ".join(error.messages)}
    servers = matching(provider, selector)
    usable = set(Server.objects.usable().values_list("pk", flat=True))
    return {
        "provider": provider,
        "count": len(servers),
        "usable": sum(server.pk in usable for server in servers),
        "names": [server.name for server in servers[:MATCHES_SHOWN]],
        "more": max(0, len(servers) - MATCHES_SHOWN),
    }


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    refusals.require(request.user, "create", NodeType)
    asked = {key: value for key, value in request.GET.items() if key in ("provider", "selector")}
    form = NodeTypeForm(request.POST or None, initial=asked)
    count = request.POST.get("do") == "count"
    if request.method == "GET" or count or not form.is_valid():
        return _form(request, form)
    try:
        actor, data = request.user.get_username(), form.cleaned_data
        node_type = services.create(actor, data["provider"], data["name"], **form.wish)
    except Problem as problem:
        refusals.beside_fields(form, problem, SKU_NAMES)
        return _form(request, form)
    messages.success(request, f"Node type {node_type} was added")
    return redirect(node_type.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    node_type = find(request, name)
    refusals.require(request.user, "change", node_type)
    form = NodeTypeForm(request.POST or None, node_type=node_type)
    count = request.POST.get("do") == "count"
    if request.method == "GET" or count or not form.is_valid():
        return _form(request, form, node_type)
    try:
        services.update(node_type, request.user.get_username(), **form.wish)
    except Problem as problem:
        refusals.beside_fields(form, problem, SKU_NAMES)
        return _form(request, form, node_type)
    messages.success(request, f"Node type {node_type} was changed")
    return redirect(node_type.get_absolute_url())


def _form(
    request: HttpRequest, form: NodeTypeForm, node_type: NodeType | None = None
) -> HttpResponse:
    """The form, and beside it how many servers match what stands in it."""
    sent: Any = request.POST
    if not form.is_bound:
        first = NodeProvider.objects.order_by("name").first()
        sent = {"provider": str(form.initial.get("provider") or first or "")}
        sent["selector"] = form["selector"].value() or ""
    if request.POST.get("do") == "count":
        form.is_valid()
        form._errors = forms.utils.ErrorDict()  # type: ignore[attr-defined]
    found: dict[str, Any] = {
        "form": form,
        "hidden": [("provider", node_type.provider.name)] if node_type else [],
        "title": f"Edit {node_type}" if node_type else "Add node type",
        "lede": "An orderable shape of one provider. Claims that were made keep what they have.",
        "section": ("Node types", "/node-types/"),
        "parent": node_type,
        "back": node_type.get_absolute_url() if node_type else "/node-types/",
        "verb": "Save node type" if node_type else "Add node type",
        "matches": _matches(sent, node_type),
        "aside": "provisioning/type/_matches.html",
    }
    return render(request, "ui/form_page.html", found, status=422 if form.errors else 200)
