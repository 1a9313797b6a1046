"""Every address for every role: who reads, who acts, who is told that there is nothing."""

from __future__ import annotations

import json

import pytest
from django.urls import get_resolver

from gpucloud.models import Event
from tests import make

ROLES = [
    "admin",
    "operator",
    "support",
    "auditor",
    "owner",
    "tenant_operator",
    "viewer",
    "owner1",
    "nobody",
    "anonymous",
]
PLATFORM = dict.fromkeys(("admin", "operator", "support", "auditor"), 200)
MINE = dict.fromkeys(("owner", "tenant_operator", "viewer"), 200)
ALL = {**PLATFORM, **MINE, "owner1": 200, "nobody": 200}
RUN = {"support": 403, "auditor": 403}
ACT = {**RUN, "viewer": 403}


def runs(status: int, refused: int = 404) -> dict[str, int]:
    """Platform admin and operator may; tenants get what `refused` says."""
    tenants = dict.fromkeys(("owner", "tenant_operator", "viewer", "owner1", "nobody"), refused)
    return {"admin": status, "operator": status, **RUN, **tenants}


def acts(status: int, foreign: int = 404) -> dict[str, int]:
    """Platform admin and operator, and the tenant's owner and operator may."""
    may = dict.fromkeys(("admin", "operator", "owner", "tenant_operator"), status)
    return {**may, **ACT, "owner1": foreign, "nobody": foreign}


# Who gets which status; a role that is not named gets 404, and without a token it is 401.
READS = [
    ("servers/bare-metal-2/", PLATFORM),
    ("node-providers/fake/", PLATFORM),
    ("node-types/fake.gpu/", ALL),
    ("os-images/ubuntu/", ALL),
    ("fabrics/lab/", PLATFORM),
    ("segments/lab/default-one/", {**PLATFORM, **MINE}),
    ("segments/lab/provisioning/", PLATFORM),
    ("attachments/{attachment.uid}/", {**PLATFORM, **MINE}),
    ("links/{link.uid}/", PLATFORM),
    ("tenants/default/", {**PLATFORM, **MINE}),
    ("cluster-templates/tenant-virtual-cluster/", ALL),
    ("clusters/default/one/", {**PLATFORM, **MINE}),
    ("node-claims/default/one-abcde/", {**PLATFORM, **MINE}),
    ("operations/{operation.uid}/", {**PLATFORM, **MINE}),
    ("o/{server.uid}/", PLATFORM),
    ("o/{provider.uid}/", PLATFORM),
    ("o/{claim.uid}/", {**PLATFORM, **MINE}),
    ("o/{cluster.uid}/", {**PLATFORM, **MINE}),
    ("o/{tenant.uid}/", {**PLATFORM, **MINE}),
    ("o/{node_type.uid}/", ALL),
    ("me/", ALL),
]
WRITES = [
    ("post", "servers/", {}, runs(400, 403)),
    ("patch", "servers/bare-metal-9/", {"labels": {"role": "gpu"}}, runs(200)),
    ("post", "servers/bare-metal-9/inspect/", {}, runs(202)),
    ("post", "servers/bare-metal-9/power/", {"state": "off"}, runs(202)),
    ("post", "servers/bare-metal-9/maintenance/", {"on": True, "reason": "fan"}, runs(202)),
    ("post", "servers/bare-metal-9/quarantine/", {"on": True, "reason": "odd"}, runs(202)),
    (
        "post",
        "servers/bare-metal-9/declare-blank/",
        {"name": "bare-metal-9"},
        {**runs(409), "operator": 403},
    ),
    ("post", "servers/bare-metal-9/retire/", {"name": "bare-metal-9"}, runs(202)),
    ("post", "servers/bare-metal-9/test-connection/", {}, runs(200)),
    ("post", "servers/test-connection/", {"driver": "fake"}, runs(200, 403)),
    ("post", "node-providers/", {}, runs(400, 403)),
    ("patch", "node-providers/fake/", {"display_name": "F"}, runs(200)),
    ("post", "node-providers/fake/check/", {}, runs(202)),
    ("post", "node-types/", {}, runs(400, 403)),
    ("patch", "node-types/fake.gpu/", {"cost": 3}, runs(200, 403)),
    ("get", "node-types/match/?provider=fake", None, runs(200, 403)),
    ("post", "os-images/", {}, runs(400, 403)),
    ("patch", "os-images/ubuntu/", {"display_name": "U"}, runs(200, 403)),
    ("delete", "os-images/ubuntu/", None, runs(409, 403)),
    ("post", "fabrics/lab/check/", {}, runs(202)),
    ("post", "segments/", {}, runs(400, 403)),
    ("post", "segments/lab/provisioning/observe/", {}, runs(202)),
    (
        "post",
        "segments/lab/default-one/observe/",
        {},
        {**runs(202), **dict.fromkeys(MINE, 403)},
    ),
    ("post", "links/", {}, runs(400, 403)),
    ("delete", "links/{link.uid}/", None, runs(409)),
    ("post", "tenants/", {}, runs(400, 403)),
    ("patch", "tenants/default/", {"quota": {}}, {**runs(200), **dict.fromkeys(MINE, 403)}),
    (
        "post",
        "clusters/",
        {"tenant": "default", "name": "two", "template": "tenant-virtual-cluster"},
        acts(201, 400),
    ),
    ("delete", "clusters/default/one/", None, acts(202)),
    ("post", "clusters/default/one/retry/", {}, {**acts(409), "support": 409}),
    ("patch", "clusters/default/one/pools/gpu/", {"quantity": 2}, acts(200)),
    (
        "post",
        "clusters/default/one/kubeconfig/",
        {},
        {**acts(200), "operator": 403},
    ),
    (
        "post",
        "node-claims/",
        {"tenant": "default", "cluster": "one", "node_type": "fake.gpu"},
        acts(201, 400),
    ),
    ("delete", "node-claims/default/one-abcde/", None, acts(202)),
    ("post", "node-claims/default/one-abcde/release/", {}, acts(202)),
    ("post", "node-claims/default/one-abcde/retry/", {}, {**acts(202), "support": 202}),
]
LISTS = [
    "servers/",
    "node-providers/",
    "node-types/",
    "os-images/",
    "fabrics/",
    "segments/",
    "attachments/",
    "links/",
    "tenants/",
    "cluster-templates/",
    "clusters/",
    "node-claims/",
    "operations/",
    "events/",
]


