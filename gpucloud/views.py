"""Pages that belong to no app: overview, activity, permanent links, health and errors."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from gpucloud.models import Event, User


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard.html", {})


@login_required
def activity(request: HttpRequest) -> HttpResponse:
    return render(request, "activity.html", {"events": Event.objects.order_by("-id")[:100]})


@login_required
def permanent(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """Send the reader to the object's page; who may not see it gets the same 404 as for nothing."""
    from gpucloud.links import find

    assert isinstance(request.user, User)
    found = find(request.user, uid)
    if found is None:
        raise Http404
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
    return render(request, "errors/403.html", status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def broken(request: HttpRequest) -> HttpResponse:
    return render(request, "errors/500.html", status=500)
