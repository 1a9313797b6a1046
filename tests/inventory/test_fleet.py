"""The fleet sweep: what it reads, what it keeps, and how little it asks of a BMC."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.utils import timezone

from gpucloud import vault
from gpucloud.models import Event
from inventory import sweep
from inventory.models import Bmc, Server

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def enrol(bmc, name="one", password="right", certificate=None, address=None, **server):
    made = Server.objects.create(name=name, **server)
    row = Bmc.objects.create(
        server=made,
        driver="redfish",
        address=address or bmc.address,
        certificate=bmc.fingerprint if certificate is None else certificate,
    )
    vault.put("bmc", row.uid, "credentials", {"username": "admin", "password": password})
    return made


@sync_to_async
def read(server):
    server.refresh_from_db()
    return server


@sync_to_async
def verbs():
    return list(Event.objects.order_by("id").values_list("verb", flat=True))


@pytest.fixture
async def fleet():
    async with aiohttp.ClientSession() as http:
        made = sweep.Sweep(http)

        async def a_round():
            await made.begin_round()
            await made.settled()

        made.a_round = a_round
        yield made
        await made.close()


async def test_power_and_health_are_read_and_kept_with_their_time(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    await fleet.a_round()
    server = await read(server)
    assert (server.power, server.health, server.power_via) == ("on", "OK", "redfish")
    assert timezone.now() - server.power_at < timedelta(seconds=5)
    assert server.power_now == "on"


async def test_a_session_is_kept_and_ended_at_the_end(make_bmc, fleet):
    bmc = await make_bmc()
    await enrol(bmc)
    for _ in range(3):
        await fleet.a_round()
    assert bmc.log == ["login", "GET System", "GET System", "GET System"]
    await fleet.close()
    assert bmc.sessions == {}


async def test_an_ended_session_costs_one_login_and_one_more_get(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    await fleet.a_round()
    bmc.sessions.clear()
    bmc.log.clear()
    bmc.power = "Off"
    await fleet.a_round()
    assert (await read(server)).power == "off"
    assert bmc.log == ["GET System", "login", "GET System"]


async def test_a_bmc_without_sessions_is_read_with_basic(make_bmc, fleet):
    bmc = await make_bmc()
    bmc.sessions_known = False
    server = await enrol(bmc)
    await fleet.a_round()
    assert (await read(server)).power == "on"


async def test_an_address_without_a_system_finds_the_only_one(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc, address=bmc.root)
    await fleet.a_round()
    assert (await read(server)).power == "on"
    assert len(bmc.gets()) == 2


async def test_unreachable_is_unknown_and_not_off(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    await fleet.a_round()
    await bmc.stop()
    await fleet.a_round()
    await fleet.a_round()
    server = await read(server)
    assert server.power == "unknown"
    assert server.power_problem.startswith("The BMC")
    assert await verbs() == ["bmc silent"]


async def test_a_bmc_that_comes_back_is_told_of(make_bmc, fleet):
    bmc = await make_bmc()
    bmc.answer = lambda: web.Response(status=503)
    server = await enrol(bmc)
    await fleet.a_round()
    assert len(bmc.gets()) == 2, "read once more, not more often"
    bmc.answer = None
    await fleet.a_round()
    assert (await read(server)).power == "on"
    assert await verbs() == ["bmc silent", "bmc back"]


async def test_another_certificate_than_the_pinned_one_gets_no_password(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc, certificate="ab" * 32)
    await fleet.a_round()
    server = await read(server)
    assert "certificate" in server.power_problem
    assert bmc.log == []


async def test_a_refused_password_is_not_tried_every_round(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc, password="wrong")
    for _ in range(4):
        await fleet.a_round()
    assert bmc.log == ["login"]
    assert "user name or password" in (await read(server)).power_problem


async def test_a_corrected_password_is_tried_at_once(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc, password="wrong")
    await fleet.a_round()
    uid = await sync_to_async(lambda: server.bmc.uid)()
    put = sync_to_async(vault.put)
    await put("bmc", uid, "credentials", {"username": "admin", "password": "right"})
    await fleet.a_round()
    assert (await read(server)).power == "on"


@pytest.mark.parametrize(
    "body",
    [
        b"x" * 300_000,
        b"[]",
        b"{",
        b"[" * 5000,
        b'{"PowerState": {}}',
        b'{"PowerState": "Dreaming"}',
    ],
)
async def test_answers_that_make_no_sense_are_unknown(make_bmc, fleet, body):
    bmc = await make_bmc()
    bmc.answer = lambda: web.Response(body=body)
    server = await enrol(bmc)
    await fleet.a_round()
    server = await read(server)
    assert server.power == "unknown"
    assert server.power_problem


async def test_links_to_another_address_are_not_followed(make_bmc, fleet):
    bmc, other = await make_bmc(), await make_bmc("other")
    bmc.answer = lambda: web.Response(status=302, headers={"Location": other.address})
    server = await enrol(bmc)
    await fleet.a_round()
    assert other.log == []
    assert (await read(server)).power == "unknown"


async def test_nothing_is_written_while_nothing_changes(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    await fleet.a_round()
    first = await read(server)
    at, rev = first.power_at, first.rev
    await fleet.a_round()
    again = await read(server)
    assert (again.power_at, again.rev) == (at, rev)


async def test_an_unchanged_reading_is_refreshed_after_a_minute(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    await fleet.a_round()
    rev = (await read(server)).rev
    old = timezone.now() - timedelta(seconds=61)
    await sync_to_async(Server.objects.update)(power_at=old)
    await fleet.a_round()
    again = await read(server)
    assert again.power_at > old
    assert again.rev == rev, "pages need not be told"


async def test_a_newer_reading_by_an_action_stays(make_bmc, fleet):
    bmc = await make_bmc()
    server = await enrol(bmc)
    ahead = timezone.now() + timedelta(seconds=30)
    await sync_to_async(Server.objects.update)(power="off", power_at=ahead)
    await fleet.a_round()
    assert (await read(server)).power == "off"


async def test_a_reading_of_two_minutes_ago_is_shown_as_unknown(make_bmc):
    old = timezone.now() - timedelta(seconds=121)
    assert Server(name="x", power="on", power_at=old).power_now == "unknown"
    assert Server(name="x", power="off").power_now == "unknown"


async def test_a_slow_bmc_keeps_no_other_waiting_and_is_asked_once_at_a_time(make_bmc, fleet):
    slow, quick = await make_bmc("slow"), await make_bmc("quick")
    slow.delay = 3
    lagging = await enrol(slow, "slow")
    server = await enrol(quick, "quick")
    for _ in range(3):
        await fleet.begin_round()
        await fleet._busy[server.pk]
    assert len(quick.gets()) == 3
    assert not fleet._busy[lagging.pk].done(), "the slow one is still being asked"
    await fleet.settled()
    assert slow.most_in_flight == 1


async def test_what_a_slow_bmc_says_is_kept_like_the_rest(make_bmc, fleet):
    slow, quick = await make_bmc("slow"), await make_bmc("quick")
    slow.delay = 0.2
    server = await enrol(slow, "slow")
    await enrol(quick, "quick")
    await fleet.begin_round()
    await asyncio.sleep(0.1)
    await fleet._keep()
    await fleet.settled()
    assert (await read(server)).power == "on"


async def test_no_more_than_32_bmcs_are_asked_at_once(make_bmc, fleet, monkeypatch):
    bmc = await make_bmc()
    bmc.delay = 0.1
    for n in range(40):
        await enrol(bmc, f"s{n}", address=f"{bmc.root}/redfish/v1/Systems/1?n={n}")
    await fleet.begin_round()
    await fleet.settled()
    assert 1 < bmc.most_in_flight <= 32


async def test_retired_servers_are_left_alone(make_bmc, fleet):
    bmc = await make_bmc()
    await enrol(bmc, state="retired")
    await fleet.a_round()
    assert bmc.log == []
