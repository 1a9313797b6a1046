"""The Celery app: queues engine (threads) and bulk (prefork); messages are nudges with ids, never state."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpucloud.settings")

app = Celery("gpucloud")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["gpucloud", "inventory", "network", "tenants", "provisioning"])


@worker_ready.connect
def _beat(**_: Any) -> None:
    """Say that this worker lives, to the supervisor by file and to pages by the Heartbeat table."""
    from gpucloud.engine.beat import start_beat
    from gpucloud.engine.heartbeat import start_heartbeat

    start_beat()
    start_heartbeat()
