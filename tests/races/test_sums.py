"""Scarce sums hold to the last unit: quota, VLANs, addresses, pool sizes, names."""

from __future__ import annotations

import pytest
from django.db.models import Count

from gpucloud.problems import Invalid, Problem
from inventory.services import servers
from network.models import Address, Fabric, Segment
from network.services import segments
from provisioning import reconcile
from provisioning.models import NodeClaim
from provisioning.services import claims
from tenants.models import NodePool, TenantCluster
from tenants.services import clusters, tenants
from tests import make
from tests.races.crowd import Meeting, Unlocked, raised, together

pytestmark = pytest.mark.races
CROWD = 16


# -- quota


def ask_at_once(count=CROWD):
    cluster = make.cluster()
    kind = make.node_type()
    return together(
        *[lambda: claims.request("owner", cluster.tenant, kind, cluster=cluster)] * count
    )


def meet_after_check(monkeypatch, count):
    """Everybody has checked before anybody writes, unless a lock keeps them apart."""
    meeting = Meeting(count, 1.0)
    real = claims.check_quota

    def checked(*args):
        real(*args)
        meeting.wait()

    monkeypatch.setattr(claims, "check_quota", checked)


def test_without_the_tenants_row_locked_a_quota_is_oversold(monkeypatch):
    make.tenant(quota={"servers": 5})
    meet_after_check(monkeypatch, 8)
    monkeypatch.setattr(claims, "Tenant", Unlocked)
    monkeypatch.setattr(claims, "_keep_cluster", lambda cluster: None)
    ask_at_once(8)
    assert NodeClaim.objects.count() == 8


def test_a_quota_is_sold_to_the_last_server_and_not_beyond():
    make.tenant(quota={"servers": 5})
    refused = raised(ask_at_once())
    assert NodeClaim.objects.count() == 5
    assert [getattr(one, "code", one) for one in refused] == ["QUOTA_EXCEEDED"] * (CROWD - 5)


def test_a_quota_of_gpus_is_sold_to_the_last_gpu():
    make.tenant(quota={"gpus": 8})
    make.node_type(sku={"gpu_count": 4})
    refused = raised(ask_at_once(8))
    assert NodeClaim.objects.count() == 2
    assert {getattr(one, "code", one) for one in refused} == {"QUOTA_EXCEEDED"}


def test_a_quota_that_was_lowered_meanwhile_counts():
    tenant = make.tenant(quota={"servers": 5})
    cluster, kind = make.cluster(), make.node_type()
    together(lambda: tenants.update(make.tenant(), "admin", quota={"servers": 0}))
    with pytest.raises(Problem) as refused:
        claims.request("owner", tenant, kind, cluster=cluster)
    assert refused.value.code == "QUOTA_EXCEEDED"


# -- numbers


def make_segments(count):
    fabric, tenant = make.fabric(), make.tenant()
    return together(
        *[
            lambda n=n: segments.create("admin", fabric, f"net-{n}", tenant=tenant)
            for n in range(count)
        ]
    )


def slowly(monkeypatch, name, count):
    """Everybody has read what is taken before anybody writes, unless a lock keeps them apart."""
    meeting = Meeting(count, 1.0)
    real = getattr(segments, name)

    def read(*args):
        found = real(*args)
        meeting.wait()
        return found

    monkeypatch.setattr(segments, name, read)


def test_without_the_fabrics_row_locked_a_vlan_is_chosen_twice(monkeypatch):
    slowly(monkeypatch, "_free_vlan", 4)
    monkeypatch.setattr(segments, "Fabric", Unlocked)
    refused = raised(make_segments(4))
    assert len(refused) == 3, "the index refuses what was chosen twice"


def test_every_segment_gets_a_vlan_of_its_own():
    assert raised(make_segments(CROWD)) == []
    taken = sorted(Segment.objects.filter(role="tenant").values_list("vlan", flat=True))
    assert taken == list(range(101, 101 + CROWD))


def test_the_last_vlan_is_given_once():
    Fabric.objects.filter(pk=make.fabric().pk).update(vlan_first=101, vlan_last=103)
    make.fabric().refresh_from_db()
    refused = raised(make_segments(6))
    assert [getattr(one, "code", one) for one in refused] == ["NO_VLAN"] * 3
    assert Segment.objects.filter(role="tenant").count() == 3


def take_addresses(segment, owners):
    return together(
        *[lambda uid=uid: segments.take_address(segment, "node", uid) for uid in owners]
    )


