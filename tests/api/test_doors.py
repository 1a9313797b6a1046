"""The doors' manners: problem documents, lists, filters, kubeconfigs, permanent links, schema."""

from __future__ import annotations

import io

import pytest
import yaml
from django.core.management import call_command

from gpucloud.models import Event
from inventory.models import Server
from tests import make

PROBLEM = {"type", "title", "status", "detail", "code", "next", "errors"}


def test_every_refusal_is_a_problem_document(admin, viewer, client_of, world):
    client = client_of(admin)
    answers = {
        400: client.post("servers/", {}),
        401: client_of(None).get("servers/"),
        403: client_of(viewer).delete("clusters/default/one/"),
        404: client.get("servers/no-such/"),
        405: client.put("servers/bare-metal-2/", {}),
        406: client.get("servers/", HTTP_ACCEPT="text/html"),
        409: client.post("clusters/default/one/retry/"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json", status
        assert set(answer.json()) == PROBLEM
        assert answer.json()["status"] == status
    assert answers[403].json()["detail"] == (
        "Your role does not allow to delete a cluster. It takes: "
        "platform admin or platform operator or owner of the tenant or operator of the tenant."
    )


def test_an_address_that_is_not_there_answers_as_a_problem(admin, client_of):
    client = client_of(admin)
    assert client.get("nonsense/").json()["detail"] == "There is no address /api/v1/nonsense/."
    answer = client.post("servers", {})
    assert answer.status_code == 404
    assert answer.json()["detail"] == "Addresses end with a slash: /api/v1/servers/."
    assert client_of(None).get("nonsense/").status_code == 401


def test_a_driver_that_fails_says_so_with_its_reason(admin, client_of):
    from inventory.drivers.fake import FakeBmc
    from inventory.services.bmcs import driver_of

    server = make.server("bare-metal-1")
    driver_of(server.bmc).power()
    FakeBmc.worlds["bare-metal-1"].faults.add("unreachable")
    answer = client_of(admin).post("servers/bare-metal-1/power/", {"state": "on"})
    assert (answer.status_code, answer.json()["code"]) == (502, "BMC_UNREACHABLE")
    tested = client_of(admin).post("servers/bare-metal-1/test-connection/")
    assert tested.status_code == 200 and tested.json()["usable"] is False


def test_a_bug_is_told_as_one_and_shows_nothing_of_itself(admin, client_of, monkeypatch):
    from inventory.services import servers

    make.server("bare-metal-1")
    monkeypatch.setattr(servers, "set_power", lambda *_: 1 / 0)
    answer = client_of(admin).post("servers/bare-metal-1/power/", {"state": "on"})
    assert (answer.status_code, answer.json()["code"]) == (500, "BUG")
    assert "Zero" not in answer.content.decode()


def test_options_and_head_are_answered(admin, client_of, world):
    client = client_of(admin)
    options = client.options("servers/bare-metal-2/power/")
    assert (options.status_code, options["Allow"]) == (200, "POST, OPTIONS")
    head = client.head("servers/bare-metal-2/")
    assert (head.status_code, head.content) == (200, b"")
    assert client.get("servers/")["Cache-Control"] == "no-store"


def test_pages_stay_in_order_while_rows_come_and_go(admin, client_of):
    for number in range(7):
        make.server(f"s-{number}", "enrolled")
    client = client_of(admin)
    page = client.get("servers/?limit=3").json()
    assert set(page) == {"results", "next", "previous"}
    names = [row["name"] for row in page["results"]]
    make.server("s-new", "enrolled")
    Server.objects.filter(name="s-5").update(state="retired")
    while page["next"]:
        page = client.get(page["next"].removeprefix("http://testserver/api/v1/")).json()
        names += [row["name"] for row in page["results"]]
    assert names == ["s-6", "s-5", "s-4", "s-3", "s-2", "s-1", "s-0"]
    back = client.get(page["previous"].removeprefix("http://testserver/api/v1/")).json()
    assert [row["name"] for row in back["results"]] == ["s-3", "s-2", "s-1"]


@pytest.mark.parametrize(
    "query, field",
    [
        ("colour=red", "colour"),
        ("State=available", "State"),
        ("state=sleeping", "state"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=ten", "limit"),
        ("cursor=nonsense", "cursor"),
        ("maintenance=yes", "maintenance"),
        ("label=role", "label"),
    ],
)
def test_a_query_that_nobody_knows_is_refused(query, field, admin, client_of):
    answer = client_of(admin).get(f"servers/?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["b", "a"]),
        ("state=enrolled", ["b"]),
        ("state=enrolled&state=available", ["b", "a"]),
        ("state=retired", ["gone"]),
        ("q=A", ["a"]),
        ("q=52:54", ["b", "a"]),
        ("label=role=cpu", ["b"]),
        ("label=role=none", []),
        ("power=off&state=available", ["a"]),
    ],
)
def test_filters_narrow_a_list(query, names, admin, client_of):
    make.server("a", serial="X1")
    make.server("b", "enrolled", role="cpu", serial="X2")
    make.server("gone", "retired", serial="X3")
    rows = client_of(admin).get(f"servers/?{query}").json()["results"]
    assert [row["name"] for row in rows] == names


def test_a_list_asks_no_more_for_more_rows(admin, client_of):
    client = client_of(admin)
    client.get("me/")
    counts = []
    for _ in range(2):
        for _ in range(3):
            server = make.server(state="held")
            make.claim(server=server, state="ready")
        counts.append(
            {address: _queries(client, address) for address in ("servers/", "node-claims/")}
        )
    assert counts[0] == counts[1]


def _queries(client, address):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_a_filter_may_be_called_format(admin, client_of):
    make.image("a", format="raw")
    make.image("b")
    rows = client_of(admin).get("os-images/?format=raw").json()["results"]
    assert [row["name"] for row in rows] == ["a"]


@pytest.mark.parametrize("address", ["servers/%00/", "servers/?q=%00", "servers/?rack=%00"])
def test_a_nul_in_an_address_finds_nothing(address, admin, client_of):
    assert client_of(admin).get(address).status_code in (400, 404)


def test_a_kubeconfig_points_at_the_client_endpoint_and_is_kept_nowhere(owner, client_of, world):
    answer = client_of(owner).post("clusters/default/one/kubeconfig/")
    assert answer["Content-Type"] == "application/yaml; charset=utf-8"
    assert answer["Cache-Control"] == "no-store"
    config = yaml.safe_load(answer.content)
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:9443"
    assert config["users"][0]["user"]["token"] == "kube-secret"
    assert Event.objects.filter(verb="kubeconfig", actor="owner").count() == 1
    shown = client_of(owner).get("clusters/default/one/").content
    assert b"kube-secret" not in shown


def test_a_kubeconfig_is_there_when_the_control_plane_is(owner, client_of, world):
    make.cluster("young", state="deploying")
    answer = client_of(owner).post("clusters/default/young/kubeconfig/")
    assert (answer.status_code, answer.json()["code"]) == (409, "CLUSTER_NOT_READY")
    assert answer["Content-Type"] == "application/problem+json"
    as_json = client_of(owner).post(
        "clusters/default/one/kubeconfig/", HTTP_ACCEPT="application/json"
    )
    assert as_json.json()["kind"] == "Config"


def test_a_gone_namesake_is_reachable_by_its_uid_only(owner, client_of):
    old = make.cluster("one", state="gone")
    new = make.cluster("one", state="ready", segment=make.segment("s2"))
    client = client_of(owner)
    assert client.get("clusters/default/one/").json()["uid"] == str(new.uid)
    answer = client.get(f"o/{old.uid}/")
    assert (answer.json()["state"], answer["Content-Location"]) == (
        "gone",
        "/api/v1/clusters/default/one/",
    )


def test_every_kind_of_object_has_a_permanent_address(admin, client_of, world):
    client = client_of(admin)
    for name, row in vars(world).items():
        if name == "pool":
            continue
        answer = client.get(f"o/{row.uid}/")
        assert answer.status_code == 200, name
        where = answer["Content-Location"].removeprefix("/api/v1/")
        assert client.get(where).json() == answer.json(), name


def test_events_are_read_onwards_from_a_position(admin, client_of, world):
    for position in (1, 2, 3, 4, None):
        Event.objects.create(
            actor="x",
            kind="server",
            object_uid=world.server.uid if position == 2 else world.free.uid,
            object_name="s",
            verb="v",
            message="m",
            position=position,
        )
    client = client_of(admin)

    def positions(query):
        return [row["position"] for row in client.get(f"events/?{query}").json()["results"]]

    assert positions("") == [4, 3, 2, 1]
    assert positions("after=2") == [3, 4]
    assert positions("after=0&limit=2") == [1, 2]
    assert positions(f"object={world.server.uid}&kind=server") == [2]
    assert client.get("events/?object=x").status_code == 400


def test_me_tells_roles_and_token(owner, client_of):
    shown = client_of(owner, "read").get("me/").json()
    assert shown["username"] == "owner"
    assert shown["tenants"] == [{"tenant": "default", "role": "owner"}]
    assert shown["token"]["scopes"] == ["read"]


def test_operations_are_found_by_claim_and_by_server(support, client_of, world):
    client = client_of(support)
    for query in (
        "claim=default/one-abcde",
        f"claim={world.claim.uid}",
        "server=bare-metal-2",
        f"server={world.server.uid}",
    ):
        rows = client.get(f"operations/?{query}").json()["results"]
        assert [row["uid"] for row in rows] == [str(world.operation.uid)], query
    assert client.get("operations/?server=bare-metal-9").json()["results"] == []


def test_times_are_utc_whatever_the_readers_zone(admin, client):
    make.server("bare-metal-1")
    admin.zone = "Asia/Tokyo"
    admin.save()
    client.force_login(admin)
    shown = client.get("/api/v1/servers/bare-metal-1/").json()
    assert shown["created"].endswith("Z") and shown["power"]["at"].endswith("Z")


def test_a_session_without_its_csrf_token_changes_nothing(admin):
    from django.test import Client

    make.server("bare-metal-1")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin)
    answer = browser.post(
        "/api/v1/servers/bare-metal-1/power/", {"state": "on"}, content_type="application/json"
    )
    assert answer.status_code == 403


def test_the_schema_is_valid_complete_and_31():
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    schema = yaml.safe_load(out.getvalue())
    assert schema["openapi"].startswith("3.1")
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert "application/problem+json" in operation["responses"]["default"]["content"], (
                path,
                method,
            )


def test_the_schema_is_served_to_everybody(client, db):
    answer = client.get("/api/schema/")
    assert answer.status_code == 200 and b"/api/v1/clusters/" in answer.content
