"""Pages that belong to no app: overview, activity, permanent links, health and errors."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.module_loading import import_string

from gpucloud import links, policy
from gpucloud.models import User
from gpucloud.pages import page
from provisioning.showing.overview import platform, tenancy


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    """What a person needs first: the fleet for the platform, clusters and quota for a tenant."""
    assert isinstance(request.user, User)
    if policy.sees_platform(request.user):
        found, part = platform(request.user), "dashboard/_platform.html"
    else:
        found, part = tenancy(request.user), "dashboard/_tenant.html"
    # The page reads itself again; its socket only tells whether the console still answers.
    found |= {"part": part, "live": ["list:claim-row"]}
    return page(request, "dashboard.html", found, {"overview": part})


@login_required
def permanent(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """Send the reader to the object's page; who may not see it gets the same 404 as for nothing."""
    assert isinstance(request.user, User)
    found = links.find(request.user, uid)
    if found is None:
        raise Http404
    if view := links.page_of(found):
        shown: HttpResponse = import_string(view)(request, found)
        return shown
    return redirect(found.get_absolute_url())


def livez(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse(
            {"status": "the database does not answer"}, status=503, headers={"Retry-After": "5"}
        )
    return JsonResponse({"status": "ok"})


def denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/403.html", {"why": str(exception)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def broken(request: HttpRequest) -> HttpResponse:
    return render(request, "errors/500.html", status=500)
