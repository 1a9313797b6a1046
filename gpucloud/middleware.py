"""What every request passes: security headers, the person's zone, and the shell's context."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

Get = Callable[[HttpRequest], HttpResponse]

# style-src-attr: inline styles carry measured values only (--at, --for …); nothing else may be
# inline.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr "
    "'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def security_headers(get_response: Get) -> Get:
    """Set the content security policy on every answer, and keep pages of signed-in people out of
    caches.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CSP)
        response.headers.setdefault("Permissions-Policy", "interest-cohort=()")
        if getattr(request, "user", None) is not None and request.user.is_authenticated:
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def person(get_response: Get) -> Get:
    """Show times in the signed-in person's zone."""

    def middleware(request: HttpRequest) -> HttpResponse:
        zone = request.user.zone if request.user.is_authenticated else "UTC"
        try:
            timezone.activate(zoneinfo.ZoneInfo(zone))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            timezone.deactivate()
        return get_response(request)

    return middleware


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of base.html: the server's clock and the person."""
    return {"now": timezone.now(), "person": getattr(request, "user", None)}
