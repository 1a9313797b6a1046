"""What is sent is what is meant: unknown fields, wrong types and wrong names are told by field."""

from __future__ import annotations

import pytest

from gpucloud import vault
from inventory.models import Server
from provisioning.models import NodeClaim, NodeProvider
from tenants.models import TenantCluster
from tests import make

SERVER = {
    "name": "new-1",
    "bmc": {"driver": "fake", "username": "root", "password": "calvin"},
    "labels": {"role": "gpu"},
    "interfaces": [{"name": "nic1", "mac": "AA:bb:cc:00:00:01", "roles": ["boot", "tenant"]}],
    "provisioning": {"address": "10.10.0.77/22", "gateway": "10.10.0.1"},
}
CLUSTER = {
    "tenant": "default",
    "name": "two",
    "template": "tenant-virtual-cluster",
    "pools": [{"name": "gpu", "kind": "static", "node_type": "fake.gpu", "quantity": 1}],
}


def errors(answer, status=400):
    assert answer.status_code == status, answer.content
    return answer.json()["errors"]


def test_a_server_is_registered_with_its_ports_and_a_secret_that_is_never_shown(admin, client_of):
    client = client_of(admin)
    answer = client.post("servers/", SERVER)
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert (shown["kind"], shown["state"], shown["labels"]) == (
        "server",
        "enrolled",
        {"role": "gpu"},
    )
    assert shown["interfaces"][0]["mac"] == "aa:bb:cc:00:00:01"
    assert shown["created"].endswith("Z")
    assert b"calvin" not in answer.content
    kept = Server.objects.get(name="new-1")
    assert vault.get("bmc", kept.bmc.uid, "credentials")["password"] == "calvin"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"colour": "red"}, "colour"),
        ({"name": 7}, "name"),
        ({"name": "Upper"}, "name"),
        ({"name": "test-connection"}, "name"),
        ({"name": None}, "name"),
        ({"labels": ["role"]}, "labels"),
        ({"labels": {"role": 1}}, "labels.role"),
        ({"labels": {"ro le": "x"}}, "labels.ro le"),
        ({"labels": {"role": "a,b=c"}}, "labels.role"),
        ({"slot": "3"}, "slot"),
        ({"slot": True}, "slot"),
        ({"bmc": "redfish"}, "bmc.non_field_errors"),
        ({"bmc": {"driver": "nonsense"}}, "bmc.driver"),
        ({"bmc": {"driver": "fake", "colour": "red"}}, "bmc.colour"),
        ({"bmc": {"driver": "fake", "config": {"colour": "red"}}}, "bmc.config.colour"),
        ({"bmc": {"driver": "redfish"}}, "bmc.address"),
        ({"bmc": {"driver": "redfish", "address": "https://u:p@bmc"}}, "bmc.address"),
        ({"interfaces": [{"name": "a", "mac": "zz"}]}, "interfaces.0.mac"),
        (
            {"interfaces": [{"name": "a", "mac": "aa:bb:cc:00:00:01", "roles": ["x"]}]},
            "interfaces.0.roles",
        ),
        ({"interfaces": {"name": "a"}}, "interfaces.non_field_errors"),
        ({"provisioning": {"address": "10.10.0.77"}}, "provisioning.address"),
        ({"connection": "nowhere"}, "connection"),
    ],
)
def test_a_wrong_value_is_named(change, field, admin, client_of):
    found = errors(client_of(admin).post("servers/", {**SERVER, **change}))
    assert list(found) == [field]
    assert not Server.objects.exists()


def test_all_wrong_fields_are_told_at_once(admin, client_of):
    found = errors(client_of(admin).post("servers/", {"name": 7, "bmc": {}, "x": 1, "y": 2}))
    assert set(found) == {"name", "bmc.driver", "x", "y"}


@pytest.mark.parametrize("body", [[], "text", 3, [{"name": "a"}]])
def test_a_body_that_is_no_object_is_refused(body, admin, client_of):
    assert errors(client_of(admin).post("servers/", body)) != {}


def test_bad_json_and_other_media_types_are_problems_too(admin, client_of):
    client = client_of(admin)
    broken = client.post("servers/", "{", content_type="application/json")
    assert (broken.status_code, broken["Content-Type"]) == (400, "application/problem+json")
    form = client.post("servers/", "a=b", content_type="application/x-www-form-urlencoded")
    assert (form.status_code, form.json()["code"]) == (415, "MEDIA_TYPE")
    nul = client.post("servers/", {**SERVER, "name": "a\0b"})
    assert list(errors(nul)) == ["name"]


