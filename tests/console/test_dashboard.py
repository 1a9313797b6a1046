"""The first page, by role."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpucloud.models import Heartbeat, Step
from inventory.models import Server
from tenants.models import Tenant
from tests import make

pytestmark = pytest.mark.django_db


def get(client, user, path: str = "/", **headers) -> str:
    client.force_login(user)
    answer = client.get(path, **headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_platform_sees_its_fleet_by_node_type(client, support):
    make.node_type("gpu")
    make.server()
    make.server(state="failed")
    make.claim("one-a", "ready")
    html = get(client, support)
    assert "1 claimed, 1 available, 1 out of service" in html
    assert "fake.gpu" in html and "Register server" not in html


def test_claims_in_flight_show_step_and_when_they_are_usually_done(client, support):
    before = make.operation(make.claim(state="ready"), state="done")
    now = timezone.now()
    Step.objects.filter(owner_uid=before.uid).update(
        state="done", current=False, started=now - timedelta(seconds=60), ended=now
    )
    make.operation(make.claim("one-now", "provisioning"), at="install")
    html = get(client, support)
    assert "one-now" in html and "Installing" in html
    assert "not known yet" not in html.split("In flight")[1].split("Recent")[0]


def test_what_failed_stands_in_the_queue_with_code_and_next_action(client, support):
    make.claim("one-x", "failed", code="BMC_UNREACHABLE", problem="bmc did not answer.")
    failed = make.server("broken-1", state="failed")
    Server.objects.filter(pk=failed.pk).update(code="WIPE_FAILED", problem="Drive S1 resists.")
    make.cluster("two", state="failed", code="SWITCH_REFUSED", problem="The leaf said 400.")
    html = get(client, support)
    for words in (
        "one-x: bmc did not answer.",
        "BMC_UNREACHABLE",
        "Check cable, address and BMC; then retry.",
        "broken-1: Drive S1 resists.",
        "WIPE_FAILED",
        "Cluster two: The leaf said 400.",
    ):
        assert words in html
    assert "Retry or release" in html


def test_a_release_that_stopped_and_a_wait_past_its_deadline_need_a_person(client, support):
    home = make.claim("one-home", "releasing")
    make.operation(
        home, "release", at="wipe", state="failed", code="WIPE_FAILED", problem="Drive S1 resists."
    )
    late = make.operation(make.claim("one-late"))
    Step.objects.filter(owner_uid=late.uid, current=True).update(
        state="waiting", alarmed=True, code="WAITING_FOR_CAPACITY", started=timezone.now()
    )
    html = get(client, support)
    assert "one-home does not get home: Drive S1 resists." in html
    assert "one-late waits longer than usual in Select" in html


def test_processes_that_are_silent_are_named(client, support):
    Heartbeat.objects.create(name="worker-engine", at=timezone.now() - timedelta(minutes=5))
    Heartbeat.objects.create(name="sweep", at=timezone.now())
    html = get(client, support)
    assert "1 of 2 processes are silent" in html and "worker-engine" in html


def test_an_empty_fleet_names_the_one_next_action(client, operator):
    html = get(client, operator)
    assert "Nothing needs a person" in html and "Register server" in html


def test_a_tenant_sees_its_clusters_claims_and_quota_and_no_fleet(client, owner):
    Tenant.objects.filter(name="default").update(quota={"servers": 2})
    make.operation(make.claim("one-a", "provisioning"), at="install")
    theirs = make.cluster("theirs", make.tenant("tenant1"))
    make.claim("theirs-a", "failed", cluster=theirs)
    html = get(client, owner)
    assert "/clusters/default/one/" in html and "1 of 2 held" in html and "one-a" in html
    for hidden in ("theirs", "Capacity by node type", "processes"):
        assert hidden not in html


def test_a_tenants_failed_claim_is_told_first(client, owner):
    make.claim("one-x", "failed", code="BMC_UNREACHABLE", problem="bmc-secret is silent.")
    html = get(client, owner)
    assert "1 claim stopped" in html and "one-x" in html
    assert "bmc-secret" not in html


def test_a_tenant_without_clusters_is_led_to_the_first_one(client, owner, viewer):
    assert "Create cluster" in get(client, owner)
    html = get(client, viewer)
    assert "Create cluster" not in html and "owner or operator of your tenant" in html


def test_somebody_of_no_tenant_is_told_how_to_become_one(client, nobody):
    assert "You belong to no tenant" in get(client, nobody)


def test_the_page_reads_its_parts_again_without_its_shell(client, support):
    html = get(client, support, headers={"HX-Request": "true", "HX-Target": "overview"})
    assert 'id="overview"' in html and "<html" not in html


def test_the_overview_costs_as_many_queries_for_a_large_fleet(
    client, support, django_assert_max_num_queries
):
    for number in range(8):
        make.operation(make.claim(f"one-{number}x", "provisioning"), at="install")
    client.force_login(support)
    with django_assert_max_num_queries(40):
        client.get("/")
