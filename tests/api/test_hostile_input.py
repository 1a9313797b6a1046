"""What nobody sends by mistake: each is answered with a code, a sentence and what to do next."""

from __future__ import annotations

import base64

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

LONG = "1" * 5000


@pytest.fixture
def client(admin, client_of):
    return client_of(admin)


def _refused(answer, field, status=400):
    told = answer.json()
    assert answer.status_code == status, answer.content
    assert told["code"] and told["detail"] and told["next"]
    assert not field or field in told["errors"], told


@pytest.mark.parametrize(
    "cidr",
    ["10.0.0.1/32", "10.0.0.5", "10.0.0.0/31", "10.0.0.0/30", "2001:db8::/64", "0.0.0.0/0", "x"],
)
def test_a_network_without_room_for_nodes_is_refused(cidr, client, world):
    body = {"fabric": world.fabric.name, "name": "small", "cidr": cidr}
    _refused(client.post("segments/", body), "cidr")


@pytest.mark.parametrize("gateway", ["192.168.1.1", "10.0.0.0", "10.0.0.255", "2001:db8::1"])
def test_a_gateway_outside_of_its_network_is_refused(gateway, client, world):
    body = {"fabric": world.fabric.name, "name": "s", "cidr": "10.0.0.0/24", "gateway": gateway}
    _refused(client.post("segments/", body), "gateway")


def test_a_network_is_kept_in_its_canonical_form(client, world):
    body = {"fabric": world.fabric.name, "name": "s", "cidr": "10.7.0.0/255.255.255.0"}
    assert client.post("segments/", body).json()["cidr"] == "10.7.0.0/24"


@pytest.mark.parametrize("role", ["provisioning", "quarantine"])
def test_a_fabric_has_one_place_to_park_ports(role, client, world):
    body = {"fabric": world.fabric.name, "name": "second", "role": role}
    _refused(client.post("segments/", body), "role")


@pytest.mark.parametrize("url", ["http://a b/x", "http://x/\u202ewar.exe", "http://x/\r\nz: y"])
def test_an_image_url_holds_nothing_that_reads_otherwise(url, client, world):
    body = {"name": "odd", "url": url, "checksum": "0" * 64}
    _refused(client.post("os-images/", body), "url")


@pytest.mark.parametrize(
    "address, body",
    [
        ("tenants/", {"name": "new"}),
        ("os-images/", {"name": "new", "url": "http://h/x", "checksum": "0" * 64}),
        ("node-providers/", {"name": "new", "driver": "fake"}),
        ("servers/", {"name": "new", "bmc": {"driver": "fake"}}),
        ("servers/", {"name": "register", "bmc": {"driver": "fake"}}),
        ("servers/", {"name": "test-connection", "bmc": {"driver": "fake"}}),
        ("servers/", {"name": "localhost", "bmc": {"driver": "fake"}}),
    ],
)
def test_no_object_is_named_like_an_address(address, body, client, world):
    _refused(client.post(address, body), "name")


@pytest.mark.parametrize(
    "key",
    [
        "node-role.kubernetes.io/control-plane",
        "kubernetes.io/hostname",
        "x.k8s.io/y",
        "gpucloud.dev/claim-uid",
    ],
)
def test_a_label_that_would_keep_the_kubelet_from_starting_is_refused(key, client, world):
    pool = {"name": "p", "node_type": "fake.gpu", "labels": {key: "x"}}
    body = {"tenant": "default", "name": "two", "template": "tenant-virtual-cluster"}
    _refused(client.post("clusters/", {**body, "pools": [pool]}), "pools.0.labels")
    claim = {"tenant": "default", "cluster": "one", "node_type": "fake.gpu", "labels": {key: "x"}}
    _refused(client.post("node-claims/", claim), "labels")


def test_labels_that_a_kubelet_may_give_itself_are_taken(client, world):
    labels = {"node.kubernetes.io/pool": "gpu", "topology.kubernetes.io/zone": "a", "team": "x"}
    pool = {"name": "p", "node_type": "fake.gpu", "quantity": 0, "labels": labels}
    body = {"tenant": "default", "name": "two", "template": "tenant-virtual-cluster"}
    answer = client.post("clusters/", {**body, "pools": [pool]})
    assert answer.json()["pools"][0]["labels"] == labels


def test_a_line_break_at_the_end_of_a_label_is_refused(client, world):
    answer = client.patch("servers/bare-metal-9/", {"labels": {"role\n": "gpu"}})
    _refused(answer, "")
    assert "Not a label" in answer.json()["detail"]


@pytest.mark.parametrize("position", ["\0", "x", "-1", "٣", LONG, "2026-01-01"])
def test_a_cursor_that_was_made_up_is_refused(position, client, world):
    cursor = base64.b64encode(f"p={position}".encode()).decode()
    _refused(client.get("servers/", {"cursor": cursor}), "cursor")


def test_a_body_that_is_too_long_is_told_so(client, world):
    answer = client.generic("POST", "clusters/", b" " * 3_000_000, "application/json")
    _refused(answer, "", 413)


def test_a_search_of_thousands_of_words_is_refused(client, world):
    _refused(client.get("servers/", {"q": "a " * 3000}), "q")
    _refused(client.get("servers/", {"label": ["a=b"] * 60}), "label")
    _refused(client.get("servers/", {"label": ["a=b"] * 3000}), "")


def test_a_search_joins_a_servers_ports_once(client, world):
    with CaptureQueriesContext(connection) as caught:
        client.get("servers/", {"q": "bare 52 54 metal"})
    assert max(one["sql"].count('JOIN "inventory_interface"') for one in caught) == 1


@pytest.fixture
def page(admin):
    person = Client(raise_request_exception=False)
    person.force_login(admin)
    return person


def test_pages_take_any_number_in_their_address(page, world):
    for query in (f"per={LONG}", f"page={LONG}", "per=²", "q=%00", "q=" + "a+" * 3000):
        assert page.get(f"/servers/?{query}").status_code == 200, query[:20]
    assert page.get("/find/?q=" + "a+" * 50).status_code == 200


@pytest.mark.parametrize("rows", ["abc", LONG, "-1", "", "2000"])
def test_forms_take_any_number_of_rows(rows, page, world):
    ports = {"ports-TOTAL_FORMS": rows, "ports-INITIAL_FORMS": "0", "add_port": "1"}
    assert page.post("/servers/register/", ports).status_code == 200
    pools = {"pools-TOTAL_FORMS": rows, "pools-INITIAL_FORMS": "0", "do": "add"}
    assert page.post("/clusters/new/", pools).status_code == 200
