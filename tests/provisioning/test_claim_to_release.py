"""The main job on the fakes: from a request to ready nodes, and back to wiped servers."""

from __future__ import annotations

import pytest

from gpucloud.models import Event, Secret, Step
from inventory.models import Server, WipeRecord
from network.models import Address, Attachment, Segment
from provisioning.models import NodeClaim
from provisioning.services import claims, inspections
from tenants.models import TenantCluster
from tenants.services import clusters
from tests import make
from tests.drive import Agent, rounds

pytestmark = pytest.mark.django_db


def create(name="one", tenant=None, quantity=1):
    tenant = tenant or make.tenant()
    if not tenant.segments.exists():
        make.segment(f"{tenant}-rack", tenant)
    pools = [
        {
            "name": "gpu",
            "node_type": make.node_type(),
            "quantity": quantity,
            "labels": {"workload": "gpu"},
        }
    ]
    return clusters.create_cluster("owner", tenant, name, make.template(), {}, pools)


def only(cluster):
    return NodeClaim.objects.get(cluster=cluster)


def test_a_cluster_gets_a_node_and_gives_the_server_back_wiped():
    server = make.server(gpus=0)
    cluster = create()
    rounds()
    claim = only(cluster)
    assert (claim.state, claim.server) == ("ready", server)
    port = server.interfaces.get().attachments.exclude(state="gone").get()
    assert (port.segment, port.state, port.observed) == (cluster.segment, "applied", True)
    server.refresh_from_db()
    assert (server.state, server.tenancy, server.clean_tenancy) == ("held", 2, 1)

    clusters.delete_cluster(cluster, "owner")
    rounds()
    server.refresh_from_db()
    claim.refresh_from_db()
    cluster.refresh_from_db()
    assert (cluster.state, claim.state, server.state) == ("gone", "gone", "available")
    assert (server.tenancy, server.clean_tenancy, server.power) == (2, 2, "off")
    port = server.interfaces.get().attachments.exclude(state="gone").get()
    assert port.segment.role == Segment.Role.PROVISIONING
    assert WipeRecord.objects.get(server=server, tenancy=2).passed
    assert not Address.objects.exists()
    assert not Secret.objects.filter(kind__in=("claim", "cluster", "agent_run")).exists()


def test_every_step_of_a_claim_and_of_its_release_is_kept_in_order():
    make.server()
    cluster = create()
    rounds()
    clusters.delete_cluster(cluster, "owner")
    rounds()
    claim = only(cluster)
    told = [
        list(
            Step.objects.filter(owner_uid=operation.uid)
            .order_by("run", "index")
            .values_list("name", "state")
        )
        for operation in claim.operations.order_by("pk")
    ]
    assert told == [
        [(name, "done") for name in make.CLAIM_STEPS],
        [(name, "done") for name in make.RELEASE_STEPS],
    ]


def test_without_a_free_server_a_claim_waits_with_its_place_and_the_oldest_is_served_first():
    first = make.server()
    one = create("one")
    rounds()
    two = create("two", make.tenant("tenant1"))
    rounds(5)
    three = create("three", make.tenant("tenant2"))
    rounds(5)
    assert claims.position(only(two)) == (1, 2)
    assert claims.position(only(three)) == (2, 2)
    assert only(two).code == "WAITING_FOR_CAPACITY"

    clusters.delete_cluster(one, "owner")
    rounds()
    assert only(two).server == first
    assert only(three).server is None
    assert claims.position(only(three)) == (1, 1)


def test_a_wipe_that_left_data_keeps_the_server_out_until_a_retry_passes():
    server = make.server()
    cluster = create()
    rounds()
    clusters.delete_cluster(cluster, "owner")
    rounds(agent=Agent(readback={"samples": 64, "nonblank": 3}))
    server.refresh_from_db()
    claim = only(cluster)
    assert (server.state, server.code) == ("failed", "READBACK_NOT_BLANK")
    assert (claim.state, claim.server) == ("releasing", server)
    assert not WipeRecord.objects.get(server=server, tenancy=2).passed

    claims.retry(claim, "admin")
    rounds()
    server.refresh_from_db()
    assert server.state == "available"
    assert only(cluster).state == "gone"


def test_a_claim_given_up_while_it_waits_is_gone_at_once():
    cluster = create()
    rounds(8)
    claim = only(cluster)
    assert claim.state == "pending"
    clusters.delete_cluster(cluster, "owner")
    rounds()
    cluster.refresh_from_db()
    assert (only(cluster).state, cluster.state) == ("gone", "gone")