@pytest.mark.parametrize("text", ['"a\\u0000b"', '"\\ud800"', '{"a": ["\\u0000"]}'])
def test_text_that_no_database_keeps_is_refused_at_any_depth(text, admin, client_of):
    body = f'{{"name": "p", "driver": "fake", "properties": {{"a": {text}}}}}'
    answer = client_of(admin).post("node-providers/", body, content_type="application/json")
    assert list(errors(answer)) == ["non_field_errors"]


def test_a_body_nested_without_end_is_refused(admin, client_of):
    body = '{"properties": ' + "[" * 100_000
    answer = client_of(admin).post("node-providers/", body, content_type="application/json")
    assert answer.status_code == 400


def test_a_verb_without_values_takes_no_body_and_no_unknown_one(admin, client_of):
    make.server("bare-metal-1")
    client = client_of(admin)
    assert list(errors(client.post("servers/bare-metal-1/inspect/", {"now": True}))) == ["now"]
    assert client.post("servers/bare-metal-1/inspect/").status_code == 202


def test_a_flag_is_true_or_false_and_never_guessed(admin, client_of):
    make.server("bare-metal-1")
    client = client_of(admin)
    for body in ({"on": "true", "reason": "x"}, {"on": 1, "reason": "x"}, {"reason": "x"}):
        answer = client.post("servers/bare-metal-1/maintenance/", body)
        assert list(errors(answer)) == ["on"]
    assert list(errors(client.post("servers/bare-metal-1/maintenance/"))) == ["on"]
    assert not Server.objects.get().maintenance


def test_power_is_switched_by_hand_and_read_back(operator, client_of):
    make.server("bare-metal-1")
    client = client_of(operator)
    assert list(errors(client.post("servers/bare-metal-1/power/", {"state": "reset"}))) == ["state"]
    answer = client.post("servers/bare-metal-1/power/", {"state": "on"})
    assert (answer.status_code, answer.json()["power"]["state"]) == (202, "on")


def test_new_credentials_reach_the_vault_and_keep_the_rest(admin, client_of):
    server = make.server("bare-metal-1")
    answer = client_of(admin).patch(
        "servers/bare-metal-1/", {"bmc": {"driver": "fake", "config": {"password": "hidden-1"}}}
    )
    assert answer.status_code == 200 and b"hidden-1" not in answer.content
    server.bmc.refresh_from_db()
    assert "hidden-1" not in str(server.bmc.config)
    assert vault.get("bmc", server.bmc.uid, "credentials") == {"password": "hidden-1"}


def test_a_cluster_is_asked_for_with_its_pools(owner, client_of):
    make.node_type()
    make.template()
    make.segment("rack")
    answer = client_of(owner).post(
        "clusters/", {**CLUSTER, "parameters": {"segment": "rack"}, "name": "one"}
    )
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert (shown["state"], shown["segment"]) == ("requested", "lab/rack")
    assert [(p["name"], p["quantity"]) for p in shown["pools"]] == [("gpu", 1)]
    assert [step["name"] for step in shown["steps"]][:2] == ["network", "scheduling"]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"name": "Two"}, "name"),
        ({"tenant": "nobody"}, "tenant"),
        ({"template": "nothing"}, "template"),
        ({"parameters": {"colour": "red"}}, "parameters.colour"),
        ({"parameters": {"segment": 5}}, "parameters.segment"),
        ({"parameters": {"segment": "theirs"}}, "parameters.segment"),
        ({"pools": [{"name": "a", "node_type": "no.type"}]}, "pools.0.node_type"),
        ({"pools": [{"name": "a"}]}, "pools.0.node_type"),
        ({"pools": [{"name": "a", "node_type": "fake.gpu", "image": "x"}]}, "pools.0.image"),
        ({"pools": [{"name": "a", "node_type": "fake.gpu", "quantity": -1}]}, "pools.0.quantity"),
        ({"pools": [{"name": "a", "node_type": "fake.gpu", "size": 1}]}, "pools.0.size"),
        (
            {"pools": [{"name": "a", "node_type": "fake.gpu", "labels": {"a": "b\n  x: y"}}]},
            "pools.0.labels.a",
        ),
        (
            {
                "pools": [
                    {
                        "name": "a",
                        "node_type": "fake.gpu",
                        "taints": [{"key": "a", "effect": "Maybe"}],
                    }
                ]
            },
            "pools.0.taints.0.effect",
        ),
        (
            {"pools": [{"name": "a", "node_type": "fake.gpu"}] * 2},
            "pools.1.name",
        ),
    ],
)
def test_a_wrong_value_of_a_cluster_is_named_by_its_place(change, field, owner, client_of):
    make.node_type()
    make.template()
    make.segment("theirs", make.tenant("tenant1"))
    assert list(errors(client_of(owner).post("clusters/", {**CLUSTER, **change}))) == [field]
    assert not TenantCluster.objects.exists()


