"""What a person does to one server: a page that names the consequence, then the deed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from gpucloud import ui
from gpucloud.drivers import DriverError
from gpucloud.models import User
from gpucloud.policy import require
from gpucloud.problems import Denied, Invalid, NotAllowed, Problem
from gpucloud.reasons import reason
from inventory.actions import ACTIONS
from inventory.actions.action import Action
from inventory.actions.forms import ActionForm, BmcSettingsForm
from inventory.models import Server
from inventory.views.servers import one

# The BMC, not the person, is what failed.
FAILED_BEHIND = 502


def demand(request: HttpRequest, verb: str, obj: Any) -> User:
    """The signed-in person, when the role allows this; otherwise the 403 page."""
    assert isinstance(request.user, User)
    try:
        require(request.user, verb, obj)
    except Denied as denied:
        raise PermissionDenied(denied.message) from denied
    return request.user


@login_required
@require_http_methods(["GET", "POST"])
def act(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Ask, then do. Whatever goes wrong is shown on the same page, with what was typed kept."""
    server = one(request, name)
    if action not in ACTIONS:
        raise Http404
    chosen = ACTIONS[action]
    user = demand(request, chosen.verb, server)
    form = chosen.form(request.POST if request.method == "POST" else None, server=server)
    if request.method == "GET":
        return ask(request, server, chosen, form)
    if not form.is_valid():
        return ask(request, server, chosen, form, status=422)
    try:
        if refusal := chosen.refusal(server):
            raise NotAllowed(refusal)
        said = chosen.run(server, user, form.cleaned_data)
    except Invalid as problem:
        form.names(problem)
        return ask(request, server, chosen, form, status=422)
    except Problem as problem:
        return ask(request, server, chosen, form, trouble(problem), problem.status)
    except DriverError as error:
        return ask(request, server, chosen, form, trouble(error), FAILED_BEHIND)
    messages.success(request, said)
    return redirect(server)


def ask(
    request: HttpRequest,
    server: Server,
    action: Action,
    form: ActionForm,
    notice: ui.Notice | None = None,
    status: int = 200,
) -> HttpResponse:
    server.refresh_from_db()
    context = {
        "object": server,
        "action": action,
        "form": form,
        "notice": notice,
        "button": action.button(server),
        "consequence": action.consequence(server),
        "refusal": action.refusal(server),
        "tests": isinstance(form, BmcSettingsForm),
    }
    return render(request, "inventory/action.html", context, status=status)


def trouble(error: Problem | DriverError) -> ui.Notice:
    """What went wrong as a page says it: what happened, its code and meaning, what to do next."""
    known = reason(error.code)
    hint = error.hint if isinstance(error, DriverError) else ""
    facts = [("Means", known.sentence), ("Next", hint or known.next)]
    return ui.Notice(error.message, "", "bad", "warn", error.code, facts)
