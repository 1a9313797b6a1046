"""The Heartbeat table: each process says every few seconds that it lives; pages alarm by it."""

from __future__ import annotations

import logging
import os
import threading
import time
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, close_old_connections
from django.db.models.functions import Now

from gpucloud.models import Heartbeat

log = logging.getLogger(__name__)
EVERY_SECONDS = 5.0
SILENT_AFTER = timedelta(seconds=30)


def touch(name: str, detail: dict[str, Any] | None = None) -> None:
    """Record that the named process lives now."""
    if not Heartbeat.objects.filter(name=name).update(at=Now(), detail=detail or {}):
        Heartbeat.objects.get_or_create(name=name, defaults={"detail": detail or {}})


def silent() -> list[Heartbeat]:
    """Processes that have said nothing for half a minute."""
    return list(Heartbeat.objects.filter(at__lt=Now() - SILENT_AFTER).order_by("name"))


def start_heartbeat() -> None:
    """Touch this process's row (named by GPUCLOUD_PROCESS) from a daemon thread;

    without the name, do nothing.
    """
    if name := os.environ.get("GPUCLOUD_PROCESS"):
        threading.Thread(target=_run, args=(name,), name="heartbeat", daemon=True).start()


def _run(name: str) -> None:
    while True:
        try:
            close_old_connections()
            touch(name, {"pid": os.getpid()})
        except DatabaseError as error:
            log.warning("heartbeat of %s not written: %s", name, error)
        time.sleep(EVERY_SECONDS)
