"""Tenant APIs of the lab: their life, who may enter, how nodes join and are lost."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from gpucloud.lab import setup
from gpucloud.lab.acts import ActLog
from gpucloud.lab.kube import keeper
from gpucloud.lab.kube.client import ApiError, Client
from gpucloud.lab.kube.clusters import Clusters

RACK = {
    "servers": [], "switches": [], "images": [],
    "kubernetes": {"host_version": "v1.36.5", "tenant_version": "v1.36.0"},
}  # fmt: skip
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
async def make(tmp_path, monkeypatch):
    rack = tmp_path / "rack.json"
    rack.write_text(json.dumps(RACK))
    monkeypatch.setenv("GPUCLOUD_DATA", str(tmp_path))
    monkeypatch.setenv("LAB_RACK", str(rack))
    setup.main()
    made = []

    def clusters():
        acts = ActLog(tmp_path / "lab" / "acts" / "kube.jsonl")
        made.append(Clusters(tmp_path, RACK, acts))
        return made[-1]

    yield clusters
    for one in made:
        await one.stop_all()


@pytest.fixture
async def clusters(make):
    found = make()
    await found.start_all()
    return found


class Caller:
    """Somebody at an API, with a token, a client certificate, or nothing."""

    def __init__(self, running, token="", context=None):
        self.url = running.url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.context = context or ssl.create_default_context(cadata=running.ca)

    async def __call__(self, method, path, body=None, headers=None):
        async with (
            aiohttp.ClientSession(headers=self.headers) as http,
            http.request(
                method, self.url + path, json=body, headers=headers, ssl=self.context
            ) as answer,
        ):
            return answer.status, await answer.text()


def bootstrap_token(ident="abcdef", secret="0123456789abcdef", valid=timedelta(hours=1)):
    until = (datetime.now(UTC) + valid).isoformat(timespec="seconds")
    return {
        "metadata": {"name": f"bootstrap-token-{ident}"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {"token-id": ident, "token-secret": secret, "expiration": until},
    }


async def join(running, token="abcdef.0123456789abcdef"):
    status, text = await Caller(running)("GET", f"/node/join?token={token}")
    found = re.search(r"# kubelet-token: (\S+)", text)
    return status, found[1] if found else ""


async def joined(running, name="n1"):
    """The caller of a kubelet that has registered its node."""
    client = Client(running.cluster, "gpucloud")
    if await client.find("Secret", "bootstrap-token-abcdef", "kube-system") is None:
        await client.create("Secret", bootstrap_token(), "kube-system")
    kubelet = Caller(running, (await join(running))[1])
    ready = [{"type": "Ready", "status": "True"}]
    node = {"metadata": {"name": name}, "status": {"conditions": ready}}
    status, _ = await kubelet("POST", "/api/v1/nodes", node)
    assert status == 201
    return kubelet


async def test_each_cluster_has_a_port_objects_and_admins_of_its_own(clusters):
    one, two = await clusters.start("p-a.one"), await clusters.start("p-b.two")
    assert len({clusters.running("host").url, one.url, two.url}) == 3
    await Client(one.cluster, "x").create("ConfigMap", {"metadata": {"name": "c"}}, "default")
    path = "/api/v1/namespaces/default/configmaps/c"
    assert (await Caller(one, one.token)("GET", path))[0] == 200
    assert (await Caller(two, two.token)("GET", path))[0] == 404
    assert (await Caller(two, one.token)("GET", path))[0] == 401
    assert (await Caller(one)("GET", path))[0] == 401


async def test_a_client_certificate_opens_its_own_cluster_only(clusters, tmp_path):
    one, two = await clusters.start("one"), await clusters.start("two")
    pair = tmp_path / "pair.pem"
    pair.write_text(one.client_certificate + one.client_key)
    context = ssl.create_default_context(cadata=one.ca)
    context.load_cert_chain(pair)
    assert (await Caller(one, context=context)("GET", "/api/v1/nodes"))[0] == 200
    assert (await Caller(two, context=context)("GET", "/api/v1/nodes"))[0] == 401


async def test_a_restart_brings_every_cluster_back_as_it_was(clusters, make):
    one = await clusters.start("one")
    await Client(one.cluster, "x").create("ConfigMap", {"metadata": {"name": "c"}}, "default")
    await clusters.stop_all()
    again = make()
    await again.start_all()
    back = again.running("one")
    assert (back.url, back.token, back.client_key) == (one.url, one.token, one.client_key)
    assert await Client(back.cluster, "x").get("ConfigMap", "c", "default")


async def test_a_stopped_cluster_is_forgotten_but_keeps_its_port(clusters, make):
    one = await clusters.start("one")
    await Client(one.cluster, "x").create("ConfigMap", {"metadata": {"name": "c"}}, "default")
    await clusters.stop("one", forget=True)
    with pytest.raises(aiohttp.ClientConnectorError):
        await Caller(one, one.token)("GET", "/version")
    with pytest.raises(ApiError, match="not kept"):
        await Client(one.cluster, "x").create("ConfigMap", {"metadata": {"name": "d"}}, "default")
    fresh = await clusters.start("one")
    assert fresh.url == one.url
    assert fresh.token != one.token
    assert await Client(fresh.cluster, "x").find("ConfigMap", "c", "default") is None


async def test_starting_twice_at_once_starts_one(clusters):
    one, same = await asyncio.gather(clusters.start("one"), clusters.start("one"))
    assert one is same


@pytest.mark.parametrize("name", ["", "../x", "Big", "a/b"])
async def test_names_that_are_no_folders_are_refused(clusters, name):
    with pytest.raises(ValueError, match="cannot name a cluster"):
        await clusters.start(name)


async def test_the_join_door_wants_a_token_that_exists_and_lasts(clusters):
    one = await clusters.start("one")
    client = Client(one.cluster, "gpucloud")
    assert (await join(one))[0] == 403
    await client.create("Secret", bootstrap_token(), "kube-system")
    late = bootstrap_token("late00", valid=timedelta(seconds=-1))
    await client.create("Secret", late, "kube-system")
    assert (await join(one))[0] == 200
    assert (await join(one, "abcdef.0000000000000000"))[0] == 403
    assert (await join(one, "late00.0123456789abcdef"))[0] == 403
    assert (await join(one, ""))[0] == 403
    await client.delete("Secret", "bootstrap-token-abcdef", "kube-system")
    assert (await join(one))[0] == 403


async def test_a_plain_secret_is_no_bootstrap_token(clusters):
    one = await clusters.start("one")
    secret = bootstrap_token() | {"type": "Opaque"}
    await Client(one.cluster, "x").create("Secret", secret, "kube-system")
    assert (await join(one))[0] == 403


async def test_a_kubelet_may_only_touch_its_own_node(clusters):
    one = await clusters.start("one")
    kubelet = await joined(one, "n1")
    await joined(one, "n2")
    status = {"status": {"nodeInfo": {"kubeletVersion": "v1.36.0"}}}
    node = "/api/v1/nodes/"
    assert (await kubelet("PATCH", node + "n1/status", status, MERGE))[0] == 200
    assert (await kubelet("GET", node + "n1"))[0] == 200
    assert (await kubelet("PATCH", node + "n2/status", status, MERGE))[0] == 403
    assert (await kubelet("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}))[0] == 403
    assert (await kubelet("DELETE", node + "n1"))[0] == 403
    assert (await kubelet("GET", "/api/v1/namespaces/kube-system/secrets"))[0] == 403
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert (await kubelet("POST", lease, {"metadata": {"name": "n1"}, "spec": {}}))[0] == 201
    assert (await kubelet("POST", lease, {"metadata": {"name": "n2"}, "spec": {}}))[0] == 403


async def test_a_kubelet_is_still_known_after_a_restart(clusters, make):
    one = await clusters.start("one")
    kubelet = await joined(one, "n1")
    await clusters.stop_all()
    again = make()
    await again.start_all()
    assert (await kubelet("GET", "/api/v1/nodes/n1"))[0] == 200
    assert (await kubelet("GET", "/api/v1/nodes/n2"))[0] == 403


async def test_a_bootstrap_token_reads_next_to_nothing(clusters):
    one = await clusters.start("one")
    await Client(one.cluster, "x").create("Secret", bootstrap_token(), "kube-system")
    guest = Caller(one, "abcdef.0123456789abcdef")
    assert (await guest("GET", "/version"))[0] == 200
    assert (await guest("GET", "/api/v1/nodes"))[0] == 403


async def test_a_silent_node_becomes_not_ready_and_comes_back(clusters, monkeypatch):
    one = await clusters.start("one")
    kubelet = await joined(one, "n1")
    client = Client(one.cluster, "x")
    keeper.look(one)
    assert (await client.get("Node", "n1"))["status"]["conditions"][0]["status"] == "True"
    monkeypatch.setattr(keeper, "GRACE", -1.0)
    keeper.look(one)
    keeper.look(one)
    node = await client.get("Node", "n1")
    condition = node["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert [t["key"] for t in node["spec"]["taints"]] == ["node.kubernetes.io/unreachable"] * 2
    monkeypatch.setattr(keeper, "GRACE", 40.0)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert (await kubelet("PATCH", "/api/v1/nodes/n1/status", ready, MERGE))[0] == 200
    keeper.look(one)
    assert (await client.get("Node", "n1"))["spec"]["taints"] == []


async def test_expired_bootstrap_tokens_are_removed(clusters):
    one = await clusters.start("one")
    client = Client(one.cluster, "gpucloud")
    late = bootstrap_token("late00", valid=timedelta(seconds=-1))
    await client.create("Secret", late, "kube-system")
    await client.create("Secret", bootstrap_token(), "kube-system")
    keeper.look(one)
    kept = await client.list("Secret", "kube-system")
    assert [secret["metadata"]["name"] for secret in kept] == ["bootstrap-token-abcdef"]


async def test_events_are_kept_for_an_hour(clusters):
    client = Client(clusters.running("host").cluster, "x")
    for name, hours in (("old", 2), ("new", 0)):
        last = (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="seconds")
        body = {"metadata": {"name": name}, "involvedObject": {}, "lastTimestamp": last}
        await client.create("Event", body, "default")
    keeper.look(clusters.running("host"))
    assert [event["metadata"]["name"] for event in await client.list("Event")] == ["new"]


async def test_the_kubeconfig_names_url_token_and_authority(clusters):
    one = await clusters.start("one")
    text = one.kubeconfig()
    assert one.url in text
    assert one.token in text
    assert base64.b64encode(one.ca.encode()).decode()[:60] in text.replace("\n", "")


async def test_the_client_meets_the_same_conflicts_as_over_http(clusters):
    client = Client(clusters.running("host").cluster, "metal3")
    host = {"metadata": {"name": "h", "namespace": "default"}, "spec": {"online": False}}
    made = await client.create("bmh", host)
    await client.merge("bmh", "h", {"spec": {"online": True}}, "default")
    made["spec"]["online"] = True
    with pytest.raises(ApiError) as caught:
        await client.update("BareMetalHost", made)
    assert caught.value.reason == "Conflict"
    assert await client.delete("bmh", "nope", "default", missing_ok=True) is None


async def test_the_clients_watch_raises_when_the_past_is_forgotten(clusters):
    client = Client(clusters.running("host").cluster, "metal3")
    with pytest.raises(ApiError) as caught:
        async for _ in client.watch("BareMetalHost", since="999999"):
            pass
    assert caught.value.code == 410
