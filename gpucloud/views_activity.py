"""The feed of what happened, and which processes live."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from gpucloud import links
from gpucloud.engine.heartbeat import SILENT_AFTER
from gpucloud.history import KINDS
from gpucloud.listing import Column, Filter, Listing
from gpucloud.models import Event, Heartbeat, User
from gpucloud.pages import page
from gpucloud.policy import sees_platform, visible

COLUMNS: Final = [
    Column("at", "When", ("id",)),
    Column("message", "What happened"),
    Column("actor", "By"),
    Column("tenant", "Tenant"),
]
# What only the platform has: nobody of a tenant finds an event under it.
PLATFORM_KINDS: Final = ("wipe", "bmc", "provider", "fabric", "connection", "user")


def _filters(staff: bool) -> list[Filter]:
    kinds = sorted({kind for kind in KINDS.values() if staff or kind not in PLATFORM_KINDS})
    return [Filter("kind", "Kind", [(kind, kind.replace("_", " ").capitalize()) for kind in kinds])]


def _listing(request: HttpRequest, rows: QuerySet[Event], staff: bool) -> Listing[Event]:
    return Listing(
        request.GET,
        rows,
        name="events",
        # A tenant must not find by guessing what the sentence would not show.
        search=("object_name", "actor", "code", "verb", *(("message",) if staff else ())),
        columns=COLUMNS,
        default_sort="-at",
        filters=_filters(staff),
    )


@login_required
@require_GET
def activity(request: HttpRequest) -> HttpResponse:
    """Events newest first, as far as the person may see; `?object=<uid>` keeps one object's."""
    assert isinstance(request.user, User)
    staff = sees_platform(request.user)
    rows = visible(request.user, Event.objects.select_related("tenant"))
    uid = _uid(request.GET.get("object", ""))
    if uid is not None:
        rows = rows.filter(object_uid=uid)
    listing = _listing(request, rows, staff)
    context = {
        "listing": listing,
        "subject": links.find(request.user, uid) if uid else None,
        "object_uid": uid,
        "linked": _linked(request.user, listing),
        "staff": staff,
        "processes": processes() if staff else [],
    }
    fragments = {"events": "_events.html", "processes": "_processes.html"}
    return page(request, "activity.html", context, fragments)


def _uid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        return None


def _linked(user: User, listing: Listing[Event]) -> set[uuid.UUID]:
    """Which objects of this page's events still have a page for this person."""
    return links.known(user, {event.object_uid for event in listing.page})


def processes() -> list[dict[str, Any]]:
    """Each process with the age of its last sign of life, judged by the database's clock."""
    rows = Heartbeat.objects.annotate(now=Now()).order_by("name")
    return [_process(row, row.now) for row in rows]


def _process(row: Heartbeat, now: datetime) -> dict[str, Any]:
    silent: timedelta = now - row.at
    state = ("Lives", "good") if silent < SILENT_AFTER else ("Silent", "bad")
    return {"name": row.name, "at": row.at, "pid": row.detail.get("pid"), "state": state}
