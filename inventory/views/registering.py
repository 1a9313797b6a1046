"""Registering a server, and trying a BMC's settings before they are kept."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.forms.utils import ErrorDict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from gpucloud.models import User
from gpucloud.pages import page
from gpucloud.problems import Invalid
from inventory import forms
from inventory.actions.forms import BmcSettingsForm
from inventory.models import Server
from inventory.services import bmcs, servers
from inventory.views.acting import demand
from inventory.views.servers import one
from network.services import cables

FRAGMENTS = {
    "register": "inventory/_register.html",
    "ports": "inventory/_ports_form.html",
    "connection": "inventory/_connection.html",
}


@login_required
@require_http_methods(["GET", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    """The form, and its post. "add_port" only gives it more rows; nothing is saved by that."""
    user = demand(request, "create", Server)
    if request.method == "GET":
        return _form(request, forms.RegisterForm(), forms.port_rows())
    if "add_port" in request.POST:
        return _more_ports(request)
    form, ports = forms.RegisterForm(request.POST), forms.port_rows(request.POST)
    if not (form.is_valid() & ports.is_valid()) or form.needs_fabric(ports):
        return _form(request, form, ports, status=422)
    try:
        server = _enroll(user, form, ports)
    except Invalid as problem:
        form.refuse(problem, ports)
        return _form(request, form, ports, status=422)
    messages.success(request, f"{server} was registered. Inspect it to read its hardware.")
    return redirect(server)


def _enroll(user: User, form: forms.RegisterForm, ports: forms.Ports) -> Server:
    """The server with its BMC, its ports and their cables, or nothing."""
    with transaction.atomic():
        server = servers.enroll(
            user.username, form.cleaned_data["name"], interfaces=ports.wish(), **form.wish()
        )
        for index, row in enumerate(ports.filled):
            data = row.cleaned_data
            if data.get("switch_port"):
                interface = server.interfaces.get(mac=data["mac"])
                fabric, switch = form.cleaned_data["fabric"], data["switch"]
                try:
                    cables.plug(interface, fabric, switch, data["switch_port"], user.username)
                except Invalid as problem:
                    wrong = {f"interfaces.{index}.switch_port": ["; ".join(problem.fields["port"])]}
                    raise Invalid(wrong) from problem
    return server


def _more_ports(request: HttpRequest) -> HttpResponse:
    data = request.POST.copy()
    data["ports-TOTAL_FORMS"] = str(min(forms.rows_of(data, "ports") + 1, forms.MOST_PORTS))
    return _form(request, forms.RegisterForm(data), forms.port_rows(data), judged=False)


def _form(
    request: HttpRequest,
    form: forms.RegisterForm,
    ports: forms.Ports,
    status: int = 200,
    judged: bool = True,
    **more: Any,
) -> HttpResponse:
    """The page; not `judged` shows what was typed without its errors."""
    if not judged:
        for one in (form, *ports):
            setattr(one, "_errors", ErrorDict())  # noqa: B010
    context = {"form": form, "ports": ports, "most": forms.MOST_PORTS, **more}
    return page(request, "inventory/register.html", context, FRAGMENTS, status)


@login_required
@require_POST
def test_unsaved(request: HttpRequest) -> HttpResponse:
    """Try what was typed; nothing is kept, and the rest of the form is not judged."""
    demand(request, "test connection", Server)
    form = forms.RegisterForm(request.POST)
    form.is_valid()
    wrong = {key: form.errors[key] for key in _BMC_FIELDS if key in form.errors}
    problems = [f"{form.fields[key].label}: {text}" for key in wrong for text in wrong[key]]
    if not problems:
        data = form.cleaned_data
        tried = form.tried(data.get("connection"), data.get("engine_id", ""))
        problems = bmcs.test_connection(data["driver"], tried)
    ports = forms.port_rows(request.POST)
    return _form(request, form, ports, judged=False, tested=True, problems=problems)


_BMC_FIELDS = ("driver", "address", "username", "password", "connection", "engine_id")


@login_required
@require_POST
def test_saved(request: HttpRequest, name: str) -> HttpResponse:
    """Try the settings of a server's BMC page: what was typed, with what is kept in the blanks."""
    server = one(request, name)
    demand(request, "test connection", server)
    form = BmcSettingsForm(request.POST, server=server)
    if form.is_valid():
        tried = form.tried(server.connection, server.engine_id)
        problems = bmcs.test_settings(server, form.cleaned_data["driver"], tried)
    else:
        problems = [str(text) for found in form.errors.values() for text in found]
    return page(
        request,
        "inventory/tested.html",
        {"object": server, "tested": True, "problems": problems},
        {"connection": "inventory/_connection.html"},
    )
