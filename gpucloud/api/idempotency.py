"""Idempotency-Key on creates: the same request is carried out once and answered alike for a day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from gpucloud.models import IdempotentRequest
from gpucloud.problems import Problem

KEEP = timedelta(hours=24)
# A create takes well under a second; one that has not ended by then died with its process.
DIED = timedelta(seconds=60)


class Reused(Problem):
    status = 422

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used for a request with another address or body.",
            "IDEMPOTENCY_REUSED",
        )


class Running(Problem):
    def __init__(self) -> None:
        super().__init__(
            "The first request with this Idempotency-Key has not ended yet.", "IDEMPOTENCY_RUNNING"
        )


def once(request: Request, create: Callable[[], Response]) -> Response:
    """Run `create`, or give the answer that the same request had before.

    What fails is forgotten, so that a corrected request may carry the same key.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return create()
    if not 1 <= len(key) <= 255:
        raise ValidationError({"Idempotency-Key": ["Give 1 to 255 characters."]})
    row, stored = _take(request, key)
    if stored is not None:
        return stored
    try:
        # One transaction: the answer is kept exactly when the object is.
        with transaction.atomic():
            response = create()
            data = json.loads(json.dumps(response.data, cls=JSONEncoder))
            rows = IdempotentRequest.objects.filter(pk=row.pk, started=row.started)
            if not rows.update(status=response.status_code, response=data):
                raise Running
    except BaseException:
        IdempotentRequest.objects.filter(pk=row.pk, started=row.started, status=None).delete()
        raise
    return response


def _take(request: Request, key: str) -> tuple[IdempotentRequest, Response | None]:
    """The row that this request now owns, or the stored answer."""
    now = timezone.now()
    mine: dict[str, Any] = {"user_id": request.user.pk, "key": key}
    wanted = {"route": f"{request.method} {request.path}"[:300], "body_hash": _hash(request.data)}
    IdempotentRequest.objects.filter(
        Q(started__lt=now - KEEP) | Q(status=None, started__lt=now - DIED),
        user_id=mine["user_id"],
    ).delete()
    try:
        with transaction.atomic():
            return IdempotentRequest.objects.create(**mine, **wanted, started=now), None
    except IntegrityError:
        row = IdempotentRequest.objects.filter(**mine).first()
    if row is None:
        raise Running
    if (row.route, row.body_hash) != (wanted["route"], wanted["body_hash"]):
        raise Reused
    if row.status is None:
        raise Running
    return row, Response(row.response, row.status, headers={"Idempotency-Replayed": "true"})


def _hash(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
