"""The sealer: stamps committed history rows with position and hash; one leader at a time."""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections

from gpucloud.engine import leases, sealer
from gpucloud.engine.beat import start_beat
from gpucloud.engine.heartbeat import start_heartbeat

log = logging.getLogger(__name__)
EVERY_SECONDS = 0.1
LEAD_EVERY_SECONDS = 5.0
AWAY_SECONDS = 1.0


class Command(BaseCommand):
    help = "Seal history rows until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        start_beat()
        start_heartbeat()
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        follower = _Sealer()
        while not stopping.is_set():
            stopping.wait(follower.round())
        follower.resign()


class _Sealer:
    """Seals while it leads; the lease is renewed now and then, and positions guard the rest."""

    def __init__(self) -> None:
        self._leads_until = 0.0

    def round(self) -> float:
        """One look; the seconds until the next."""
        try:
            if not self._leads():
                return AWAY_SECONDS
            return 0.0 if sealer.seal_batch() == sealer.BATCH else EVERY_SECONDS
        except Error as error:
            log.warning("the database does not answer: %s", error)
            self._leads_until = 0.0
            close_old_connections()
            return AWAY_SECONDS

    def _leads(self) -> bool:
        if time.monotonic() < self._leads_until:
            return True
        close_old_connections()
        if not leases.lead("sealer", 3 * LEAD_EVERY_SECONDS):
            return False
        self._leads_until = time.monotonic() + LEAD_EVERY_SECONDS
        return True

    def resign(self) -> None:
        try:
            leases.resign("sealer")
        except Error as error:
            log.warning("leadership not given up: %s", error)
