"""Errors in REST as application/problem+json (RFC 9457) with a reason code and the field errors."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from gpucloud.problems import Problem
from gpucloud.reasons import reason


def handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what a view raised into a problem document; None (a bug) goes on to Django's 500."""
    headers: dict[str, str] = {}
    if isinstance(error, Problem):
        status, code, detail, fields = error.status, error.code, error.message, error.fields
    elif isinstance(error, exceptions.ValidationError):
        status, code = 400, "INVALID"
        fields = _fields(error.detail)
        detail = "Some values are wrong: " + "; ".join(
            f"{k}: {' '.join(v)}" for k, v in fields.items()
        )
    elif isinstance(error, Http404 | exceptions.NotFound):
        status, code, detail, fields = 404, "NOT_FOUND", reason("NOT_FOUND").sentence, {}
    elif isinstance(error, PermissionDenied | exceptions.PermissionDenied):
        status, code, detail, fields = 403, "DENIED", reason("DENIED").sentence, {}
    elif isinstance(error, exceptions.APIException):
        status, detail, fields = error.status_code, str(error.detail), {}
        code = "UNAUTHENTICATED" if status == 401 else "INVALID"
        if challenge := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = challenge
        if wait := getattr(error, "wait", None):
            headers["Retry-After"] = str(int(wait))
    else:
        return None
    set_rollback()
    return Response(
        {
            "type": f"/docs/reasons#{code}",
            "title": reason(code).sentence,
            "status": status,
            "detail": detail,
            "code": code,
            "next": reason(code).next,
            "errors": fields,
        },
        status=status,
        headers=headers,
        content_type="application/problem+json",
    )


def _fields(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten nested validation errors to `pools.0.name` -> sentences."""
    if isinstance(detail, dict):
        found: dict[str, list[str]] = {}
        for key, value in detail.items():
            found.update(_fields(value, f"{path}.{key}" if path else str(key)))
        return found
    if isinstance(detail, list) and any(isinstance(one, dict | list) for one in detail):
        found = {}
        for index, value in enumerate(detail):
            if value:
                found.update(_fields(value, f"{path}.{index}" if path else str(index)))
        return found
    return {
        path or "non_field_errors": [
            str(one) for one in (detail if isinstance(detail, list) else [detail])
        ]
    }
