"""Pages of the network: who is in which segment, and one segment."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from gpucloud import ui
from gpucloud.drivers import DriverError, call_budget
from gpucloud.models import User
from gpucloud.policy import may, require
from gpucloud.problems import Denied
from gpucloud.reasons import reason
from network import showing
from network.models import Fabric, Segment
from network.services import segments

# A page waits this long for a fabric's controller.
SECONDS = 30.0
FAILED_BEHIND = 502


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """The lanes of every fabric on which the person sees a segment."""
    reader = showing.Reader.of(request.user)
    wanted = reader.segments().values("fabric")
    fabrics = list(Fabric.objects.filter(pk__in=wanted).select_related("site"))
    drawn = [showing.fabric_panel(fabric, reader) for fabric in fabrics]
    context = {
        "fabrics": drawn,
        "staff": reader.staff,
        "drifts": sum(one["drifts"] for one in drawn),
        "live": [f"fabric-lanes:{fabric.uid}" for fabric in fabrics],
    }
    return render(request, "network/networks.html", context)


def one(request: HttpRequest, fabric: str, name: str) -> Segment:
    """The live segment of this name, or 404 alike for foreign and absent."""
    rows = showing.Reader.of(request.user).segments()
    return get_object_or_404(rows, fabric__name=fabric, name=name)


@login_required
@require_GET
def detail(request: HttpRequest, fabric: str, name: str) -> HttpResponse:
    return show(request, one(request, fabric, name))


def show(
    request: HttpRequest, segment: Segment, notice: ui.Notice | None = None, status: int = 200
) -> HttpResponse:
    """The page of this very row, also of one that is gone."""
    assert isinstance(request.user, User)
    context = {
        **showing.segment_page(segment, showing.Reader.of(request.user)),
        "notice": notice,
        "may_read": segment.state != "gone" and may(request.user, "observe", segment),
        "live": [f"segment:{segment.uid}"],
    }
    return render(request, "network/segment.html", context, status=status)


@login_required
@require_POST
def read(request: HttpRequest, fabric: str, name: str) -> HttpResponse:
    """Ask the fabric who is in the segment now. It changes nothing, so nothing is asked back."""
    segment = one(request, fabric, name)
    assert isinstance(request.user, User)
    try:
        require(request.user, "observe", segment)
        with call_budget(SECONDS):
            seen = segments.membership(segment, request.user.username)
    except Denied as denied:
        raise PermissionDenied(denied.message) from denied
    except DriverError as error:
        return show(request, segment, _trouble(error), FAILED_BEHIND)
    if seen.exists:
        count = len(seen.ports)
        words = f"{segment} has {count} port{'' if count == 1 else 's'}, as read now."
        messages.success(request, words)
    else:
        messages.warning(request, f"{segment} is not on the fabric, as read now.")
    return redirect(segment)


def _trouble(error: DriverError) -> ui.Notice:
    known = reason(error.code)
    facts = [
        ("Means", known.sentence),
        ("Effect", "What stands below is what was read before; nothing was changed."),
        ("Next", error.hint or known.next),
    ]
    return ui.Notice(error.message, "", "bad", "warn", error.code, facts)
