"""Pages of node providers: list, detail with a check of the connection, and the form."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from gpucloud import driver_forms, driver_settings, policy, refusals, ui
from gpucloud.drivers import driver_class
from gpucloud.listing import Column, Filter, Listing
from gpucloud.pages import page
from gpucloud.problems import Problem
from provisioning.forms import ProviderForm, config_names
from provisioning.models import NodeProvider
from provisioning.services import providers as services
from provisioning.showing.types import measure

COLUMNS: Final = (
    Column("name", "Provider", ("name",)),
    Column("driver", "Driver", ("driver", "name")),
    Column("connection", "Connection", ("connection__name",)),
    Column("types", "Node types", ("types",), number=True),
    Column("checked", "Checked", ("checked",)),
)


def _drivers() -> list[tuple[str, str]]:
    return driver_forms.kinds("provider")


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    refusals.platform_only(request.user)
    rows = policy.visible(request.user, NodeProvider.objects.select_related("connection"))
    listing: Listing[NodeProvider] = Listing(
        request.GET,
        rows.annotate(types=Count("node_types")),
        name="providers",
        search=("name", "display_name"),
        columns=COLUMNS,
        filters=[Filter("driver", "Driver", _drivers)],
    )
    new = ui.Link("Add provider", "/providers/new/", "primary", "plus")
    links = [new] if policy.may(request.user, "create", NodeProvider) else []
    found = {"listing": listing, "actions": links}
    template = "provisioning/provider/list.html"
    return page(request, template, found, {"providers": "provisioning/provider/listing.html"})


def find(request: HttpRequest, name: str) -> NodeProvider:
    rows = policy.visible(request.user, NodeProvider.objects.select_related("connection"))
    return get_object_or_404(rows, name=name)


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    provider = find(request, name)
    types = measure(provider.node_types.select_related("provider", "image"))
    at = provider.get_absolute_url()
    links = []
    if policy.may(request.user, "change", provider):
        links = [
            ui.Link("Edit", f"{at}edit/", "", "edit"),
            ui.Link("Check connection", f"{at}check/", "primary", "refresh", "post"),
        ]
    found = {
        "provider": provider,
        "actions": links,
        "facts": _facts(provider),
        "settings": _settings(provider),
        "types": types,
        "servers": len(services.of_provider(provider)),
        "may_add": policy.may(request.user, "change", provider),
    }
    return render(request, "provisioning/provider/detail.html", found)


def _facts(provider: NodeProvider) -> list[ui.Fact]:
    labels = dict(_drivers())
    kind = driver_class("provider", provider.driver) if provider.driver in labels else None
    physical = "servers of ours" if kind and kind.physical else "virtual nodes"
    return [
        ui.Fact("Driver", labels.get(provider.driver, provider.driver), physical if kind else ""),
        ui.Fact("Connection", provider.connection or ""),
        ui.Fact("Evidence of wipes", kind.wipe_class if kind else ""),
        ui.Fact("UID", str(provider.uid), copy=True),
    ]


def _settings(provider: NodeProvider) -> list[ui.Fact]:
    """The driver's settings by their labels; secrets only as stored or not."""
    if provider.driver not in dict(_drivers()):
        return []
    config = driver_class("provider", provider.driver).Config
    shown = driver_settings.shown("provider", provider.driver, provider.config)
    known = config.__dataclass_fields__
    found = [ui.Fact(known[n].metadata["label"], v) for n, v in shown.items() if n in known]
    return found + [
        ui.Fact(known[n].metadata["label"], "write-only", "kept encrypted, shown to nobody")
        for n in config.secret_names()
    ]


@login_required
@require_POST
def check(request: HttpRequest, name: str) -> HttpResponse:
    """Test the connection now; what was found is kept and shown on the page."""
    provider = find(request, name)
    refusals.require(request.user, "check", provider)
    problems = services.check(provider)
    if problems:
        messages.error(request, f"The check of {provider} found {len(problems)} problems")
    else:
        messages.success(request, f"{provider} answers and may do what it needs")
    return redirect(provider.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """First which driver, then the fields that it asks for."""
    refusals.require(request.user, "create", NodeProvider)
    driver = request.POST.get("driver") or request.GET.get("driver", "")
    if driver not in dict(_drivers()):
        found = {"drivers": _drivers(), "unknown": driver}
        return render(request, "provisioning/provider/driver.html", found)
    form = ProviderForm(request.POST or None, driver=driver)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form, driver)
    try:
        actor, name = request.user.get_username(), form.cleaned_data["name"]
        provider = services.create(actor, name, driver, **form.wish)
    except Problem as problem:
        refusals.beside_fields(form, problem, config_names(driver))
        return _form(request, form, driver)
    messages.success(request, f"Provider {provider} was added")
    return redirect(provider.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    provider = find(request, name)
    refusals.require(request.user, "change", provider)
    form = ProviderForm(request.POST or None, driver=provider.driver, provider=provider)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form, provider.driver, provider)
    try:
        services.update(provider, request.user.get_username(), **form.wish)
    except Problem as problem:
        refusals.beside_fields(form, problem, config_names(provider.driver))
        return _form(request, form, provider.driver, provider)
    messages.success(request, f"Provider {provider} was changed")
    return redirect(provider.get_absolute_url())


def _form(
    request: HttpRequest, form: ProviderForm, driver: str, provider: NodeProvider | None = None
) -> HttpResponse:
    found: dict[str, Any] = {
        "form": form,
        "hidden": [("driver", driver)],
        "title": f"Edit {provider}" if provider else "Add provider",
        "lede": f"Driver {dict(_drivers())[driver]}. Its settings are the fields below.",
        "section": ("Providers", "/providers/"),
        "parent": provider,
        "back": provider.get_absolute_url() if provider else "/providers/new/",
        "verb": "Save provider" if provider else "Add provider",
    }
    return render(request, "ui/form_page.html", found, status=422 if form.errors else 200)
