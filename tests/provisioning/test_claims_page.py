"""The list of claims and the page of one: what the operator and the tenant see, and may do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpucloud.models import Step
from provisioning.models import NodeClaim
from tests import make

pytestmark = pytest.mark.django_db


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def ran(operation, name: str, seconds: float, ago: float = 60, **fields) -> Step:
    """The step began `ago` seconds ago and took so long."""
    begun = timezone.now() - timedelta(seconds=ago)
    rows = Step.objects.filter(owner_uid=operation.uid, name=name)
    rows.update(started=begun, ended=begun + timedelta(seconds=seconds), **fields)
    return rows.get()


def failed_claim(code: str = "BMC_UNREACHABLE") -> NodeClaim:
    claim = make.claim(
        "one-x",
        "failed",
        code=code,
        problem="https://bmc-secret.example.com did not answer in 10 s.",
    )
    make.operation(
        claim, state="failed", at="install", code=code, problem="bmc-secret did not answer"
    )
    Step.objects.filter(state="failed").update(
        started=timezone.now() - timedelta(minutes=4),
        ended=timezone.now(),
        lines=[
            {"at": timezone.now().isoformat(), "text": "asked", "code": "", "attempt": 1},
            {"at": timezone.now().isoformat(), "text": "no answer", "code": code, "times": 3},
            {"at": timezone.now().isoformat(), "text": "gave up", "code": code},
        ],
    )
    return claim


def test_the_list_shows_state_step_and_server_of_each_claim(client, support):
    claim = make.claim("one-a", "provisioning")
    make.operation(claim, at="install")
    Step.objects.filter(current=True).update(percent=61, state="waiting")
    make.operation(make.claim("one-b", "pending"))
    html = get(client, support, "/claims/")
    assert "Installing, 61 %" in html
    assert "Step 4 of 9, Install" in html
    assert str(claim.server) in html
    assert "Step 1 of 9, Select" in html


def test_claims_that_are_gone_show_only_when_asked_for(client, support):
    make.claim("one-old", "gone")
    assert "one-old" not in get(client, support, "/claims/")
    assert "one-old" in get(client, support, "/claims/?state=gone")


def test_the_list_asks_the_database_as_often_for_many_claims_as_for_few(
    client, support, django_assert_num_queries
):
    for _ in range(3):
        make.operation(make.claim(state="provisioning"), at="install")
    client.force_login(support)
    with django_assert_num_queries(10):
        client.get("/claims/")
    for _ in range(9):
        make.operation(make.claim(state="provisioning"), at="install")
    with django_assert_num_queries(10):
        client.get("/claims/")


def test_a_tenant_lists_its_own_claims_only(client, owner, owner1):
    make.claim("one-mine")
    assert "one-mine" in get(client, owner, "/claims/")
    assert "one-mine" not in get(client, owner1, "/claims/")


def test_a_foreign_claim_is_as_absent_as_one_that_never_was(client, owner1):
    claim = make.claim("one-a", "ready")
    get(client, owner1, claim.get_absolute_url(), 404)
    get(client, owner1, "/claims/default/never/", 404)
    get(client, owner1, f"{claim.get_absolute_url()}actions/", 404)
    client.force_login(owner1)
    assert client.post(f"{claim.get_absolute_url()}release/").status_code == 404


def test_the_page_says_what_runs_where_and_what_follows(client, support):
    claim = make.claim("one-a", "provisioning", tenant_address="192.168.101.11")
    operation = make.operation(claim, at="install")
    ran(operation, "select", 1, sentence="server-1 chosen from 3 that fit; 14 considered.")
    Step.objects.filter(current=True).update(
        state="waiting", percent=61, started=timezone.now(), sentence="Writing ubuntu."
    )
    html = get(client, support, claim.get_absolute_url())
    assert "Installing, 61 %" in html
    assert "server-1 chosen from 3 that fit; 14 considered." in html
    assert "Step 4 of 9" in html
    assert "First boot of the tenant&#x27;s system" in html
    assert "192.168.101.11" in html


def test_without_history_the_page_says_that_nothing_is_usual_yet(client, support):
    claim = make.claim("one-a", "provisioning")
    ran(make.operation(claim, at="configure"), "select", 1)
    html = get(client, support, claim.get_absolute_url())
    assert "nothing is usual yet" in html


def test_usual_times_come_from_done_steps_of_the_same_node_type(client, support):
    for seconds in (10, 20, 30):
        before = make.operation(make.claim(state="ready"), state="done")
        for name in make.CLAIM_STEPS:
            ran(before, name, seconds, state="done", current=False)
    claim = make.claim("one-now", "provisioning")
    operation = make.operation(claim, at="install")
    for name in ("select", "configure", "setup"):
        ran(operation, name, 2, state="done")
    Step.objects.filter(current=True).update(state="running", started=timezone.now())
    html = get(client, support, claim.get_absolute_url())
    assert "p50 20 s, p90 28 s" in html
    assert "usual times of 3 such runs" in html
    assert "Expected ready at" in html


def test_a_step_that_takes_longer_than_usual_is_named(client, support):
    before = make.operation(make.claim(state="ready"), state="done")
    for name in make.CLAIM_STEPS:
        ran(before, name, 10, state="done", current=False)
    operation = make.operation(make.claim("one-slow", "provisioning"), at="boot")
    long_ago = timezone.now() - timedelta(minutes=5)
    Step.objects.filter(owner_uid=operation.uid, current=True).update(
        state="waiting", started=long_ago
    )
    html = get(client, support, "/claims/default/one-slow/")
    assert "Boot takes longer than usual" in html and "once 10 s" in html


def test_a_failed_step_stands_open_with_reason_cause_effect_and_next(client, operator):
    claim = failed_claim()
    html = get(client, operator, claim.get_absolute_url())
    assert "Install stopped" in html and "BMC_UNREACHABLE" in html
    assert "bmc-secret.example.com did not answer" in html
    assert "still holds" in html
    assert "Check cable, address and BMC; then retry." in html
    assert "BMC_UNREACHABLE, 3 times" in html
    assert "Retry the step" in html and "Release claim…" in html


def test_a_tenant_reads_the_failure_without_our_inside(client, owner):
    claim = failed_claim()
    html = get(client, owner, claim.get_absolute_url())
    assert "Install stopped" in html and "BMC_UNREACHABLE" in html
    assert "does not answer" in html
    for secret in ("bmc-secret", "leaf-1", "swp", "no answer"):
        assert secret not in html


def test_a_tenant_sees_neither_the_selection_nor_the_servers_in_it(client, owner, support):
    considered = [
        {
            "name": "server-9",
            "uid": "8b0c5b3e-0000-4000-8000-000000000009",
            "result": "Refused",
            "score": None,
            "checks": [{"name": "Free", "passed": False, "text": "Held by two-secret"}],
        }
    ]
    selection = {"chosen": "", "considered": considered}
    claim = make.claim("one-a", "provisioning", selection=selection)
    make.operation(claim, at="install")
    assert "Held by two-secret" in get(client, support, claim.get_absolute_url())
    html = get(client, owner, claim.get_absolute_url())
    assert "two-secret" not in html and "server-9" not in html
    get(client, owner, f"{claim.get_absolute_url()}selection/", 404)


def test_ports_are_shown_before_in_quarantine_and_after(client, support):
    claim = make.claim("one-a", "ready")
    operation = make.operation(claim, at="boot")

    def port(vlan: int) -> list[dict]:
        return [
            {"switch": "leaf-1", "port": "swp1", "roles": ["tenant"], "vlan": vlan, "tagged": []}
        ]

    vlan = claim.cluster.segment.vlan
    evidence = {"before": port(10), "in_quarantine": port(4000), "after": port(vlan)}
    ran(operation, "move", 3, evidence=evidence)
    html = get(client, support, claim.get_absolute_url())
    assert "leaf-1 swp1" in html
    for words in ("VLAN 10, provisioning", "VLAN 4000, quarantine", f"VLAN {vlan}, default-one"):
        assert words in html


def test_the_tenant_gets_the_same_proof_as_yes_or_no(client, owner):
    claim = make.claim("one-a", "ready")
    operation = make.operation(claim, at="verify")
    after = [{"switch": "leaf-1", "port": "swp1", "vlan": claim.cluster.segment.vlan, "tagged": []}]
    ran(operation, "move", 3, evidence={"after": after})
    html = get(client, owner, claim.get_absolute_url())
    assert "Are all its links in default-one and nowhere else?" in html
    assert "Was every drive wiped before you?" in html
    assert "leaf-1" not in html


def test_a_waiting_claim_names_its_place(client, owner):
    node_type = make.node_type()
    make.claim("one-first", node_type=node_type)
    claim = make.claim("one-second", node_type=node_type, code="WAITING_FOR_CAPACITY")
    make.operation(claim)
    Step.objects.filter(current=True).update(
        state="waiting", code="WAITING_FOR_CAPACITY", started=timezone.now()
    )
    html = get(client, owner, claim.get_absolute_url())
    assert "Waiting, place 2 of 2" in html
    assert "WAITING_FOR_CAPACITY" in html


def test_retry_makes_the_stopped_step_due_again(client, owner):
    claim = failed_claim()
    client.force_login(owner)
    answer = client.post(f"{claim.get_absolute_url()}retry/", follow=True)
    assert "one-x is tried again" in answer.content.decode()
    claim.refresh_from_db()
    assert claim.state == "provisioning"


def test_a_retry_of_what_has_not_stopped_is_refused_in_place(client, operator):
    claim = make.claim("one-a", "ready")
    client.force_login(operator)
    answer = client.post(f"{claim.get_absolute_url()}retry/")
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "nothing to retry" in html and "NOT_ALLOWED" in html


def test_release_asks_first_and_then_begins(client, owner):
    claim = make.claim("one-a", "ready")
    html = get(client, owner, f"{claim.get_absolute_url()}release/")
    assert "Release one-a?" in html and "every drive is wiped" in html
    answer = client.post(f"{claim.get_absolute_url()}release/", follow=True)
    html = answer.content.decode()
    assert "one-a is being released" in html
    assert "Release" in html and "Drain" in html
    claim.refresh_from_db()
    assert claim.state == "releasing"


def test_a_viewer_sees_no_buttons_and_is_told_who_may(client, viewer):
    claim = failed_claim()
    html = get(client, viewer, claim.get_absolute_url())
    assert "Retry the step" not in html and "Release claim…" not in html
    answer = client.post(f"{claim.get_absolute_url()}retry/")
    assert answer.status_code == 403
    assert "owner of the tenant" in answer.content.decode()


def test_the_buttons_are_read_alone_when_the_state_has_changed(client, owner):
    claim = failed_claim()
    html = get(client, owner, f"{claim.get_absolute_url()}actions/")
    assert "Retry the step" in html and "<html" not in html


def test_a_claim_that_went_is_found_by_its_uid(client, owner):
    old = make.claim("one-a", "gone")
    make.claim("one-a", "pending")
    html = get(client, owner, f"/claims/default/one-a/?uid={old.uid}")
    assert "It is gone" in html
    assert "It is gone" not in get(client, owner, "/claims/default/one-a/")


def test_a_release_shows_the_wipe_of_every_drive(client, support):
    claim = make.claim("one-a", "releasing")
    operation = make.operation(claim, "release", at="check")
    drives = [
        {
            "serial": "S1",
            "method": "sanitize",
            "ok": True,
            "readback": {"samples": 64, "nonblank": 0},
        }
    ]
    ran(operation, "wipe", 20, evidence={"drives": drives})
    html = get(client, support, claim.get_absolute_url())
    assert "S1" in html and "64 of 64 samples blank" in html and "sanitize" in html
