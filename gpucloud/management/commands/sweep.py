"""The one-second due-list: nudges what is due and runs the apps' sweeps; one leader at a time."""

from __future__ import annotations

import logging
import signal
import time
from importlib import import_module
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections

from gpucloud.engine import leases
from gpucloud.engine.beat import start_beat
from gpucloud.engine.heartbeat import start_heartbeat

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Run the one-second due-list until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        start_beat()
        start_heartbeat()
        self.stopping = False
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        # Steps that a killed sweep ran by itself are taken over at once.
        jobs = [_named(path) for path in settings.SWEEPS]
        first = [leases.expire_dead]
        while not self.stopping:
            began = time.monotonic()
            if _round([*first, *jobs]):
                first = []
            time.sleep(max(0.05, 1 - (time.monotonic() - began)))
        leases.resign("sweep")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _round(jobs: list[Any]) -> bool:
    """One second's work; False when another one leads. A fault in one job stays its own."""
    close_old_connections()
    try:
        if not leases.lead("sweep"):
            return False
    except DatabaseError as error:
        log.warning("the database does not answer: %s", error)
        return False
    for job in jobs:
        try:
            job()
        except Exception:
            log.exception("sweep %s.%s", job.__module__, job.__name__)
    return True
