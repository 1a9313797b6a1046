"""The Celery app: queues engine (threads) and bulk (prefork); messages are nudges with ids, never
state.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpucloud.settings")

app = Celery("gpucloud")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["gpucloud", "inventory", "network", "tenants", "provisioning"])


@worker_init.connect
def _beat(**_: Any) -> None:
    """Say to the supervisor that this worker lives, even while it waits for Redis."""
    from gpucloud.engine.beat import start_beat

    start_beat()


@worker_ready.connect
def _heartbeat(**_: Any) -> None:
    """Say on the pages that this worker takes work."""
    from gpucloud.engine.heartbeat import start_heartbeat

    start_heartbeat()


@worker_ready.connect
def _succeed(**_: Any) -> None:
    """Take over from a worker that was killed here: its leases need not be waited out."""
    from django.db import connection

    from gpucloud.engine.leases import expire_dead

    expire_dead()
    # A child that is forked later must not inherit it.
    connection.close()
