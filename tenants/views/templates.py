"""Pages of cluster templates: list and detail."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gpucloud import policy, ui
from gpucloud.listing import Column, Listing
from gpucloud.pages import page
from tenants.models import ClusterTemplate, TenantCluster
from tenants.views.clusters import as_yaml, may_create

COLUMNS: Final = (
    Column("title", "Template", ("title",)),
    Column("version", "Version", ("version",), number=True),
    Column("chart", "Chart", ("chart_version",)),
    Column("parameters", "Parameters"),
    Column("plane", "Control plane", ("control_plane__name",)),
)


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = policy.visible(request.user, ClusterTemplate.objects.filter(latest=True))
    listing: Listing[ClusterTemplate] = Listing(
        request.GET,
        rows.select_related("control_plane"),
        name="templates",
        search=("name", "title"),
        columns=COLUMNS,
    )
    template = "tenants/template/list.html"
    found = {"listing": listing}
    return page(request, template, found, {"templates": "tenants/template/listing.html"})


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """The version that `?version=` names, else the latest."""
    rows = policy.visible(request.user, ClusterTemplate.objects.filter(name=name))
    versions = list(rows.select_related("control_plane"))
    asked = request.GET.get("version", "")
    template = next((t for t in versions if str(t.version) == asked), None)
    template = template or next((t for t in versions if t.latest), None)
    if template is None:
        raise Http404
    mine = policy.visible(request.user, TenantCluster.objects.live())
    found = {
        "template": template,
        "versions": versions,
        "yaml": as_yaml(template.body),
        "facts": _facts(template, policy.sees_platform(request.user)),
        "clusters": mine.filter(template__name=name).select_related("tenant", "template"),
        "actions": _actions(request.user, template),
    }
    return render(request, "tenants/template/detail.html", found)


def _facts(template: ClusterTemplate, staff: bool) -> list[ui.Fact]:
    found = [
        ui.Fact("Name", template.name, "as REST knows it"),
        ui.Fact("Version", template.version, "latest" if template.latest else "not the latest"),
        ui.Fact("Chart", template.chart_version),
        ui.Fact("UID", str(template.uid), copy=True),
    ]
    if staff:
        driver = template.control_plane.driver
        found.insert(3, ui.Fact("Control plane", template.control_plane, f"driver {driver}"))
    return found


def _actions(user: Any, template: ClusterTemplate) -> list[ui.Link]:
    if not template.latest or not may_create(user):
        return []
    return [
        ui.Link("Create cluster", f"/clusters/new/?template={template.name}", "primary", "plus")
    ]
