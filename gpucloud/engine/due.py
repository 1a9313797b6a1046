"""The due-list: every second, nudge what is due; run it here when no worker can be told."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

from django.db import close_old_connections
from django.db.models import Q
from django.db.models.functions import Now

from gpucloud.engine.advance import advance
from gpucloud.engine.nudge import publish
from gpucloud.models import Step

log = logging.getLogger(__name__)
# A nudge that was sent is not sent again for this long: a busy queue must not fill with copies.
RENUDGE = timedelta(seconds=5)
BATCH = 200
_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="due")
_running: set[tuple[str, UUID]] = set()


def nudge_due() -> int:
    """Nudge every owner whose current step is due;

    return how many. Without Redis, advance them in this process.
    """
    due = (
        Step.objects.filter(current=True, next_try_at__lte=Now())
        .filter(Q(nudged__isnull=True) | Q(nudged__lt=Now() - RENUDGE))
        .order_by("next_try_at")
        .values_list("pk", "kind", "owner_uid")[:BATCH]
    )
    count = 0
    for pk, kind, uid in list(due):
        if publish(kind, uid):
            Step.objects.filter(pk=pk).update(nudged=Now())
        elif (kind, uid) not in _running:
            _running.add((kind, uid))
            _pool.submit(_here, kind, uid)
        count += 1
    return count


def _here(kind: str, uid: UUID) -> None:
    close_old_connections()
    try:
        advance(kind, uid)
    except Exception:
        log.exception("advance of %s %s", kind, uid)
    finally:
        _running.discard((kind, uid))
        close_old_connections()
