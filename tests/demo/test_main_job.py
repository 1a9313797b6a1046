"""The main job over REST on a running demo, judged by what machines, switch and disks did."""

from __future__ import annotations

import json
import socket

import pytest

from tests.demo.cloud import PROVISIONING, RACK, Cloud
from tests.demo.judge import Judge

pytestmark = pytest.mark.demo

SEEDS = ("bare-metal-1", "bare-metal-2", "bare-metal-3", "bare-metal-4")
FOREIGN = ("inventory.example.com/asset", "gitops.example.com/commit")
DHCP = ("ip-address", "gateway", "dns-servers")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    made = Cloud(tmp_path_factory.mktemp("demo"), free_port())
    made.start()
    try:
        made.until("the rack available", lambda: made.servers_available(*SEEDS, "dgx-01"), 90)
        yield made
    finally:
        made.stop()


def foreign_of(cloud, name):
    meta = cloud.host(name)["metadata"]
    kept = {k: v for k, v in meta["annotations"].items() if k in FOREIGN}
    return json.dumps([kept, meta["labels"]], sort_keys=True)


def dhcp_of(cloud, name):
    annotations = cloud.host(name)["metadata"]["annotations"]
    return {key: annotations.get(f"metal3.vcluster.com/{key}") for key in DHCP}


def markers(cloud, name):
    return [drive["marker"] for drive in cloud.machine(name)["drives"] if drive["marker"]]


@pytest.mark.parametrize("round", [1, 2])
def test_a_cluster_gets_its_nodes_and_gives_them_back_wiped(cloud, round):
    since = cloud.acts()[-1]["seq"]
    foreign = {name: foreign_of(cloud, name) for name in SEEDS[:2]}
    dhcp = {name: dhcp_of(cloud, name) for name in SEEDS[:2]}
    assert all(all(found.values()) for found in dhcp.values())

    cloud.create(
        "default", "one", {"gpu": "metal3.gpu-server", "cpu": "metal3.cpu-server"}, segment="rack"
    )
    claims = {claim["pool"]: claim for claim in cloud.ready("default", "one", 2)}
    assert claims["gpu"]["server"] == "bare-metal-2"
    assert claims["cpu"]["server"] == "bare-metal-1"
    cluster = cloud.get("/clusters/default/one/")
    assert cluster["state"] == "ready"
    _, kubeconfig = cloud.call("POST", "/clusters/default/one/kubeconfig/", {})
    path = cloud.data / "tenant.kubeconfig"
    path.write_text(kubeconfig)
    nodes = json.loads(cloud.kubectl("get", "nodes", "-o", "json", kubeconfig=path))["items"]
    labels = {one["metadata"]["name"]: one["metadata"]["labels"].get("workload") for one in nodes}
    assert labels == {"bare-metal-2": "gpu", "bare-metal-1": "cpu"}
    for name in SEEDS[:2]:
        judge = Judge(cloud, name, since)
        assert judge.moved_through_quarantine("eno1", RACK)
        assert judge.moved_through_quarantine("eno2", RACK)
        assert judge.moved_only_while_off()
        assert judge.violations() == []
        assert [port["vlan"] for port in cloud.machine(name)["ports"]] == [RACK, RACK]
        assert markers(cloud, name), "the tenant's system wrote to every drive"
        assert dhcp_of(cloud, name) == dhcp[name]

    cloud.gone("default", "one")
    cloud.until("both servers back", lambda: cloud.servers_available(*SEEDS[:2]), 30)
    for name in SEEDS[:2]:
        judge = Judge(cloud, name, since)
        machine = cloud.machine(name)
        assert judge.violations() == []
        assert judge.moved_only_while_off()
        assert [port["vlan"] for port in machine["ports"]] == [PROVISIONING, PROVISIONING]
        assert machine["power"].lower() == "off"
        assert markers(cloud, name) == []
        assert all(drive["blank"] for drive in machine["drives"])
        assert foreign_of(cloud, name) == foreign[name]
        assert dhcp_of(cloud, name) == dhcp[name]
        host = cloud.host(name)
        assert "consumerRef" not in host["spec"] and "image" not in host["spec"]
        assert host["spec"]["online"] is False


def test_two_tenants_at_once_and_a_third_that_waits_for_a_server(cloud):
    cloud.create(
        "default", "one", {"gpu": "metal3.gpu-server", "cpu": "metal3.cpu-server"}, segment="rack"
    )
    cloud.create("tenant1", "two", {"gpu": "metal3.gpu-b", "cpu": "metal3.cpu-b"})
    one = {claim["pool"]: claim for claim in cloud.ready("default", "one", 2)}
    two = {claim["pool"]: claim for claim in cloud.ready("tenant1", "two", 2)}
    assert {claim["server"] for claim in one.values()} == {"bare-metal-1", "bare-metal-2"}
    assert {claim["server"] for claim in two.values()} == {"bare-metal-3", "bare-metal-4"}
    vlan = {port["vlan"] for port in cloud.machine("bare-metal-4")["ports"]}
    assert len(vlan) == 1 and RACK not in vlan and PROVISIONING not in vlan

    cloud.create("tenant2", "three", {"gpu": "metal3.gpu-server"})

    def waiting():
        found = cloud.claims("tenant2", "three")
        waits = found and found[0]["code"] == "WAITING_FOR_CAPACITY"
        return waits and cloud.get(f"/node-claims/tenant2/{found[0]['name']}/")

    claim = cloud.until("the third cluster waits", waiting)
    assert claim["queue"] == {"place": 1, "waiting": 1}
    assert claim["server"] is None

    cloud.gone("default", "one")
    third = cloud.ready("tenant2", "three", 1)[0]
    assert third["server"] == "bare-metal-2"
    disk = [one["after"] for one in cloud.acts(object="bare-metal-2/nvme0n1", verb="disk")]
    assert "wiped" in disk[1:-1], "it was wiped between the two tenants"

    cloud.gone("tenant1", "two")
    cloud.gone("tenant2", "three")
    cloud.until("the rack available", lambda: cloud.servers_available(*SEEDS), 60)
    segments = [one["name"] for one in cloud.listed("/segments/") if one["role"] == "tenant"]
    assert segments == ["rack"], "segments made for clusters die with them"
