"""What a page gets over its socket."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.db import transaction

from gpucloud.live import hub, publish
from gpucloud.live.consumer import LiveConsumer
from tenants.models import Tenant

pytestmark = pytest.mark.django_db(transaction=True)
WAIT = 5


async def connected(socket: WebsocketCommunicator) -> WebsocketCommunicator:
    yes, _ = await socket.connect(timeout=WAIT)
    assert yes
    return socket


async def text(socket: WebsocketCommunicator) -> str:
    return str(await socket.receive_from(timeout=WAIT))


async def closed_with(socket: WebsocketCommunicator) -> int:
    message = await socket.receive_output(timeout=WAIT)
    assert message["type"] == "websocket.close", message
    return int(message["code"])


async def follows() -> None:
    """Until the hub hears Redis; before that a name published has nobody to hear it."""
    for _ in range(100):
        if hub.Hub.current().heard:
            break
        await asyncio.sleep(0.02)
    # Subscribing has everything read once more; let that pass.
    await asyncio.sleep(0.1)


def rename(tenant: Tenant, name: str) -> None:
    with transaction.atomic():
        Tenant.objects.filter(pk=tenant.pk).update(display_name=name, rev=tenant.rev + 1)
        tenant.refresh_from_db()
        publish(tenant)


async def test_a_page_gets_a_snapshot_of_each_topic_at_once(cast: Any, page: Any) -> None:
    topics = [f"test-tenant:{cast.red.uid}", f"test-tenant:{cast.blue.uid}"]
    socket = await connected(await page(cast.support, *topics))
    got = {await text(socket), await text(socket)}
    assert any("Red" in one and f"tenant-{cast.red.uid}" in one for one in got)
    assert any("Blue" in one for one in got)


async def test_a_change_arrives_after_its_commit(cast: Any, page: Any) -> None:
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    assert "Red" in await text(socket)
    await follows()
    await sync_to_async(rename)(cast.red, "Crimson")
    got = str(await socket.receive_from(timeout=WAIT))
    assert "Crimson" in got
    assert 'data-rev="2"' in got


async def test_a_rolled_back_change_is_never_told(cast: Any, page: Any) -> None:
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    await text(socket)
    await follows()

    def fail() -> None:
        with transaction.atomic():
            publish(cast.red)
            transaction.set_rollback(True)

    await sync_to_async(fail)()
    assert await socket.receive_nothing(timeout=0.3)


async def test_foreign_unknown_and_malformed_topics_are_refused_alike(cast: Any, page: Any) -> None:
    answers = []
    for topic in (
        f"test-tenant:{cast.blue.uid}",
        f"test-tenant:{uuid.uuid4()}",
        f"nonsense:{uuid.uuid4()}",
        "test-tenant:not-a-uid",
        "list:nonsense",
        "",
    ):
        socket = await connected(await page(cast.owner, topic))
        if topic:
            answers.append(await text(socket))
        answers.append(str(await closed_with(socket)))
    assert len({one for one in answers if not one.isdigit()}) == 1
    assert {one for one in answers if one.isdigit()} == {"4404"}
    assert "Blue" not in "".join(answers)


async def test_a_refused_topic_does_not_spoil_the_others(cast: Any, page: Any) -> None:
    socket = await connected(
        await page(cast.owner, f"test-tenant:{cast.blue.uid}", f"test-tenant:{cast.red.uid}")
    )
    assert "refused" in await text(socket)
    assert "Red" in await text(socket)


async def test_without_a_session_the_page_is_told_to_sign_in(cast: Any, page: Any) -> None:
    socket = await connected(await page(None, f"test-tenant:{cast.red.uid}"))
    assert await closed_with(socket) == 4401
    forged = await connected(await page(None, f"test-tenant:{cast.red.uid}", session="forged"))
    assert await closed_with(forged) == 4401


async def test_another_sites_page_cannot_connect(cast: Any, page: Any) -> None:
    for origin in ("https://evil.example", "http://testserver:8080", "null", ""):
        socket = await page(cast.owner, f"test-tenant:{cast.red.uid}", origin=origin)
        yes, _ = await socket.connect(timeout=WAIT)
        assert not yes, origin


async def test_another_address_is_refused_without_a_fault(cast: Any) -> None:
    from gpucloud.asgi import application

    headers = [(b"origin", b"http://testserver"), (b"host", b"testserver")]
    yes, _ = await WebsocketCommunicator(application, "/other/", headers=headers).connect(
        timeout=WAIT
    )
    assert not yes


async def test_staff_and_tenant_get_their_own_text(cast: Any, page: Any) -> None:
    topic = f"test-tenant:{cast.red.uid}"
    tenant = await connected(await page(cast.owner, topic))
    staff = await connected(await page(cast.support, topic))
    assert "seen by staff" not in await text(tenant)
    assert "seen by staff" in await text(staff)


async def test_many_readers_of_one_class_cost_one_rendering(
    cast: Any, page: Any, live: Any
) -> None:
    topic = f"test-tenant:{cast.red.uid}"
    sockets = [await connected(await page(cast.support, topic)) for _ in range(8)]
    for socket in sockets:
        await text(socket)
    await follows()
    live.rendered.clear()
    await sync_to_async(rename)(cast.red, "Crimson")
    assert {("Crimson" in await text(socket)) for socket in sockets} == {True}
    assert live.rendered == ["Crimson"]


async def test_a_burst_is_coalesced_and_ends_with_the_last_state(
    cast: Any, page: Any, live: Any
) -> None:
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    await text(socket)
    await follows()
    live.rendered.clear()

    def burst() -> None:
        for number in range(40):
            rename(cast.red, f"Red {number}")

    await sync_to_async(burst)()
    got, revs = "", []
    while "Red 39" not in got:
        got = await text(socket)
        revs.append(int(got.split('data-rev="')[1].split('"')[0]))
    assert revs == sorted(revs)
    assert len(live.rendered) < 40


async def test_a_slow_reader_gets_the_latest_and_not_the_backlog(cast: Any) -> None:
    box = hub.Mailbox(cast.owner, None)  # type: ignore[arg-type]
    for number in range(1000):
        box.put("a", f"a{number}")
        box.put("b", f"b{number}")
    assert await box.take() == ["a999", "b999"]


async def test_a_new_connection_heals_what_was_missed(cast: Any, page: Any) -> None:
    topic = f"test-tenant:{cast.red.uid}"
    first = await connected(await page(cast.owner, topic))
    assert "Red" in await text(first)
    await first.disconnect()
    await sync_to_async(rename)(cast.red, "Crimson")
    second = await connected(await page(cast.owner, topic))
    assert "Crimson" in await text(second)


async def test_the_page_moves_without_redis(
    cast: Any, page: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LOOK_AGAIN_ALONE", 0.2)
    settings.REDIS_URL = ""
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    assert "Red" in await text(socket)
    await sync_to_async(rename)(cast.red, "Crimson")
    assert "Crimson" in await text(socket)


async def test_signing_out_ends_the_socket(
    cast: Any, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveConsumer, "recheck", 0.1)
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    await text(socket)
    await sync_to_async(cast.owner.set_password)("another horse")
    await sync_to_async(cast.owner.save)()
    assert await closed_with(socket) == 4401


async def test_changed_rights_make_the_page_connect_again(
    cast: Any, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveConsumer, "recheck", 0.1)
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    await text(socket)
    await sync_to_async(cast.owner.memberships.all().delete)()
    assert await closed_with(socket) == 1012
    again = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    assert "refused" in await text(again)


async def test_a_list_tells_of_rows_it_does_not_show(cast: Any, page: Any) -> None:
    shown = f"test-tenant:{cast.red.uid}"
    socket = await connected(await page(cast.support, "list:test-tenant", shown))
    assert "Red" in await text(socket)
    await follows()
    await sync_to_async(rename)(cast.blue, "Azure")
    assert "1 change · Refresh" in await text(socket)
    await sync_to_async(rename)(cast.blue, "Sky")
    assert await socket.receive_nothing(timeout=0.2)


async def test_a_list_tells_nobody_of_foreign_rows(cast: Any, page: Any) -> None:
    socket = await connected(await page(cast.owner, "list:test-tenant"))
    await follows()
    await sync_to_async(rename)(cast.blue, "Azure")
    assert await socket.receive_nothing(timeout=0.4)


async def test_fragments_hold_no_form_and_no_token(cast: Any, page: Any) -> None:
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    got = await text(socket)
    assert "csrf" not in got
    assert "<form" not in got


async def test_the_hub_forgets_a_page_that_left(cast: Any, page: Any) -> None:
    socket = await connected(await page(cast.owner, f"test-tenant:{cast.red.uid}"))
    await text(socket)
    assert hub.Hub.current().watches
    await socket.disconnect()
    await asyncio.sleep(0.05)
    current = hub.Hub.current()
    assert (current.watches, current.lists, current.boxes, current.tasks) == ({}, {}, set(), [])