@pytest.fixture
def person(request):
    """The person of a role named by the test."""

    def get(role):
        return None if role == "anonymous" else request.getfixturevalue(role)

    return get


@pytest.mark.parametrize("role", ROLES)
def test_reading(role, person, client_of, world):
    client = client_of(person(role))
    found = {}
    for address, who in READS:
        expected = 401 if role == "anonymous" else who.get(role, 404)
        answer = client.get(address.format(**vars(world)))
        found[address] = (answer.status_code, expected)
    assert {a: both for a, both in found.items() if both[0] != both[1]} == {}


def _expected(role, who):
    return 401 if role == "anonymous" else who.get(role, 404)


def _ask(client, world, method, address, body):
    call = getattr(client, method)
    return call(address.format(**vars(world)), *([] if body is None else [body]))


@pytest.mark.parametrize("role", ROLES)
def test_acts_that_a_role_may_not_do(role, person, client_of, world):
    client = client_of(person(role))
    found = {}
    for method, address, body, who in WRITES:
        if (expected := _expected(role, who)) >= 400:
            answer = _ask(client, world, method, address, body)
            found[method, address] = (answer.status_code, expected)
    assert {a: both for a, both in found.items() if both[0] != both[1]} == {}


ALLOWED = [(role, *write) for write in WRITES for role in ROLES if _expected(role, write[3]) < 400]


@pytest.mark.parametrize(
    "role, method, address, body, who", ALLOWED, ids=[f"{a[0]} {a[1]} {a[2]}" for a in ALLOWED]
)
def test_acts_that_a_role_may_do(role, method, address, body, who, person, client_of, world):
    answer = _ask(client_of(person(role)), world, method, address, body)
    assert answer.status_code == who[role], answer.content


def test_every_route_is_in_these_tables(world):
    """A new address must say who may use it before it is merged."""
    tables = [("get", a) for a, _ in READS] + [(m, a) for m, a, *_ in WRITES]
    tables += [("get", a) for a in LISTS]
    resolver = get_resolver()
    covered = set()
    for method, address in tables:
        match = resolver.resolve("/api/v1/" + address.format(**vars(world)).partition("?")[0])
        covered.add((match.route, method))
    missing = [
        (pattern.pattern._route, method)
        for pattern in _api_patterns(resolver)
        for method in _methods(pattern)
        if (f"api/{pattern.pattern._route}", method) not in covered
    ]
    assert missing == []


def _api_patterns(resolver):
    api = next(one for one in resolver.url_patterns if str(one.pattern) == "api/")
    return [
        one
        for one in api.url_patterns
        if str(one.pattern).startswith("v1/") and "<path:" not in str(one.pattern)
    ]


def _methods(pattern):
    actions = getattr(pattern.callback, "actions", None)
    return [m for m in actions if m != "head"] if actions else ["get"]


