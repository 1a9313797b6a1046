"""Errors in REST as application/problem+json (RFC 9457) with a reason code and the field errors."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.views import set_rollback

from gpucloud import policy
from gpucloud.drivers import DriverError
from gpucloud.problems import Problem
from gpucloud.reasons import reason

log = logging.getLogger(__name__)

# Said by a driver, but about our own rows: nothing outside has failed.
OURS = ("NO_", "DRIVER_")
CODES = {401: "UNAUTHENTICATED", 405: "METHOD", 406: "MEDIA_TYPE", 415: "MEDIA_TYPE"}


class ProblemSerializer(serializers.Serializer[Any]):
    """The shape of every error, for the schema."""

    type = serializers.CharField()
    title = serializers.CharField(help_text="What the code means.")
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What happened here.")
    code = serializers.CharField(help_text="A key of the catalogue of reasons.")
    next = serializers.CharField(help_text="What to do now.")
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Sentences by field; nested ones as `pools.0.node_type`.",
    )


def handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turn what a view raised into a problem document; a bug is logged and told as one."""
    status, code, detail, fields = _read(error, context)
    headers: dict[str, str] = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
    if getattr(error, "wait", None) and isinstance(error, exceptions.APIException):
        headers["Retry-After"] = str(int(error.wait))  # type: ignore[attr-defined]
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


def _read(error: Exception, context: dict[str, Any]) -> tuple[int, str, str, dict[str, list[str]]]:
    if isinstance(error, Problem):
        return error.status, error.code, error.message, error.fields
    if isinstance(error, exceptions.ValidationError):
        fields = flatten(error.detail)
        told = "; ".join(f"{name}: {' '.join(found)}" for name, found in fields.items())
        return 400, "INVALID", f"Some values are wrong: {told}", fields
    if isinstance(error, Http404 | exceptions.NotFound):
        told = str(getattr(error, "detail", ""))
        default = str(exceptions.NotFound.default_detail)
        return 404, "NOT_FOUND", told if told != default and told else _meaning("NOT_FOUND"), {}
    if isinstance(error, PermissionDenied | exceptions.PermissionDenied):
        told = str(getattr(error, "detail", ""))
        default = str(exceptions.PermissionDenied.default_detail)
        return 403, "DENIED", told if told != default and told else _meaning("DENIED"), {}
    if isinstance(error, exceptions.APIException):
        code = CODES.get(error.status_code, "INVALID")
        return error.status_code, code, str(error.detail), {}
    if isinstance(error, RequestDataTooBig):
        return 413, "INVALID", "The body is too long: 2.5 MB at most.", {}
    if isinstance(error, SuspiciousOperation):
        return 400, "INVALID", "The request holds more than is taken at once.", {}
    if isinstance(error, RecursionError):
        return 400, "INVALID", "The body is nested too deeply.", {}
    if isinstance(error, DriverError):
        # A driver's words name addresses that only the platform's people may see.
        seen = policy.sees_platform(context["request"].user)
        status = 409 if error.code.startswith(OURS) else 502
        return status, error.code, error.message if seen else _meaning(error.code), {}
    log.error("REST: %s", context["request"].path, exc_info=error)
    return 500, "BUG", _meaning("BUG"), {}


def _meaning(code: str) -> str:
    return reason(code).sentence


def flatten(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Nested validation errors as `pools.0.name` -> sentences."""
    if isinstance(detail, dict):
        found: dict[str, list[str]] = {}
        for key, value in detail.items():
            found.update(flatten(value, f"{path}.{key}" if path else str(key)))
        return found
    if isinstance(detail, list) and any(isinstance(one, dict | list) for one in detail):
        found = {}
        for index, value in enumerate(detail):
            if value:
                found.update(flatten(value, f"{path}.{index}" if path else str(index)))
        return found
    return {
        path or "non_field_errors": [
            str(one) for one in (detail if isinstance(detail, list) else [detail])
        ]
    }
