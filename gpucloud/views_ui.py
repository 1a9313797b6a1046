"""Pages of the shell itself: search and the theme switch."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from gpucloud import finding
from gpucloud.models import User


@login_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the person's theme; without script the page comes back in it."""
    choice = request.POST.get("theme", "")
    if choice in User.Theme.values and isinstance(request.user, User):
        request.user.theme = choice
        request.user.save(update_fields=["theme"])
    if getattr(request, "htmx", False):
        return HttpResponse(status=204)
    back = urlsplit(request.META.get("HTTP_REFERER", "")).path or "/"
    return redirect(back if url_has_allowed_host_and_scheme(back, None) else "/")


@login_required
@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """Search everything; a single hit opens at once."""
    text = request.GET.get("q", "").strip()[:100]
    groups = finding.find(request.user, text) if isinstance(request.user, User) else []
    if len(groups) == 1 and len(groups[0].rows) == 1:
        return redirect(groups[0].rows[0].get_absolute_url())
    return render(request, "find.html", {"q": text, "groups": groups})
