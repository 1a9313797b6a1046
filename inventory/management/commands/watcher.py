"""The watcher: follows Kubernetes APIs and has the engine look at once; one leader at a time."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from gpucloud.engine.beat import start_beat
from gpucloud.engine.heartbeat import start_heartbeat
from gpucloud.engine.offload import until_stopped, while_leading
from inventory.watching.runner import Runner, Source


class Command(BaseCommand):
    help = "Follow the Kubernetes APIs that settings.WATCHES names until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        start_beat()
        start_heartbeat()
        sources = [_named(path) for path in settings.WATCHES]
        watch = while_leading("watcher", lambda: Runner(sources).run())
        asyncio.run(until_stopped(watch))


def _named(path: str) -> Source:
    module, _, name = path.rpartition(".")
    source: Source = getattr(import_module(module), name)
    return source
