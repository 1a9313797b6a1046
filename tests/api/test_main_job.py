"""The main job as a client does it: everything is asked and seen by REST, on the fakes."""

from __future__ import annotations

from network.models import Link
from tests import make
from tests.drive import rounds

MACS = ["52:54:00:00:00:01", "52:54:00:00:00:02"]


def build(client):
    """Provider, image, types, servers with cables: as a platform admin sets them up."""
    make.fabric()
    make.template()
    make.tenant()
    image = {"name": "ubuntu", "url": "https://images.example.com/u.qcow2", "checksum": "ab" * 32}
    made = [
        client.post("node-providers/", {"name": "metal", "driver": "fake"}),
        client.post("os-images/", image),
    ]
    for index, role in enumerate(("gpu", "cpu")):
        node_type = {
            "provider": "metal",
            "name": f"{role}-server",
            "selector": {"role": role},
            "nic_plan": ["tenant"],
            "image": "ubuntu",
        }
        server = {
            "name": f"bare-metal-{index + 1}",
            "bmc": {"driver": "fake", "config": {"name": f"b{index}"}},
            "labels": {"role": role},
            "interfaces": [{"name": "nic1", "mac": MACS[index], "roles": ["boot", "tenant"]}],
            "provisioning": {"address": f"10.10.0.{20 + index}/22", "gateway": "10.10.0.1"},
        }
        cable = {
            "server": server["name"],
            "interface": "nic1",
            "fabric": "lab",
            "switch": "leaf-1",
            "port": f"swp{index}",
        }
        made += [
            client.post("node-types/", node_type),
            client.post("servers/", server),
            client.post("links/", cable),
        ]
        # The lab's switch has every new port in the provisioning VLAN.
        make.park(Link.objects.get(uid=made[-1].json()["uid"]))
    made.append(client.post("segments/", {"fabric": "lab", "name": "rack", "tenant": "default"}))
    assert [one.status_code for one in made] == [201] * len(made), [one.content for one in made]
    for number in (1, 2):
        name = f"bare-metal-{number}"
        assert client.post(f"servers/{name}/inspect/").json()["state"] == "inspecting"
        rounds()
        blank = client.post(f"servers/{name}/declare-blank/", {"name": name})
        assert blank.json()["state"] == "available", blank.content


def test_from_bare_servers_to_ready_nodes_and_back(admin, owner, client_of):
    platform, tenant = client_of(admin), client_of(owner)
    build(platform)
    body = {
        "tenant": "default",
        "name": "one",
        "template": "tenant-virtual-cluster",
        "parameters": {"segment": "rack"},
        "pools": [
            {
                "name": role,
                "kind": "static",
                "node_type": f"metal.{role}-server",
                "quantity": 1,
                "labels": {"workload": role},
            }
            for role in ("gpu", "cpu")
        ],
    }
    assert tenant.post("clusters/", body).status_code == 201
    rounds()
    cluster = tenant.get("clusters/default/one/").json()
    assert cluster["state"] == "ready"
    assert [pool["claims"] for pool in cluster["pools"]] == [{"ready": 1}, {"ready": 1}]
    claims = tenant.get("node-claims/?cluster=one&state=ready").json()["results"]
    assert {one["pool"]: one["node_name"] for one in claims} == {
        "gpu": "bare-metal-1",
        "cpu": "bare-metal-2",
    }
    wanted = platform.get("segments/lab/rack/").json()["wanted"]
    assert sorted((one["owner"], one["state"], one["observed"]) for one in wanted) == [
        ("bare-metal-1", "applied", True),
        ("bare-metal-2", "applied", True),
    ]
    assert tenant.post("clusters/default/one/kubeconfig/").status_code == 200

    assert tenant.delete("clusters/default/one/").json()["state"] == "deleting"
    rounds()
    assert tenant.get("clusters/default/one/").status_code == 404
    assert tenant.get(f"o/{cluster['uid']}/").json()["state"] == "gone"
    for server in platform.get("servers/").json()["results"]:
        assert (server["state"], server["power"]["state"]) == ("available", "off")
        assert server["claim"] is None
        full = platform.get(f"servers/{server['name']}/").json()
        assert (full["wipe"]["kind"], full["wipe"]["tenancy"]) == ("verified", 2)
        assert full["interfaces"][0]["link"]["seen_vlan"] == 10
