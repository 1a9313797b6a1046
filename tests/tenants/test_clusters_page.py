"""The list of clusters, the page of one, and the form of a new one."""

from __future__ import annotations

import pytest
from django.utils import timezone

from gpucloud.models import Event, Step
from network.models import Segment
from tenants.lifecycle import PHASES
from tenants.models import NodePool, TenantCluster
from tests import make

pytestmark = pytest.mark.django_db
KUBECONFIG = """
apiVersion: v1
clusters: [{name: c, cluster: {server: "https://inside:8443"}}]
users: [{name: u, user: {token: very-secret}}]
"""


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def phases(cluster, at: str, state: str = "running", **fields) -> None:
    """The steps of the cluster's making, at this one."""
    TenantCluster.objects.filter(pk=cluster.pk).update(run=1)
    now = timezone.now()
    for index, name in enumerate(PHASES):
        here = name == at
        done = index < PHASES.index(at)
        Step.objects.create(
            kind="cluster",
            owner_uid=cluster.uid,
            run=1,
            index=index,
            name=name,
            state=state if here else "done" if done else "todo",
            current=here and state != "failed",
            started=now if here or done else None,
            ended=now if done else None,
            **(fields if here else {}),
        )


def form(**change) -> dict[str, str]:
    """The form as a browser sends it."""
    sent = {
        "tenant": "default",
        "template": "tenant-virtual-cluster",
        "name": "one",
        "p_segment": "",
        "pools-TOTAL_FORMS": "2",
        "pools-INITIAL_FORMS": "0",
        "pools-0-name": "gpu",
        "pools-0-node_type": "fake.gpu",
        "pools-0-quantity": "2",
        "pools-0-labels": "workload=gpu",
        "pools-0-image": "",
        "pools-1-name": "",
        "pools-1-node_type": "",
        "pools-1-quantity": "1",
        "pools-1-labels": "",
        "pools-1-image": "",
        "do": "create",
    }
    return {**sent, **change}


def test_the_list_shows_state_nodes_and_segment(client, support):
    cluster = make.cluster("one")
    make.pool(cluster, quantity=2)
    make.claim("one-a", "ready", cluster=cluster)
    html = get(client, support, "/clusters/")
    assert "1 of 2" in html and "default-one" in html and "Ready" in html


def test_the_list_asks_the_database_as_often_for_many_as_for_few(
    client, support, django_assert_num_queries
):
    make.pool(make.cluster("one"))
    client.force_login(support)
    with django_assert_num_queries(12):
        client.get("/clusters/")
    for name in ("two", "three", "four"):
        make.pool(make.cluster(name))
    with django_assert_num_queries(12):
        client.get("/clusters/")


def test_an_empty_list_names_the_one_next_action_to_those_who_may(client, owner, viewer):
    make.tenant()
    assert "Create cluster" in get(client, owner, "/clusters/")
    html = get(client, viewer, "/clusters/")
    assert "No clusters yet" in html and "Create cluster" not in html


def test_a_foreign_cluster_is_as_absent_as_one_that_never_was(client, owner1):
    cluster = make.cluster("one")
    for rest in ("", "yaml/", "actions/"):
        get(client, owner1, f"{cluster.get_absolute_url()}{rest}", 404)
    client.force_login(owner1)
    for rest in ("delete/", "kubeconfig/", "retry/", "pools/gpu/"):
        assert client.post(f"{cluster.get_absolute_url()}{rest}").status_code == 404


def test_the_page_shows_the_sequence_as_it_moves(client, owner):
    cluster = make.cluster("one", state="deploying")
    phases(cluster, "deploying")
    html = get(client, owner, cluster.get_absolute_url())
    assert "Deploying control plane" in html
    assert 'aria-current="step"' in html
    assert "Connecting to platform" in html


def test_the_page_shows_both_endpoints_and_who_reaches_which(client, owner):
    cluster = make.cluster(
        "one", node_endpoint="192.168.101.2:8443", client_endpoint="https://api.example.com:443"
    )
    html = get(client, owner, cluster.get_absolute_url())
    assert "192.168.101.2:8443" in html and "only from default-one, nobody outside" in html
    assert "https://api.example.com:443" in html and "You, from outside" in html


