"""The HTTP side: paths, discovery, OpenAPI, Tables, watches, refusals."""

from __future__ import annotations

import copy
import json
import random

import pytest

from gpucloud.kubeapi.errors import forbidden
from gpucloud.kubeapi.patches import APPLY, JSON, MERGE, STRATEGIC
from tests.kubeapi.builders import HOSTS_CRD, Web

HOSTS = "/apis/example.com/v1/namespaces/lab/hosts"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def web():
    return Web()


def host(name="h1", **meta):
    return {"metadata": {"name": name, **meta}, "spec": {"online": True}}


def test_an_object_is_created_read_replaced_and_deleted(web):
    made = web("POST", HOSTS, host())
    assert made.status == 201
    got = web("GET", HOSTS + "/h1").body
    assert got == made.body
    got["spec"]["online"] = False
    assert web("PUT", HOSTS + "/h1", got).status == 200
    assert web("PUT", HOSTS + "/h1", got).status == 409
    gone = web("DELETE", HOSTS + "/h1")
    assert gone.body["status"] == "Success"
    assert gone.body["details"]["uid"] == got["metadata"]["uid"]
    missing = web("GET", HOSTS + "/h1")
    assert missing.status == 404
    assert missing.body["details"] == {"name": "h1", "group": "example.com", "kind": "hosts"}


def test_lists_span_namespaces_without_one(web):
    web("POST", HOSTS, host())
    found = web("GET", "/apis/example.com/v1/hosts").body
    assert found["kind"] == "HostList"
    assert [o["metadata"]["namespace"] for o in found["items"]] == ["lab"]


def test_patch_kinds_are_told_by_their_media_type(web):
    web("POST", HOSTS, host())
    assert web("PATCH", HOSTS + "/h1", {"spec": {"online": False}}, kind=MERGE).status == 200
    remove = [{"op": "remove", "path": "/spec/nope"}]
    assert web("PATCH", HOSTS + "/h1", remove, kind=JSON).status == 422
    assert web("PATCH", HOSTS + "/h1", {}, kind="text/plain").status == 415


def test_apply_creates_with_201_and_needs_a_manager(web):
    body = b"metadata: {name: h1}\nspec: {online: true}\n"
    assert web("PATCH", HOSTS + "/h1", body, kind=APPLY).status == 400
    assert web("PATCH", HOSTS + "/h1", body, kind=APPLY, fieldManager="me").status == 201
    assert web("PATCH", HOSTS + "/h1", body, kind=APPLY, fieldManager="me").status == 200


def test_the_manager_is_told_or_the_programs_name(web):
    made = web("POST", HOSTS, host()).body
    assert made["metadata"]["managedFields"][0]["manager"] == "probe"
    made = web("POST", HOSTS, host("h2"), fieldManager="kubectl-create").body
    assert made["metadata"]["managedFields"][0]["manager"] == "kubectl-create"


def test_discovery_tells_groups_resources_short_names_and_verbs(web):
    groups = {g["name"]: g for g in web("GET", "/apis").body["groups"]}
    assert groups["example.com"]["preferredVersion"]["version"] == "v1"
    rows = {r["name"]: r for r in web("GET", "/apis/example.com/v1").body["resources"]}
    assert rows["hosts"]["shortNames"] == ["ho"]
    assert "watch" in rows["hosts"]["verbs"]
    assert rows["hosts/status"]["verbs"] == ["get", "patch", "update"]
    assert web("GET", "/api").body["versions"] == ["v1"]
    assert web("GET", "/version").body["minor"] == "36"
    assert web("GET", "/apis/nope.example/v1").status == 404


def test_openapi_v3_names_kinds_and_write_parameters(web):
    index = web("GET", "/openapi/v3").body["paths"]
    assert "hash=" in index["apis/example.com/v1"]["serverRelativeURL"]
    document = web("GET", "/openapi/v3/apis/example.com/v1").body
    schema = document["components"]["schemas"]["com.example.v1.Host"]
    assert schema["properties"]["spec"]["properties"]["mode"]["enum"] == ["fast", "slow"]
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/hosts/{name}"]["patch"]
    assert {"dryRun", "fieldValidation"} <= {p["name"] for p in patch["parameters"]}
    assert web("GET", "/openapi/v2").body["swagger"] == "2.0"


def test_a_new_definition_is_served_and_a_deleted_one_is_not(web):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    crd = web("GET", path + "/hosts.example.com").body
    assert crd["status"]["conditions"][1]["type"] == "Established"
    web("DELETE", path + "/hosts.example.com")
    assert web("GET", HOSTS).status == 404


def test_tables_carry_the_printer_columns(web):
    web("POST", HOSTS, host())
    body = web("GET", HOSTS, accept=TABLE).body
    assert body["kind"] == "Table"
    assert [c["name"] for c in body["columnDefinitions"]] == ["Name", "Online", "State", "Age"]
    row = body["rows"][0]
    assert row["cells"][:3] == ["h1", True, None]
    assert row["cells"][3].endswith("s")
    assert row["object"]["kind"] == "PartialObjectMetadata"
    plain = web("GET", HOSTS + "/h1", accept=TABLE, includeObject="None").body
    assert "object" not in plain["rows"][0]


def test_metadata_alone_can_be_asked_for(web):
    web("POST", HOSTS, host())
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = web("GET", HOSTS, accept=accept).body
    assert found["kind"] == "PartialObjectMetadataList"
    assert "spec" not in found["items"][0]


def test_an_unknown_media_type_is_not_acceptable(web):
    assert web("GET", HOSTS, accept="application/vnd.kubernetes.protobuf").status == 406


