"""The watcher: hosts mirrored into servers, operations woken at once, breaks survived."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from gpucloud import vault
from gpucloud.engine import steps
from gpucloud.models import Event, Step
from inventory import mirror, watcher
from inventory.models import Bmc, KubernetesConnection, Server
from inventory.watching import follow
from inventory.watching.client import Api
from inventory.watching.follow import Follower
from inventory.watching.runner import Runner
from provisioning.models import Operation
from tenants import watch as tenant_watch
from tests import make
from tests.inventory.kube_stub import StubApi

pytestmark = pytest.mark.django_db(transaction=True)
HOSTS = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"
DHCP = "metal3.vcluster.com/"
NOTES = {f"{DHCP}ip-address": "10.10.0.11/22", f"{DHCP}gateway": "10.10.0.1"}
FAR = "2100-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(follow, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(follow, "LIST_EVERY_SECONDS", 0.1)


@pytest.fixture
async def api(tmp_path):
    made = StubApi(tmp_path)
    await made.start()
    yield made
    await made.stop()


def host(name="bare-metal-1", state="available", annotations=NOTES, **status):
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": dict(annotations)},
        "spec": {"online": False},
        "status": {"provisioning": {"state": state}, "poweredOn": False, **status},
    }


@sync_to_async
def enrol(api, name="bare-metal-1", address="", **fields):
    connection, new = KubernetesConnection.objects.get_or_create(name="host")
    if new:
        vault.put("connection", connection.uid, "kubeconfig", api.kubeconfig)
    fields = {
        "provisioning_address": "10.10.0.11/22",
        "provisioning_gateway": "10.10.0.1",
        **fields,
    }
    server = Server.objects.create(
        name=name, connection=connection, engine_id=f"default/{name}", **fields
    )
    Bmc.objects.create(server=server, driver="metal3", address=address)
    return server


@sync_to_async
def operate(server, claim=None):
    operation = Operation.objects.create(kind="claim", server=server, claim=claim)
    steps.begin("operation", operation.uid, ["stop"])
    put_off("operation", operation)
    return operation


def put_off(kind, owner):
    Step.objects.filter(kind=kind, owner_uid=owner.uid).update(next_try_at=FAR)


def looked_at(owner):
    step = Step.objects.get(owner_uid=owner.uid)
    return step.next_try_at is not None and step.next_try_at.year < 2100


async def until(check, seconds=20.0):
    """Wait until a check of the database holds."""
    began = time.monotonic()
    while not await sync_to_async(check)():
        assert time.monotonic() - began < seconds, "it did not happen"
        await asyncio.sleep(0.01)


def reads(server, **wanted):
    def check():
        server.refresh_from_db()
        return all(getattr(server, name) == value for name, value in wanted.items())

    return check


@pytest.fixture
async def watching():
    """Run the watcher over these sources until the test ends."""
    tasks = []

    def start(*sources):
        tasks.append(asyncio.create_task(Runner(sources or [watcher.host_subjects]).run()))

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_host_is_mirrored_into_its_server_as_it_changes(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available", power="off", power_via="metal3"))
    api.put(HOSTS, host(state="provisioning", poweredOn=True))
    await until(reads(server, engine_state="provisioning", power="on"))
    assert len(api.lists) == 1


async def test_a_change_of_a_host_wakes_its_operation_within_half_a_second(api, watching):
    server = await enrol(api)
    operation = await operate(server)
    api.put(HOSTS, host(state="provisioning"))
    watching()
    await until(reads(server, engine_state="provisioning"))
    await sync_to_async(put_off)("operation", operation)
    api.put(HOSTS, host(state="provisioned"))
    await until(lambda: looked_at(operation))


async def test_an_error_of_metal3_is_kept_and_told_once(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host(errorType="provisioning error", errorMessage="no such image"))
    watching()
    await until(
        reads(
            server,
            engine_problem="provisioning error: no such image",
            engine_problem_code="HOST_ERROR",
        )
    )
    api.put(HOSTS, host())
    await until(reads(server, engine_problem="", engine_problem_code=""))
    verbs = await sync_to_async(lambda: list(Event.objects.values_list("verb", flat=True)))()
    assert verbs == ["engine problem", "engine well"]


async def test_a_paused_host_is_told_of(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host(annotations={**NOTES, "baremetalhost.metal3.io/paused": "capm3"}))
    watching()
    await until(reads(server, engine_problem_code="HOST_PAUSED"))


async def test_power_is_unknown_while_metal3_cannot_reach_the_bmc(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host(errorType="power management error", errorMessage="timeout"))
    watching()
    await until(reads(server, power="unknown", engine_problem_code="HOST_ERROR"))


async def test_a_server_read_directly_keeps_its_own_power(api, watching):
    server = await enrol(api, address="https://127.0.0.1:1/redfish/v1/Systems/1", power="on")
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    assert server.power == "on"


async def test_a_host_that_is_gone_is_neither_off_nor_wiped(api, watching):
    server = await enrol(api, state="cleaning", clean_tenancy=None)
    operation = await operate(server)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    await sync_to_async(put_off)("operation", operation)
    api.remove(HOSTS, "bare-metal-1")
    await until(reads(server, engine_problem_code="HOST_MISSING"))
    assert (server.power, server.state, server.clean_tenancy) == ("unknown", "cleaning", None)
    await until(lambda: looked_at(operation))


async def test_a_host_that_went_while_we_were_away_is_missed_at_the_next_list(api, watching):
    server = await enrol(api, engine_state="available")
    watching()
    await until(reads(server, engine_problem_code="HOST_MISSING"))


async def test_a_cut_watch_is_resumed_where_it_was_without_listing(api, watching):
    server = await enrol(api)
    last = api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    await until(lambda: api._streams)
    api.cut()
    api.put(HOSTS, host(state="preparing"))
    await until(reads(server, engine_state="preparing"))
    assert len(api.lists) == 1
    assert api.watches[1] == int(last["metadata"]["resourceVersion"])


async def test_a_forgotten_past_is_listed_once_again(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    await until(lambda: api._streams)
    api.put("/elsewhere", host())
    api.forget()
    api.objects[HOSTS]["bare-metal-1"] = host(state="inspecting")
    api.cut()
    await until(reads(server, engine_state="inspecting"))
    assert len(api.lists) == 2


async def test_an_api_that_is_away_is_told_of_and_followed_again(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    connection = server.connection
    await until(reads(server, engine_state="available"))
    await until(lambda: api._streams)
    api.down = True
    api.cut()

    def problem():
        connection.refresh_from_db()
        return connection.problem

    await until(problem)
    api.put(HOSTS, host(state="preparing"))
    api.down = False
    await until(reads(server, engine_state="preparing"))
    await until(lambda: not problem())


async def test_stripped_dhcp_annotations_are_put_back_and_foreign_ones_left(api, watching):
    server = await enrol(api)
    foreign = {"gitops.example.com/commit": "abc"}
    api.put(HOSTS, host(annotations={**NOTES, **foreign}))
    watching()
    await until(reads(server, engine_state="available"))
    assert api.patches == []
    stripped = api.put(HOSTS, host(annotations=foreign))
    await until(lambda: Event.objects.filter(verb="dhcp repaired").exists())
    (patch,) = api.patches
    name, body, query, content = patch
    assert (name, content) == ("bare-metal-1", "application/merge-patch+json")
    assert query["fieldManager"] == "gpucloud"
    assert body["metadata"]["resourceVersion"] == stripped["metadata"]["resourceVersion"]
    assert body["metadata"]["annotations"] == NOTES
    kept = api.objects[HOSTS]["bare-metal-1"]["metadata"]["annotations"]
    assert kept == {**NOTES, **foreign}


async def test_a_repair_that_meets_another_writer_is_made_from_the_newer_version(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    api.refuse_patches = 1
    api.put(HOSTS, host(annotations={}))
    await asyncio.sleep(0.6)
    api.put(HOSTS, host(annotations={}, state="preparing"))
    await until(lambda: Event.objects.filter(verb="dhcp repaired").exists())
    assert len(api.patches) == 2


async def test_somebody_who_strips_again_and_again_is_not_fought_in_a_loop(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, engine_state="available"))
    for _ in range(20):
        api.put(HOSTS, host(annotations={}))
        await asyncio.sleep(0.03)
    assert 1 <= len(api.patches) <= 3


async def test_the_address_of_a_new_host_is_learned(api, watching):
    server = await enrol(api, provisioning_address="", provisioning_gateway="")
    api.put(HOSTS, host())
    watching()
    await until(
        reads(server, provisioning_address="10.10.0.11/22", provisioning_gateway="10.10.0.1")
    )


async def test_an_intact_watch_keeps_metal3s_reading_fresh(api, watching):
    server = await enrol(api)
    api.put(HOSTS, host())
    watching()
    await until(reads(server, power="off"))
    old = timezone.now() - timedelta(seconds=70)
    await sync_to_async(Server.objects.update)(power_at=old, engine_at=old)
    await sync_to_async(mirror.confirm)(server.connection_id, "default")
    await sync_to_async(server.refresh_from_db)()
    assert server.power_now == "off"


async def test_a_handler_that_fails_gets_everything_again(api):
    class Forgetful:
        def __init__(self):
            self.lists, self.failures = 0, 1

        async def listed(self, objects):
            self.lists += 1

        async def seen(self, kind, obj):
            if self.failures:
                self.failures -= 1
                raise RuntimeError("could not keep it")

        async def alive(self):
            return

        async def trouble(self, problem):
            return

    client, handler = Api(api.kubeconfig), Forgetful()
    task = asyncio.create_task(Follower(client, HOSTS, handler).run())
    while not api.watches:
        await asyncio.sleep(0.01)
    api.put(HOSTS, host())
    while handler.lists < 2:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.close()


async def test_an_event_of_many_megabytes_is_read(api):
    client = Api(api.kubeconfig)
    api.put(HOSTS, host())
    api.put(HOSTS, {**host(), "much": "x" * 3_000_000})
    seen = []
    async for kind, obj in client.watch(HOSTS, "100", 5):
        seen.append((kind, len(str(obj)) > 3_000_000))
        if len(seen) == 3:
            break
    assert seen == [("OPEN", False), ("ADDED", False), ("MODIFIED", True)]
    await client.close()


# -- tenants


def node(name, ready="False", **meta):
    return {
        "metadata": {"name": name, **meta},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {}},
    }


@pytest.fixture
def cluster():
    return make.cluster("one")


async def test_a_node_that_becomes_ready_wakes_its_claim_alone(api, watching, cluster):
    @sync_to_async
    def prepare():
        vault.put("cluster", cluster.uid, "kubeconfig", api.kubeconfig)
        made = []
        for name in ("one-a", "one-b"):
            server = Server.objects.create(name=name, tenancy=2)
            claim = make.claim(name, "provisioning", cluster=cluster, server=server, node_name=name)
            Operation.objects.filter(claim=claim).delete()
            made.append((server, claim))
        return made

    pairs = await prepare()
    first, second = [await operate(server, claim) for server, claim in pairs]
    api.put("/api/v1/nodes", node("one-a"))
    watching(tenant_watch.node_subjects)
    await until(lambda: looked_at(first))
    await sync_to_async(put_off)("operation", first)
    await sync_to_async(put_off)("operation", second)
    api.put("/api/v1/nodes", node("one-a", "True"))
    await until(lambda: looked_at(first))
    assert not await sync_to_async(looked_at)(second)


async def test_a_kubelets_heartbeat_wakes_nobody(api, watching, cluster):
    @sync_to_async
    def prepare():
        vault.put("cluster", cluster.uid, "kubeconfig", api.kubeconfig)
        server = Server.objects.create(name="one-a", tenancy=2)
        claim = make.claim("one-a", "provisioning", cluster=cluster, server=server)
        Operation.objects.filter(claim=claim).delete()
        return server, claim

    operation = await operate(*await prepare())
    api.put("/api/v1/nodes", node("one-a", "True"))
    watching(tenant_watch.node_subjects)
    await until(lambda: looked_at(operation))
    await sync_to_async(put_off)("operation", operation)
    beat = node("one-a", "True")
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    api.put("/api/v1/nodes", beat)
    await asyncio.sleep(0.2)
    assert not await sync_to_async(looked_at)(operation)


async def test_a_cluster_that_is_gone_is_no_longer_followed(api, watching, cluster, monkeypatch):
    monkeypatch.setattr("inventory.watching.runner.LOOK_EVERY_SECONDS", 0.05)
    put = sync_to_async(vault.put)
    await put("cluster", cluster.uid, "kubeconfig", api.kubeconfig)
    watching(tenant_watch.node_subjects)
    await until(lambda: len(api._streams) == 1)
    await sync_to_async(type(cluster).objects.update)(state="gone")

    def nobody_listens():
        # A stream notices that its client has gone when it writes.
        api.put("/api/v1/nodes", node("anybody"))
        return not api._streams

    await until(nobody_listens)


async def test_an_instance_wakes_its_cluster_by_label_or_name(api, watching, cluster):
    path = tenant_watch.INSTANCES.format(cluster.tenant.namespace)

    @sync_to_async
    def prepare():
        connection = KubernetesConnection.objects.create(name="host")
        vault.put("connection", connection.uid, "kubeconfig", api.kubeconfig)
        plane = cluster.template.control_plane
        plane.driver, plane.connection = tenant_watch.PLATFORM, connection
        plane.save()
        steps.begin("cluster", cluster.uid, ["deploying"])
        put_off("cluster", cluster)

    await prepare()
    watching(tenant_watch.instance_subjects)
    await until(lambda: len(api.watches) == 1)
    instance = {"metadata": {"name": "one"}, "status": {"phase": "Pending"}}
    api.put(path, instance)
    await until(lambda: looked_at(cluster))
    await sync_to_async(put_off)("cluster", cluster)
    instance["metadata"] = {
        "name": "odd",
        "labels": {tenant_watch.CLUSTER_LABEL: str(cluster.uid)},
    }
    api.put(path, instance)
    await until(lambda: looked_at(cluster))
