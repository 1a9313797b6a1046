"""Telling live pages that an object changed: a name over Redis after commit, never content, never
in the way.
"""

from __future__ import annotations

import json
import logging
import time
from functools import partial
from typing import Any, Final

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

CHANNEL: Final = "gpucloud:live"
# Connecting and sending share 0.3 s; after a failure nobody tries again for a second, so that a
# loop
# of writes with a dead Redis does not pay for each of them. The hub's own look-again heals the
# rest.
TIMEOUT: Final = 0.1
PAUSE: Final = 1.0
# "Read everything again": sent after names were lost.
ALL: Final = json.dumps({"kind": "*"})


class _Door:
    """The process's connection for publishing, made at first use and remade when the address
    changes.
    """

    def __init__(self) -> None:
        self.url = ""
        self.client: redis.Redis | None = None
        self.closed_until = 0.0
        self.missed = False

    def send(self, text: str) -> None:
        url = settings.REDIS_URL
        if not url:
            return
        started = time.monotonic()
        if started < self.closed_until:
            self.missed = True
            return
        if self.client is None or self.url != url:
            self.url, self.client = url, self._connect(url)
        try:
            self._publish(self.client, text, started)
        except (redis.RedisError, OSError) as error:
            self.closed_until, self.missed = time.monotonic() + PAUSE, True
            log.warning("live pages were not told: %s", error)

    def _publish(self, client: redis.Redis, text: str, started: float) -> None:
        try:
            client.publish(CHANNEL, text)
        except (redis.RedisError, OSError):
            # A connection that Redis dropped while idle fails at once and a new one works.
            if time.monotonic() - started > TIMEOUT:
                raise
            client.connection_pool.disconnect()
            client.publish(CHANNEL, text)
        if self.missed:
            self.missed = False
            client.publish(CHANNEL, ALL)

    @staticmethod
    def _connect(url: str) -> redis.Redis:
        return redis.Redis.from_url(
            url,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            # RESP2 without client info: one round trip fewer when a connection is made.
            protocol=2,
            driver_info=None,
        )


_door = _Door()


def publish(obj: Any) -> None:
    """Tell every page that shows `obj`, once the running transaction has committed.

    Costs at most 0.3 s, swallows errors, does nothing without Redis: pages look again by
    themselves.
    """
    if not settings.REDIS_URL:
        return
    from gpucloud.history import kind_of

    rev = getattr(obj, "rev", 0)
    name = {"kind": kind_of(obj), "uid": str(obj.uid), "rev": rev if isinstance(rev, int) else 0}
    transaction.on_commit(partial(_door.send, json.dumps(name)), robust=True)