async def test_a_watch_is_a_stream_of_lines(web):
    web("POST", HOSTS, host())
    stream = web("GET", HOSTS, watch="true", timeoutSeconds="1", accept=TABLE)
    line = json.loads(await anext(stream))
    await stream.aclose()
    assert line["type"] == "ADDED"
    assert line["object"]["rows"][0]["cells"][0] == "h1"


def test_initial_events_are_refused_as_by_an_api_without_them(web):
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert web("GET", HOSTS, **query).status == 422


def test_what_the_authoriser_refuses_is_403(web):
    def check(user, asked, body):
        if asked.verb == "delete":
            raise forbidden(asked.resource, asked.name, f"{user.name} may not")

    web = Web(check=check)
    web("POST", HOSTS, host())
    refused = web("DELETE", HOSTS + "/h1")
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    review = {"spec": {"resourceAttributes": {
        "verb": "delete", "group": "example.com", "resource": "hosts"}}}  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert web("POST", path, review).body["status"]["allowed"] is False
    review["spec"]["resourceAttributes"]["verb"] = "get"
    assert web("POST", path, review).body["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nope", 404),
        ("GET", "/api/v1/nope", 404),
        ("GET", "/api/v2", 404),
        ("POST", "/apis/example.com/v1/hosts", 405),
        ("PUT", HOSTS, 405),
        ("GET", HOSTS + "/h1/log", 404),
        ("GET", "/api/v1/namespaces/lab/nodes", 404),
        ("POST", "/version", 405),
    ],
)
def test_paths_that_are_not_served(web, method, path, status):
    assert web(method, path, {} if method != "GET" else None).status == status


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b"3"])
def test_a_body_that_is_no_object_is_a_bad_request(web, body):
    assert web("POST", HOSTS, body).status == 400


@pytest.mark.parametrize("query", [{"limit": "x"}, {"resourceVersion": "x"}, {"continue": "x"}])
def test_queries_that_cannot_be_read_are_bad_requests(web, query):
    assert web("GET", HOSTS, **query).status == 400


def test_kubectls_protobuf_bodies_are_read(web):
    # A Namespace named `pb` as kubectl 1.32 sends it.
    body = (
        b'k8s\x00\n\x0f\n\x02v1\x12\tNamespace\x12\x10\n\x0a\n\x02pb\x12\x00\x1a\x00"\x00\x12'
        b'\x00\x1a\x00\x1a\x00"\x00'
    )
    made = web("POST", "/api/v1/namespaces", body, kind="application/vnd.kubernetes.protobuf")
    assert (made.status, made.body["metadata"]["name"]) == (201, "pb")
    bad = web(
        "POST", "/api/v1/namespaces", b"k8s\x00\xff", kind="application/vnd.kubernetes.protobuf"
    )
    assert bad.status == 400


def test_evicting_a_pod_deletes_it(web):
    pods = "/api/v1/namespaces/lab/pods"
    web("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": []}})
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert web("POST", pods + "/p/eviction", body).status == 201
    assert web("GET", pods + "/p").status == 404


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPOILED = [None, 1, "x", [], {}, [1], [{}], [None], {"a": 1}, True, "$patch", -1, [[1]]]


def spoil(rnd, body):
    """The body with some of its values replaced by ones of any type."""
    body = copy.deepcopy(body)
    for _ in range(rnd.randint(1, 3)):
        at = body
        while isinstance(at, dict | list) and at:
            key = rnd.choice(list(at)) if isinstance(at, dict) else rnd.randrange(len(at))
            if rnd.random() < 0.4 or not isinstance(at[key], dict | list):
                at[key] = copy.deepcopy(rnd.choice(SPOILED))
                break
            at = at[key]
    return body


@pytest.mark.parametrize("seed", range(3))
def test_no_body_makes_the_api_stumble_or_spoils_its_lists(web, seed):
    rnd = random.Random(seed)
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    pod = {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
    kinds = {
        HOSTS: host(labels={"a": "b"}, finalizers=["a/b"], ownerReferences=[owner]),
        "/api/v1/namespaces/lab/pods": {"metadata": {"name": "h1"}, "spec": pod},
        "/api/v1/nodes": {"metadata": {"name": "h1"}, "status": status},
        "/api/v1/namespaces/lab/secrets": {"metadata": {"name": "h1"}, "stringData": {"a": "b"}},
        CRDS: HOSTS_CRD,
    }
    for _ in range(250):
        path = rnd.choice(list(kinds))
        body = spoil(rnd, kinds[path])
        name = kinds[path]["metadata"]["name"]
        kind = rnd.choice([MERGE, JSON, STRATEGIC, APPLY])
        door = rnd.choice(["", "/status"])
        answers = [
            web("POST", path, body),
            web("PATCH", f"{path}/{name}{door}", body, kind=kind, fieldManager="f", force="true"),
            web("DELETE", f"{path}/ghost", spoil(rnd, {"preconditions": {}, "dryRun": ["All"]})),
            web("GET", path, accept=TABLE),
        ]
        assert all(answer.status < 500 for answer in answers), [a.body for a in answers]


@pytest.mark.parametrize(
    "spec", [{}, {"group": "x.io"}, HOSTS_CRD["spec"] | {"versions": []}, None, [], "x"]
)
def test_a_definition_that_cannot_be_served_is_invalid(web, spec):
    body = {"metadata": {"name": "hosts.example.org"}, "spec": spec}
    assert web("POST", CRDS, body).status == 422


def test_a_definition_is_named_after_its_plural_and_group(web):
    body = {"metadata": {"name": "other.example.com"}, "spec": HOSTS_CRD["spec"]}
    assert web("POST", CRDS, body).status == 422
