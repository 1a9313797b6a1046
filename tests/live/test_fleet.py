"""The sockets of the servers' and segments' pages: real fragments, real changes."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from gpucloud.live import fragments
from inventory.services import servers
from tests import make
from tests.live.test_socket import WAIT, connected, follows, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def real_fragments(live: Any, settings: Any) -> Any:
    settings.LIVE_FRAGMENTS = ["inventory.live", "network.live"]
    fragments._gather.cache_clear()
    yield
    fragments._gather.cache_clear()


async def until(socket: WebsocketCommunicator, words: str, within: float = 1.0) -> str:
    """The first message that holds these words; each must come within the time given."""
    for _ in range(10):
        got = str(await socket.receive_from(timeout=within))
        if words in got:
            return got
    raise AssertionError(f"“{words}” did not come")


async def test_a_row_and_a_page_of_a_server_move_by_themselves(cast: Any, page: Any) -> None:
    server = await sync_to_async(make.server)("gpu-1")
    row = await connected(await page(cast.support, f"server-row:{server.uid}"))
    whole = await connected(await page(cast.support, f"server:{server.uid}"))
    assert "Available" in await text(row)
    assert f'id="server-{server.uid}-power"' in await text(whole)
    await follows()
    await sync_to_async(servers.set_maintenance)(server, True, "admin", "new fans")
    assert "Maintenance" in await until(row, "Maintenance")
    assert "new fans" in await until(whole, "new fans")


async def test_the_lanes_follow_the_servers_in_them(cast: Any, page: Any) -> None:
    server = await sync_to_async(make.server)("gpu-1")
    fabric = await sync_to_async(lambda: server.interfaces.get().link.fabric)()
    lanes = await connected(await page(cast.support, f"fabric-lanes:{fabric.uid}"))
    assert "gpu-1" in await text(lanes)
    await follows()
    await sync_to_async(servers.set_quarantine)(server, True, "admin", "odd traffic")
    assert 'data-state="failed"' in await until(lanes, "quarantined", within=1.5)


async def test_tenants_cannot_follow_servers_or_strange_fabrics(cast: Any, page: Any) -> None:
    server = await sync_to_async(make.server)("gpu-1")
    fabric = await sync_to_async(lambda: server.interfaces.get().link.fabric)()
    for topic in (f"server:{server.uid}", f"server-row:{server.uid}", f"fabric-lanes:{fabric.uid}"):
        socket = await connected(await page(cast.owner, topic))
        assert "refused" in str(await socket.receive_from(timeout=WAIT))
