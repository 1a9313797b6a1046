"""The list of servers and the page of one."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from gpucloud.listing import Column, Filter, Listing
from gpucloud.pages import page
from gpucloud.policy import may, sees_platform, visible
from inventory import showing
from inventory.actions import offers
from inventory.models import Rack, Server
from provisioning.models import NodeProvider
from provisioning.services.providers import of_provider

COLUMNS: Final = [
    Column("name", "Name", ("name",)),
    Column("state", "State", ("state", "name")),
    Column("power", "Power", ("power", "name")),
    Column("hardware", "Hardware"),
    Column("claim", "Claim"),
    Column("tenant", "Tenant"),
    Column("rack", "Rack", ("rack__site__name", "rack__name", "slot")),
    Column("segment", "Network segment"),
    Column("read", "Power read", ("-power_at",), number=True),
]
FLAGS: Final = {
    "maintenance": ("In maintenance", Q(maintenance=True)),
    "quarantined": ("Quarantined", Q(quarantined=True)),
    "not-clean": ("Not clean", ~Q(clean_tenancy=showing.TENANCY) | Q(clean_tenancy=None)),
    "silent": ("BMC silent", ~Q(power_problem="")),
}


def _roles() -> list[tuple[str, str]]:
    found = Server.objects.exclude(state="retired").values_list("labels__role", flat=True)
    return [(str(role), str(role)) for role in sorted({role for role in found if role})]


def _racks() -> list[tuple[str, str]]:
    return [(str(rack.pk), rack.name) for rack in Rack.objects.order_by("site__name", "name")]


def _providers() -> list[tuple[str, str]]:
    return [(one.name, one.name) for one in NodeProvider.objects.all()]


def _of_providers(names: list[str]) -> Q:
    rows = NodeProvider.objects.filter(name__in=names)
    return Q(pk__in=[server.pk for one in rows for server in of_provider(one)])


def _flagged(names: list[str]) -> Q:
    found = Q()
    for name in names:
        found |= FLAGS[name][1]
    return found


FILTERS: Final = [
    Filter("state", "State", Server.State.choices),
    Filter("power", "Power", Server.Power.choices),
    Filter("role", "Role", _roles, "labels__role"),
    Filter("rack", "Rack", _racks, "rack"),
    Filter("provider", "Provider", _providers, _of_providers),
    Filter("flag", "Flag", [(key, words) for key, (words, _) in FLAGS.items()], _flagged),
]


def _listing(request: HttpRequest) -> Listing[Server]:
    rows = showing.fleet(request.user)
    if "retired" not in request.GET.getlist("state"):
        rows = rows.exclude(state=Server.State.RETIRED)
    listing: Listing[Server] = Listing(
        request.GET,
        rows,
        name="servers",
        search=("name", "serial", "system_uuid", "interfaces__mac"),
        columns=COLUMNS,
        filters=FILTERS,
        topic="server-row",
    )
    if listing.q:
        # A server has several ports, and is one row whatever number of them a word hits.
        listing.matching = listing.matching.distinct()
    listing.page.object_list = showing.summarise(listing.page.object_list)
    return listing


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """Every server: search, filters and pages come from the URL. Tenants have no such page."""
    if not sees_platform(request.user):
        raise Http404
    context = {
        "listing": _listing(request),
        "figures": showing.capacity(request.user),
        "may_register": may(request.user, "create", Server),
    }
    fragments = {"servers": "inventory/_servers.html", "server-figures": "inventory/_figures.html"}
    return page(request, "inventory/servers.html", context, fragments)


def one(request: HttpRequest, name: str) -> Server:
    """The server of this name that is not retired, or 404 alike for foreign and absent."""
    rows = visible(request.user, Server.objects.exclude(state=Server.State.RETIRED))
    return get_object_or_404(rows, name=name)


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    return show(request, one(request, name))


def show(request: HttpRequest, server: Server) -> HttpResponse:
    """The page of this very row, also of a retired one."""
    whole = showing.whole(request.user, server.uid)
    assert whole is not None
    context: dict[str, Any] = {
        **showing.detail(whole),
        "object": whole,
        "offers": offers(request.user, whole),  # type: ignore[arg-type]
        "live": [f"server:{server.uid}"],
    }
    return page(request, "inventory/server.html", context)


@login_required
@require_GET
def actions(request: HttpRequest, name: str) -> HttpResponse:
    """The buttons of the page again, when what they depend on has changed."""
    server = one(request, name)
    context = {"object": server, "offers": offers(request.user, server)}  # type: ignore[arg-type]
    fragments = {"server-head-actions": "inventory/_head_actions.html"}
    return page(request, "inventory/_actions.html", context, fragments)
