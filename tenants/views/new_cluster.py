"""The form of a new cluster: parameters, pools, the rendered YAML and what would be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from gpucloud import refusals
from gpucloud.problems import Problem
from inventory.forms import rows_of
from provisioning.services.node_types import capacities
from tenants import templates
from tenants.forms import MOST_POOLS, PARAMETER, ClusterForm, PoolFormSet
from tenants.models import ClusterTemplate, Tenant, TenantCluster
from tenants.services import clusters as services
from tenants.services.access import segment_facts
from tenants.views.clusters import as_yaml, may_create

WHO_MAY: Final = (
    "Your role does not allow to create a cluster. "
    "It takes: platform admin, platform operator, owner or operator of the tenant."
)
# What a place without a value reads in the preview.
LATER: Final = "given in the network step"


@dataclass
class Draft:
    """What was chosen so far, whether sent or only begun."""

    tenant: Tenant
    template: ClusterTemplate
    form: ClusterForm
    pools: Any

    @property
    def valid(self) -> bool:
        # Both are asked, so that errors of both are shown.
        return all([self.form.is_valid(), self.pools.is_valid()])

    @property
    def wanted(self) -> list[dict[str, Any]]:
        """The pools as the service takes them; blank rows left out."""
        rows = [f.cleaned_data for f in self.pools.forms if not f.blank]
        return [{**row, "kind": "static"} for row in rows]


def draft(request: HttpRequest) -> Draft:
    """The form as the request has it; 403 for people who may create in no tenant."""
    mine = may_create(request.user)
    if not mine:
        raise PermissionDenied(WHO_MAY)
    sent = request.POST if request.method == "POST" else request.GET
    tenant = next((t for t in mine if t.name == sent.get("tenant")), mine[0])
    choices = list(ClusterTemplate.objects.filter(latest=True).select_related("control_plane"))
    if not choices:
        raise PermissionDenied("There is no cluster template yet; a platform admin makes one.")
    template = next((t for t in choices if t.name == sent.get("template")), choices[0])
    kinds: dict[str, Any] = {
        "tenants": mine,
        "tenant": tenant,
        "templates": choices,
        "template": template,
    }
    if request.method == "POST":
        pools = PoolFormSet(request.POST, prefix="pools")
        return Draft(tenant, template, ClusterForm(request.POST, **kinds), pools)
    initial = {"tenant": tenant.name, "template": template.name}
    form = ClusterForm(initial=initial, **kinds)
    return Draft(tenant, template, form, PoolFormSet(prefix="pools"))


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    if request.method == "POST" and request.POST.get("do") == "add":
        request.POST = _one_more(request.POST)  # type: ignore[assignment]
    one = draft(request)
    if request.method == "GET" or request.POST.get("do") in ("add", "preview", "choose"):
        return _page(request, one)
    if not one.valid:
        return _page(request, one, 422)
    try:
        cluster = services.create_cluster(
            request.user.get_username(),
            one.tenant,
            one.form.cleaned_data["name"],
            one.template,
            one.form.given,
            one.wanted,
        )
    except Problem as problem:
        _tell(one, problem)
        return _page(request, one, 422)
    messages.success(request, f"Cluster {cluster} was asked for")
    return redirect(cluster.get_absolute_url())


def _one_more(sent: QueryDict) -> QueryDict:
    """The same request with one more row of pools."""
    more = sent.copy()
    at = rows_of(sent, "pools")
    if at < MOST_POOLS:
        more["pools-TOTAL_FORMS"] = str(at + 1)
        more[f"pools-{at}-quantity"] = "1"
    return more


def _tell(one: Draft, problem: Problem) -> None:
    """The service's sentences beside the fields they are about, in either form."""
    rows = [f for f in one.pools.forms if not f.blank]
    rest: dict[str, list[str]] = {}
    for at, sentences in problem.fields.items():
        first, _, where = at.partition(".")
        number, _, name = where.partition(".")
        if first == "pools" and number.isdecimal() and int(number) < len(rows):
            form = rows[int(number)]
            for sentence in sentences:
                form.add_error(name if name in form.fields else None, sentence)
        else:
            rest[at] = sentences
    if rest or not problem.fields:
        names = {f"parameters.{p['key']}": f"{PARAMETER}{p['key']}" for p in one.form.parameters}
        left = Problem(problem.message, problem.code, rest)
        refusals.beside_fields(one.form, left, names)


def _page(request: HttpRequest, one: Draft, status: int = 200) -> HttpResponse:
    found: dict[str, Any] = {"draft": one, "form": one.form, "pools": one.pools}
    found |= {"yaml": vcluster(one), "plan": plan(one)}
    if one.form.is_bound and status == 200:
        # A row was added or a choice made: nothing was asked to be checked yet.
        _forget_errors(one)
    return render(request, "tenants/cluster/new.html", found, status=status)


def _forget_errors(one: Draft) -> None:
    one.form.is_valid()
    one.form._errors = forms.utils.ErrorDict()  # type: ignore[attr-defined]
    for row in one.pools.forms:
        row.is_valid()
        row._errors = forms.utils.ErrorDict()


@login_required
@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """vcluster.yaml and the plan alone, as the form stands; for pages with script."""
    one = draft(request)
    found = {"draft": one, "yaml": vcluster(one), "plan": plan(one)}
    return render(request, "tenants/cluster/_preview.html", found)


def vcluster(one: Draft) -> str:
    """The rendered document as it would be for what was given so far."""
    values: dict[str, Any] = {}
    name = ""
    if one.form.is_bound:
        one.form.is_valid()
        values, name = one.form.given, one.form.cleaned_data.get("name", "")
    name = name or str(one.form.data.get("name", "")) or "name"
    segment = next(
        (s for s in services.free_segments(one.tenant) if s.name == values.get("segment")), None
    )
    if segment is None and len(free := services.free_segments(one.tenant)) == 1:
        segment = free[0]
    cluster = TenantCluster(
        tenant=one.tenant,
        name=name,
        template=one.template,
        parameters=values,
        segment=segment,
        node_endpoint=LATER,
    )
    return as_yaml(templates.render_values(cluster, segment_facts(cluster)))


def plan(one: Draft) -> list[dict[str, Any]]:
    """What each pool would take of what is there now; nothing is reserved by it."""
    rows = []
    for form in one.pools.forms:
        sent = form.is_bound and not form.is_valid() and "node_type" in form.errors
        given = form.cleaned_data if form.is_bound and not sent else {}
        node_type = given.get("node_type")
        if node_type is not None:
            rows.append((given.get("name") or "unnamed", node_type, given.get("quantity") or 0))
    found = capacities({t for _, t, _ in rows})
    left = {pk: numbers["available"] - numbers["waiting"] for pk, numbers in found.items()}
    plans = []
    for name, node_type, quantity in rows:
        short = max(0, quantity - max(0, left[node_type.pk]))
        left[node_type.pk] -= quantity
        row = {"name": name, "node_type": node_type, "quantity": quantity}
        row["verdict"] = (f"{short} would wait", "warn") if short else ("Fits", "good")
        plans.append({**row, "numbers": found[node_type.pk]})
    return plans
