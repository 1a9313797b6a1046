"""One view for the page and for its fragments: htmx gets the part it asked for, everybody else the
page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    fragments: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render `template`, or the fragment whose root id htmx names as its target."""
    htmx = getattr(request, "htmx", None)
    target = htmx.target if htmx and not htmx.history_restore_request else ""
    chosen = (fragments or {}).get(target or "", template)
    response = render(request, chosen, dict(context), status=status)
    if chosen != template and "listing" in context and request.method == "GET":
        # The address without the empty fields that a form sends along.
        kept = [(key, value) for key, values in request.GET.lists() for value in values if value]
        response["HX-Push-Url"] = f"{request.path}?{urlencode(kept)}" if kept else request.path
    # The browser's back button must not show a fragment it once cached as the page.
    patch_vary_headers(response, ("HX-Request", "HX-Target"))
    return response