def test_each_node_is_traced_to_claim_server_and_type(client, support, owner):
    cluster = make.cluster("one")
    claim = make.claim("one-a", "ready", cluster=cluster, tenant_address="192.168.101.11")
    html = get(client, support, cluster.get_absolute_url())
    for words in ("one-a", str(claim.server), "fake.gpu", "192.168.101.11"):
        assert words in html
    assert claim.server.get_absolute_url() in html
    assert claim.server.get_absolute_url() not in get(client, owner, cluster.get_absolute_url())


def test_a_failed_step_says_why_to_staff_and_in_general_to_the_tenant(client, support, owner):
    cluster = make.cluster(
        "one", state="failed", code="SWITCH_REFUSED", problem="leaf-secret said 400."
    )
    phases(cluster, "network", "failed", code="SWITCH_REFUSED", sentence="leaf-secret said 400.")
    html = get(client, support, cluster.get_absolute_url())
    assert "leaf-secret said 400." in html and "Network failed" in html
    html = get(client, owner, cluster.get_absolute_url())
    assert "leaf-secret" not in html
    assert "The fabric refused the change." in html and "Retry the step" in html


def test_a_retry_begins_the_failed_step_again(client, owner):
    cluster = make.cluster("one", state="failed", code="SWITCH_REFUSED")
    phases(cluster, "network", "failed", code="SWITCH_REFUSED")
    client.force_login(owner)
    answer = client.post(f"{cluster.get_absolute_url()}retry/", follow=True)
    assert "one is tried again" in answer.content.decode()


def test_a_retry_of_what_has_not_stopped_is_refused_in_place(client, owner):
    cluster = make.cluster("one")
    client.force_login(owner)
    answer = client.post(f"{cluster.get_absolute_url()}retry/")
    assert answer.status_code == 409 and "nothing to retry" in answer.content.decode()


def test_a_pool_gets_another_quantity(client, owner):
    cluster = make.cluster("one")
    pool = make.pool(cluster)
    client.force_login(owner)
    client.post(f"{cluster.get_absolute_url()}pools/gpu/", {"quantity": "3"})
    pool.refresh_from_db()
    assert pool.quantity == 3


