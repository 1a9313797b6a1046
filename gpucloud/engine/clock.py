"""The engine's time: the database's clock, and TIME_FACTOR as the only scale of deadlines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.dateparse import parse_datetime


def db_now() -> datetime:
    """The database's present, aware, in UTC:

    the only clock that leases and deadlines are compared with.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT clock_timestamp()")
            found = cursor.fetchone()[0]
            assert isinstance(found, datetime)
            return found
        cursor.execute("SELECT STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')")
        parsed = parse_datetime(cursor.fetchone()[0])
        assert parsed is not None
        return parsed.replace(tzinfo=timezone.get_fixed_timezone(0))


def scaled(seconds: float) -> timedelta:
    """A deadline's or a backoff's seconds times TIME_FACTOR."""
    return timedelta(seconds=seconds * settings.TIME_FACTOR)


def later(seconds: float) -> Any:
    """SQL expression: the database's now plus seconds, never scaled: leases are real time."""
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