@pytest.mark.parametrize("role", ROLES)
def test_lists_hold_what_the_role_may_see(role, person, client_of, world):
    stranger = make.cluster("their", make.tenant("tenant1"))
    make.claim(cluster=stranger)
    for index, tenant in enumerate((None, world.tenant, stranger.tenant)):
        Event.objects.create(
            actor="x",
            kind="cluster",
            object_uid=world.cluster.uid,
            object_name="one",
            verb="v",
            message="m",
            tenant=tenant,
            position=index + 1,
        )
    client = client_of(person(role))
    counts = {}
    for address in LISTS:
        answer = client.get(address)
        assert answer.status_code == (401 if role == "anonymous" else 200), answer.content
        counts[address] = len(answer.json().get("results", []))
    if role == "anonymous":
        return
    sees_all = role in PLATFORM
    mine = role in MINE or role == "owner1"
    assert counts["servers/"] == (2 if sees_all else 0)
    assert counts["links/"] == (2 if sees_all else 0)
    assert counts["node-providers/"] == counts["fabrics/"] == (1 if sees_all else 0)
    assert counts["node-types/"] == counts["os-images/"] == counts["cluster-templates/"] == 1
    for address in ("clusters/", "node-claims/", "tenants/"):
        assert counts[address] == (2 if sees_all else 1 if mine else 0), address
    assert counts["segments/"] == (4 if sees_all else 1 if mine else 0)
    assert counts["attachments/"] == (1 if sees_all or role in MINE else 0)
    assert counts["events/"] == (3 if sees_all else 1 if mine else 0)


SECRET_OF_THE_PLATFORM = [
    "bmc.example.com",
    "bare-metal-9",
    "192.168.101.2 of rack",
    "swp",
    "leaf-1",
    "SN-bare-metal-2",
    "10.10.0.",
    "52:54:00",
    "r1",
    "tenant1",
    '"selector"',
    '"selection"',
]


def test_a_tenant_sees_nothing_that_lies_under_its_objects(owner, client_of, world):
    make.claim(cluster=make.cluster("their", make.tenant("tenant1")))
    client = client_of(owner)
    texts = {
        address: json.dumps(client.get(address.format(**vars(world))).json())
        for address in [*LISTS, *(address for address, who in READS if "owner" in who)]
    }
    found = [
        (address, word)
        for address, text in texts.items()
        for word in SECRET_OF_THE_PLATFORM
        if word in text
    ]
    assert found == []


def test_a_tenant_is_told_what_a_reason_means_and_the_platform_what_happened(
    owner, support, client_of, world
):
    address = "node-claims/default/one-abcde/"
    mine = client_of(owner).get(address).json()
    theirs = client_of(support).get(address).json()
    assert mine["problem"] == "The server's BMC does not answer."
    assert theirs["problem"] == "https://bmc.example.com does not answer"
    failed = [s for s in mine["operations"][0]["steps"] if s["state"] == "failed"]
    assert [s["sentence"] for s in failed] == ["The server's BMC does not answer."]


def test_foreign_and_absent_answer_alike(owner1, client_of, world):
    client = client_of(owner1)
    foreign = client.get("clusters/default/one/").json()
    absent = client.get("clusters/default/no-such/").json()
    assert foreign == absent
    foreign = client.post(
        "clusters/", {"tenant": "default", "name": "x", "template": "tenant-virtual-cluster"}
    ).json()
    assert foreign["errors"] == {
        "tenant": ["There is no tenant called default, or you are not in it."]
    }


def test_a_token_that_may_only_read_changes_nothing(admin, client_of, world):
    client = client_of(admin, "read")
    assert client.get("servers/bare-metal-9/").status_code == 200
    for method, address, body, _ in WRITES:
        if method == "get":
            continue
        answer = getattr(client, method)(address.format(**vars(world)), body)
        assert answer.status_code == 403, address
        assert answer.json()["detail"] == "This token lacks the scope “write”."


def test_a_token_bound_to_a_tenant_reaches_nothing_beside_it(admin, client_of, world):
    their = make.cluster("their", make.tenant("tenant1"))
    client = client_of(admin, tenant=their.tenant)
    assert client.get("clusters/tenant1/their/").status_code == 200
    assert client.get("clusters/default/one/").status_code == 404
    assert client.get("servers/bare-metal-9/").status_code == 404
    assert client.post("servers/", {}).status_code == 403
    assert client.delete("clusters/tenant1/their/").status_code == 202
    assert [t["name"] for t in client.get("tenants/").json()["results"]] == ["tenant1"]


def test_an_expired_or_unknown_token_is_told_so(owner, client_of):
    from datetime import timedelta

    from django.utils import timezone

    late = client_of(owner, expires=timezone.now() - timedelta(seconds=1))
    answer = late.get("me/")
    assert answer.status_code == 401 and answer["WWW-Authenticate"] == "Bearer"
    late.credentials(HTTP_AUTHORIZATION="Bearer gpc_nonsense")
    assert late.get("me/").status_code == 401


def test_a_disabled_owner_has_no_token(owner, client_of):
    client = client_of(owner)
    owner.is_active = False
    owner.save()
    assert client.get("me/").status_code == 401