def test_without_the_segments_row_locked_an_address_is_chosen_twice(monkeypatch):
    segment = make.segment()
    meeting = Meeting(4, 1.0)
    real = Address.objects.create

    def create(**fields):
        meeting.wait()
        return real(**fields)

    monkeypatch.setattr(segments, "Segment", Unlocked)
    monkeypatch.setattr(Address.objects, "create", create)
    refused = raised(take_addresses(segment, [make.server().uid for _ in range(4)]))
    assert len(refused) == 3, "the index refuses what was chosen twice"


def test_every_owner_gets_an_address_of_its_own_and_the_same_one_again():
    segment = make.segment()
    owners = [make.server().uid for _ in range(8)]
    got = take_addresses(segment, owners * 2)
    assert raised(got) == []
    assert got[:8] == got[8:] and len(set(got)) == 8
    hosts = sorted(int(address.rpartition(".")[2]) for address in set(got))
    assert hosts == list(range(10, 18))


# -- pools


def settle_at_once(pool, count=4):
    works = [lambda: reconcile._settle(NodePool.objects.get(pk=pool.pk))] * count
    assert raised(together(*works)) == []


def live_of(pool):
    return pool.claims.live().exclude(state="releasing").count()


def test_without_the_pools_row_locked_a_pool_gets_too_many_claims(monkeypatch):
    pool = make.pool(make.cluster(), quantity=3)
    meeting = Meeting(2, 1.0)
    real = reconcile.difference

    def difference(*args):
        more = real(*args)
        meeting.wait()
        return more

    monkeypatch.setattr(reconcile, "difference", difference)
    pools = [NodePool.objects.get(pk=pool.pk) for _ in range(2)]
    monkeypatch.setattr(reconcile, "NodePool", Unlocked)
    together(*[lambda one=one: reconcile._settle(one) for one in pools])
    assert live_of(pool) > 3


def test_a_pool_is_never_over_its_quantity_when_two_sweeps_settle_it():
    pool = make.pool(make.cluster(), quantity=3)
    settle_at_once(pool)
    assert live_of(pool) == 3
    NodePool.objects.filter(pk=pool.pk).update(quantity=1)
    settle_at_once(pool)
    assert live_of(pool) == 1


def test_no_claim_is_made_for_a_cluster_whose_deletion_has_begun(monkeypatch):
    """The sweep has read a running cluster; its deletion is written before the claim is."""
    pool = make.pool(make.cluster(), quantity=1)
    real = claims.check_quota

    def meanwhile(*args):
        found = together(lambda: clusters.delete_cluster(TenantCluster.objects.get(), "owner"))
        assert raised(found) == []
        real(*args)

    monkeypatch.setattr(claims, "check_quota", meanwhile)
    reconcile.pools()
    assert TenantCluster.objects.get().state == "deleting"
    assert not NodeClaim.objects.exists() and live_of(pool) == 0


# -- names


def names_of(works, model, **match):
    """All but one are refused as a person's mistake, and one live row has the name."""
    refused = raised(together(*works))
    assert len(refused) == len(works) - 1
    assert all(isinstance(one, Invalid) for one in refused), refused
    assert model.objects.filter(**match).count() == 1


def test_a_claims_live_name_is_given_once():
    cluster, kind = make.cluster(), make.node_type()

    def ask():
        claims.request("owner", cluster.tenant, kind, cluster=cluster, name="mine")

    names_of([ask] * 8, NodeClaim, name="mine")


def test_without_its_index_a_claims_live_name_is_given_twice(without_index):
    without_index("claim_live_name")
    cluster, kind = make.cluster(), make.node_type()
    together(*[lambda: claims.request("o", cluster.tenant, kind, cluster=cluster, name="mine")] * 4)
    [found] = NodeClaim.objects.values("name").annotate(n=Count("pk"))
    assert found["n"] == 4


def test_a_clusters_live_name_is_given_once():
    tenant, template = make.tenant(), make.template()

    def ask():
        clusters.create_cluster("owner", tenant, "one", template, {}, [])

    names_of([ask] * 8, TenantCluster, name="one")


def test_one_segment_goes_to_one_cluster():
    tenant, template = make.tenant(), make.template()
    make.segment("rack", tenant)

    def ask(name):
        clusters.create_cluster("owner", tenant, name, template, {"segment": "rack"}, [])

    names_of([lambda n=n: ask(f"c{n}") for n in range(6)], TenantCluster, segment__name="rack")


def test_a_servers_live_name_is_given_once():
    make.site()
    names_of([lambda: servers.enroll("admin", "node-1")] * 6, servers.Server, name="node-1")


def test_a_segments_and_a_tenants_live_name_are_given_once():
    fabric = make.fabric()
    names_of([lambda: segments.create("admin", fabric, "net")] * 6, Segment, name="net")
    names_of([lambda: tenants.create("admin", "acme")] * 6, tenants.Tenant, name="acme")