def test_a_claim_over_the_quota_is_refused_with_its_reason(owner, client_of):
    make.cluster("one")
    make.node_type()
    make.tenant().__class__.objects.update(quota={"servers": 0})
    answer = client_of(owner).post(
        "node-claims/", {"tenant": "default", "cluster": "one", "node_type": "fake.gpu"}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "QUOTA_EXCEEDED")
    assert not NodeClaim.objects.exists()


def test_a_claim_waits_in_its_place(owner, client_of):
    make.cluster("one")
    make.node_type()
    body = {"tenant": "default", "cluster": "one", "node_type": "fake.gpu"}
    client = client_of(owner)
    client.post("node-claims/", body)
    shown = client.post("node-claims/", body).json()
    assert shown["queue"] == {"place": 2, "waiting": 2}
    assert shown["operations"][0]["steps"][0]["name"] == "select"


def test_releasing_a_claim_twice_is_the_same_as_once(owner, client_of, world):
    client = client_of(owner)
    first = client.post("node-claims/default/one-abcde/release/")
    again = client.delete("node-claims/default/one-abcde/")
    assert first.json()["state"] == again.json()["state"] == "releasing"
    kinds = [one["operation"] for one in again.json()["operations"]]
    assert sorted(kinds) == ["claim", "release"]


def test_a_provider_keeps_its_secrets_and_refuses_what_its_driver_does_not_know(
    admin, client_of, monkeypatch
):
    client = client_of(admin)
    found = errors(
        client.post("node-providers/", {"name": "p", "driver": "fake", "config": {"colour": 1}})
    )
    assert list(found) == ["config.colour"]
    found = errors(client.post("node-providers/", {"name": "p", "driver": "magic"}))
    assert list(found) == ["driver"]
    made = client.post("node-providers/", {"name": "p", "driver": "fake", "config": {"looks": 3}})
    assert (made.status_code, made.json()["config"]) == (201, {"looks": 3})
    changed = client.patch("node-providers/p/", {"config": {"looks": 4}})
    assert changed.json()["config"] == {"looks": 4}
    assert NodeProvider.objects.get().rev == 2


def test_node_types_tell_their_capacity_and_the_form_its_count(admin, owner, client_of):
    make.node_type()
    make.server("a-1")
    make.server("a-2", "enrolled")
    make.server("a-3", role="cpu")
    client = client_of(admin)
    shown = client.get("node-types/fake.gpu/").json()["capacity"]
    assert shown == {"available": 1, "total": 2, "claimed": 0, "waiting": 0, "out": 1}
    assert client.get("node-types/").json()["results"][0]["capacity"] == shown
    assert client_of(owner).get("node-types/fake.gpu/").json()["capacity"] == {"available": 1}
    found = client.get("node-types/match/?provider=fake&selector=role=gpu").json()
    assert found == {"count": 2, "available": 1, "names": ["a-1", "a-2"]}
    assert list(errors(client.get("node-types/match/?provider=fake&selector=role"))) == ["selector"]
    assert list(errors(client.get("node-types/match/?provider=none"))) == ["provider"]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"nic_plan": ["tenant", "odd"]}, "nic_plan"),
        ({"sku": {"gpus": 4}}, "sku.gpus"),
        ({"sku": {"gpu_count": "4"}}, "sku.gpu_count"),
        ({"selector": {"role": 1}}, "selector.role"),
        ({"image": "none"}, "image"),
        ({"cost": -1}, "cost"),
        ({"name": "a.b"}, "name"),
    ],
)
def test_a_wrong_value_of_a_node_type_is_named(change, field, admin, client_of):
    make.provider()
    body = {"provider": "fake", "name": "h100", **change}
    assert list(errors(client_of(admin).post("node-types/", body))) == [field]


def test_a_node_type_of_a_taken_name_is_refused(admin, client_of):
    make.node_type()
    found = errors(client_of(admin).post("node-types/", {"provider": "fake", "name": "gpu"}))
    assert list(found) == ["name"]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"url": "ftp://x/y"}, "url"),
        ({"url": "https://user:pw@x/y"}, "url"),
        ({"checksum": "abc"}, "checksum"),
        ({"checksum_type": "md5"}, "checksum_type"),
        ({"format": "iso"}, "format"),
    ],
)
def test_a_wrong_value_of_an_image_is_named(change, field, admin, client_of):
    body = {"name": "i", "url": "https://x/y.qcow2", "checksum": "ab" * 32, **change}
    assert list(errors(client_of(admin).post("os-images/", body))) == [field]


