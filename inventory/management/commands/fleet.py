"""The fleet sweep as a process: power and health of every BMC; one leader at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from gpucloud.engine.beat import start_beat
from gpucloud.engine.heartbeat import start_heartbeat
from gpucloud.engine.offload import until_stopped, while_leading
from inventory.sweep import sweep_fleet


class Command(BaseCommand):
    help = "Read power and health of all BMCs until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        start_beat()
        start_heartbeat()
        asyncio.run(until_stopped(while_leading("fleet", sweep_fleet)))
