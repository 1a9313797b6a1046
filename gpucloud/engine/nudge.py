"""Nudges: tell a worker after commit that something is due; losing one costs a second, never
correctness.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)
# After a failed publish nobody tries again for this long: a dead Redis must not slow every request.
_PAUSE_SECONDS = 2.0
_quiet_until = 0.0


def publish(kind: str, uid: UUID | str) -> bool:
    """Send the message now; False when it could not be sent. Costs at most about 0.3 s."""
    global _quiet_until
    if not settings.REDIS_URL or time.monotonic() < _quiet_until:
        return False
    from gpucloud.celery import app

    try:
        app.send_task(
            "gpucloud.advance",
            args=[kind, str(uid)],
            queue="engine",
            retry=False,
            ignore_result=True,
        )
    except Exception as error:  # kombu raises whatever its transport raises
        log.warning("nudge of %s %s not sent: %s", kind, uid, error)
        _quiet_until = time.monotonic() + _PAUSE_SECONDS
        return False
    return True


def nudge(kind: str, uid: UUID) -> None:
    """After commit, tell a worker that this owner's current step is due."""
    transaction.on_commit(partial(publish, kind, uid))