def test_an_image_is_made_changed_and_removed(admin, client_of):
    client = client_of(admin)
    body = {"name": "i", "url": "https://x/y.qcow2", "checksum": "ab" * 32}
    assert client.post("os-images/", body).status_code == 201
    assert list(errors(client.post("os-images/", body))) == ["name"]
    assert client.patch("os-images/i/", {"format": "raw"}).json()["format"] == "raw"
    assert client.delete("os-images/i/").status_code == 202
    assert client.get("os-images/i/").status_code == 404


def test_an_image_on_its_way_to_a_disk_stays_as_it_is(admin, client_of, world):
    NodeClaim.objects.update(state="provisioning")
    client = client_of(admin)
    answer = client.patch("os-images/ubuntu/", {"url": "https://x/other.qcow2"})
    assert (answer.status_code, answer.json()["code"]) == (409, "IN_USE")
    assert client.patch("os-images/ubuntu/", {"display_name": "U"}).status_code == 200


def test_cables_are_written_once_per_port(admin, client_of):
    server = make.server("bare-metal-1", "enrolled", cabled=False)
    make.server("bare-metal-2", "enrolled")
    client = client_of(admin)
    body = {
        "server": "bare-metal-1",
        "interface": "nic1",
        "fabric": "lab",
        "switch": "leaf-1",
        "port": "SWP2",
    }
    assert list(errors(client.post("links/", body))) == ["port"]
    assert list(errors(client.post("links/", {**body, "interface": "x"}))) == ["interface"]
    assert list(errors(client.post("links/", {**body, "shared_endpoint": "y"}))) == ["server"]
    made = client.post("links/", {**body, "port": "swp7"})
    assert made.status_code == 201, made.content
    assert list(errors(client.post("links/", {**body, "port": "swp8"}))) == ["interface"]
    assert client.delete(f"links/{made.json()['uid']}/").status_code == 202
    assert not hasattr(server.interfaces.get(), "link")


def test_a_segment_gets_the_lowest_free_vlan(admin, client_of):
    make.fabric()
    client = client_of(admin)
    shown = client.post("segments/", {"fabric": "lab", "name": "a"}).json()
    assert (shown["vlan"], shown["state"], shown["tenant"]) == (101, "wanted", None)
    taken = client.post("segments/", {"fabric": "lab", "name": "b", "vlan": 101})
    assert list(errors(taken)) == ["vlan"]
    wrong = client.post(
        "segments/", {"fabric": "lab", "name": "b", "role": "oob", "tenant": make.tenant().name}
    )
    assert list(errors(wrong)) == ["tenant"]
    assert list(errors(client.post("segments/", {"fabric": "lab", "name": "c", "vlan": 0}))) == [
        "vlan"
    ]


def test_a_segment_shows_what_is_wanted_beside_what_was_seen(support, client_of, world):
    world.segment.seen = {
        "ports": [{"switch": "leaf-1", "port": "swp1", "access": 101, "tagged": []}]
    }
    world.segment.save()
    shown = client_of(support).get("segments/lab/default-one/").json()
    assert [(m["claim"], m["owner"], m["port"]) for m in shown["wanted"]] == [
        ("one-abcde", "bare-metal-2", "swp1")
    ]
    assert shown["observed"][0]["port"] == "swp1"


def test_a_tenant_is_made_with_its_quota(admin, client_of):
    client = client_of(admin)
    made = client.post("tenants/", {"name": "acme", "quota": {"servers": 4}})
    assert made.json()["usage"]["servers"] == {"used": 0, "limit": 4}
    assert list(errors(client.post("tenants/", {"name": "acme"}))) == ["name"]
    assert list(errors(client.patch("tenants/acme/", {"quota": {"cpus": 1}}))) == ["quota.cpus"]
    assert client.patch("tenants/acme/", {"quota": {}}).json()["quota"] == {}


def test_a_resized_pool_shows_its_wish(owner, client_of, world):
    client = client_of(owner)
    answer = client.patch("clusters/default/one/pools/gpu/", {"quantity": 3})
    assert answer.json()["pools"][0]["quantity"] == 3
    found = errors(client.patch("clusters/default/one/pools/gpu/", {"quantity": "3"}))
    assert list(found) == ["quantity"]
    assert client.patch("clusters/default/one/pools/none/", {"quantity": 3}).status_code == 404