@pytest.mark.parametrize("after", range(1, 14))
def test_a_cluster_deleted_at_any_moment_leaves_nothing_behind(after):
    server = make.server()
    cluster = create()
    rounds(after)
    clusters.delete_cluster(cluster, "owner")
    rounds(60)
    cluster.refresh_from_db()
    server.refresh_from_db()
    assert cluster.state == "gone"
    assert server.state == "available"
    assert not NodeClaim.objects.live().exists()
    assert not Address.objects.exists()
    held = Attachment.objects.exclude(state="gone").exclude(segment__role="provisioning")
    assert not held.exists()


def test_a_pool_grows_and_shrinks_by_its_quantity():
    make.server()
    make.server()
    cluster = create()
    rounds()
    pool = cluster.pools.get()
    clusters.resize_pool(pool, 2, "owner")
    rounds()
    assert NodeClaim.objects.filter(state="ready").count() == 2
    clusters.resize_pool(pool, 0, "owner")
    rounds()
    assert not NodeClaim.objects.live().exists()
    assert Server.objects.filter(state="available").count() == 2


def test_over_quota_no_claim_is_made_and_the_reason_is_kept():
    make.server()
    tenant = make.tenant()
    tenant.quota = {"servers": 0}
    tenant.save()
    cluster = create()
    rounds(12)
    assert not NodeClaim.objects.exists()
    cluster.refresh_from_db()
    assert (cluster.state, cluster.code) == ("ready", "QUOTA_EXCEEDED")
    assert "may hold 0 servers" in cluster.problem
    assert Event.objects.filter(verb="pool short", object_uid=cluster.uid).count() == 1
    tenant.quota = {}
    tenant.save()
    rounds()
    cluster.refresh_from_db()
    assert (only(cluster).state, cluster.code, cluster.problem) == ("ready", "", "")


def test_a_pool_over_quota_gets_what_the_quota_allows():
    make.server()
    make.server()
    tenant = make.tenant()
    tenant.quota = {"servers": 1}
    tenant.save()
    cluster = create(quantity=2)
    rounds()
    cluster.refresh_from_db()
    assert (only(cluster).state, cluster.code) == ("ready", "QUOTA_EXCEEDED")


def test_gpus_other_than_the_node_types_fail_verify_and_hold_the_server():
    make.server(gpus=2)
    make.node_type(sku={"gpu_count": 4})
    cluster = create()
    rounds()
    claim = only(cluster)
    assert (claim.state, claim.code) == ("failed", "GPU_MISMATCH")
    assert claim.server.state == "held"
    clusters.delete_cluster(cluster, "owner")
    rounds()
    assert only(cluster).state == "gone"


def test_a_server_without_a_cable_is_not_taken_and_says_why():
    make.server(cabled=False)
    cluster = create()
    rounds(12)
    claim = only(cluster)
    assert claim.server is None
    assert claim.code == "NO_CABLE_PLAN"


def test_no_secret_stands_in_history_steps_or_claims():
    make.server()
    cluster = create()
    rounds()
    claim = only(cluster)
    texts = [str(e.data) + e.message for e in Event.objects.all()]
    texts += [str(s.evidence) + str(s.lines) + s.sentence for s in Step.objects.all()]
    texts += [str(claim.evidence), str(claim.selection), str(cluster.conditions)]
    assert not [text for text in texts if "join?token" in text or "BEGIN" in text]


def test_a_cluster_without_a_segment_gets_one_that_dies_with_it():
    make.server()
    tenant = make.tenant("tenant1")
    pools = [{"name": "gpu", "node_type": make.node_type(), "quantity": 1}]
    make.fabric()
    cluster = clusters.create_cluster("owner1", tenant, "two", make.template(), {}, pools)
    rounds()
    cluster.refresh_from_db()
    assert only(cluster).state == "ready"
    assert cluster.segment.made_for == cluster.uid
    vlan = cluster.segment.vlan
    clusters.delete_cluster(cluster, "owner1")
    rounds()
    assert TenantCluster.objects.get(pk=cluster.pk).state == "gone"
    assert not Segment.objects.exclude(state="gone").filter(vlan=vlan).exists()


def test_an_inspection_reads_where_the_ports_are():
    server = make.server(state="enrolled")
    inspections.start(server, "admin")
    rounds()
    port = server.interfaces.get()
    held = port.attachments.exclude(state="gone").get()
    assert (held.segment.role, held.state, held.observed) == ("provisioning", "applied", True)
    assert port.link.seen_vlan == 10