def test_a_wrong_quantity_stands_beside_its_field_with_what_was_typed(client, owner):
    cluster = make.cluster("one")
    make.pool(cluster)
    client.force_login(owner)
    answer = client.post(f"{cluster.get_absolute_url()}pools/gpu/", {"quantity": "-7"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="-7"' in html and "greater than or equal to 0" in html


def test_the_kubeconfig_is_a_file_for_those_who_may_and_its_taking_is_history(
    client, owner, viewer, support
):
    cluster = make.cluster("one", kubeconfig=KUBECONFIG, client_endpoint="api.example.com:443")
    at = f"{cluster.get_absolute_url()}kubeconfig/"
    client.force_login(owner)
    answer = client.post(at)
    assert "https://api.example.com:443" in answer.content.decode()
    assert answer["Content-Disposition"] == 'attachment; filename="one.kubeconfig.yaml"'
    assert answer["Cache-Control"] == "no-store"
    assert Event.objects.filter(verb="kubeconfig", actor="owner").exists()
    assert client.get(at).status_code == 405
    for person in (viewer, support):
        client.force_login(person)
        assert client.post(at).status_code == 403
        assert "Download kubeconfig" not in get(client, person, cluster.get_absolute_url())


def test_the_kubeconfig_of_a_cluster_that_is_not_ready_is_refused_in_place(client, owner):
    cluster = make.cluster("one", state="deploying")
    client.force_login(owner)
    answer = client.post(f"{cluster.get_absolute_url()}kubeconfig/")
    assert answer.status_code == 409 and "CLUSTER_NOT_READY" in answer.content.decode()


def test_deleting_lists_what_goes_and_wants_the_name(client, owner):
    cluster = make.cluster("one")
    claim = make.claim("one-a", "ready", cluster=cluster)
    at = f"{cluster.get_absolute_url()}delete/"
    html = get(client, owner, at)
    assert claim.node_name in html and "Control plane" in html
    assert "stays with tenant default" in html
    answer = client.post(at, {"confirm": "two"})
    assert answer.status_code == 422 and "That is not one." in answer.content.decode()
    cluster.refresh_from_db()
    assert cluster.state == "ready"
    client.post(at, {"confirm": "one"})
    cluster.refresh_from_db()
    assert cluster.state == "deleting"


def test_a_new_cluster_is_asked_for_with_its_pools(client, owner):
    make.template()
    make.node_type()
    make.segment("rack", make.tenant())
    client.force_login(owner)
    answer = client.post("/clusters/new/", form(p_segment="rack"))
    assert answer["Location"] == "/clusters/default/one/"
    cluster = TenantCluster.objects.get()
    assert cluster.segment == Segment.objects.get(name="rack")
    pool = NodePool.objects.get()
    assert (pool.name, pool.quantity, pool.labels) == ("gpu", 2, {"workload": "gpu"})
    assert cluster.asked_by == "owner"


def test_errors_stand_beside_their_fields_and_what_was_typed_is_kept(client, owner):
    make.template()
    make.node_type()
    client.force_login(owner)
    sent = form(name="Not A Name", **{"pools-0-quantity": "x", "pools-1-name": "cpu"})
    answer = client.post("/clusters/new/", sent)
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="Not A Name"' in html and 'value="cpu"' in html
    assert "Enter a whole number." in html and "This field is required." in html
    assert not TenantCluster.objects.exists()


def test_what_the_service_refuses_stands_beside_the_field_too(client, owner):
    make.template()
    make.node_type()
    make.cluster("one")
    client.force_login(owner)
    html = client.post("/clusters/new/", form()).content.decode()
    assert "Tenant default has a cluster called one already." in html
    html = client.post("/clusters/new/", form(name="UPPER")).content.decode()
    assert "Use lower-case letters, digits and hyphens" in html
    both = {"pools-1-name": "gpu", "pools-1-node_type": "fake.gpu"}
    html = client.post("/clusters/new/", form(name="two", **both)).content.decode()
    assert "Two pools have this name." in html


def test_the_document_is_rendered_beside_the_form_and_needs_no_script(client, owner):
    make.template()
    make.node_type()
    make.server()
    client.force_login(owner)
    html = client.post("/clusters/new/", form(do="preview")).content.decode()
    assert "privateNodes:" in html and "given in the network step" in html
    assert "1 would wait" in html
    assert "This field is required." not in html
    part = client.post("/clusters/new/preview/", form()).content.decode()
    assert "privateNodes:" in part and "<html" not in part


def test_a_pool_can_be_added_without_script(client, owner):
    make.template()
    make.node_type()
    client.force_login(owner)
    html = client.post("/clusters/new/", form(do="add")).content.decode()
    assert 'name="pools-2-name"' in html and 'value="workload=gpu"' in html


def test_only_the_tenants_own_free_segments_are_offered(client, owner):
    make.template()
    make.segment("mine")
    make.segment("theirs", make.tenant("tenant1"))
    make.cluster("used", segment=make.segment("taken"))
    html = get(client, owner, "/clusters/new/")
    assert "mine · VLAN" in html
    assert "theirs" not in html and "taken" not in html


def test_a_tenant_cannot_create_for_another(client, owner):
    make.template()
    make.node_type()
    make.tenant("tenant1")
    client.force_login(owner)
    client.post("/clusters/new/", form(tenant="tenant1"))
    assert not TenantCluster.objects.filter(tenant__name="tenant1").exists()


def test_people_who_may_not_create_are_told_who_may(client, viewer, support):
    make.template()
    for person in (viewer, support):
        assert "owner or operator of the tenant" in get(client, person, "/clusters/new/", 403)


def test_the_document_of_a_cluster_has_no_auto_nodes(client, owner):
    cluster = make.cluster("one", node_endpoint="10.0.0.2:8443")
    html = get(client, owner, f"{cluster.get_absolute_url()}yaml/")
    assert "10.0.0.2:8443" in html and "autoNodes:" not in html
