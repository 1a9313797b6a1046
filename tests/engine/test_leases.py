"""Leases have one holder at a time, by the database's clock."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from gpucloud.engine import leases
from gpucloud.engine.clock import later
from gpucloud.models import Lease

pytestmark = pytest.mark.django_db


def test_a_lease_held_by_somebody_else_is_not_given():
    with leases.holding(["server:a"]) as mine:
        assert mine is not None
        with leases.holding(["server:a"]) as other:
            assert other is None


def test_a_lease_is_free_again_after_its_block():
    with leases.holding(["server:a"]):
        pass
    with leases.holding(["server:a"]) as again:
        assert again is not None


def test_when_one_of_two_resources_is_taken_the_other_is_given_back():
    with leases.holding(["fabric:x"]):
        with leases.holding(["server:a", "fabric:x"]) as both:
            assert both is None
        with leases.holding(["server:a"]) as free:
            assert free is not None


def test_leases_are_taken_server_first_then_fabric_then_cluster():
    assert leases.order(["cluster:c", "fabric:b", "server:z", "server:a"]) == [
        "server:a",
        "server:z",
        "fabric:b",
        "cluster:c",
    ]


def test_a_dead_holder_is_succeeded_only_one_request_timeout_after_its_lease():
    Lease.objects.create(resource="server:a", holder="dead", expires=later(-5), generation=3)
    with leases.holding(["server:a"]) as early:
        assert early is None
    Lease.objects.filter(resource="server:a").update(expires=later(-leases.REQUEST_SECONDS - 1))
    with leases.holding(["server:a"]) as successor:
        assert successor is not None and successor.generations == {"server:a": 4}


def test_a_holder_whose_lease_ran_out_may_not_record():
    with leases.holding(["server:a"]) as held:
        assert held is not None
        held.confirm()
        Lease.objects.filter(resource="server:a").update(expires=Now())
        with pytest.raises(leases.LeaseLost):
            held.confirm()


def test_a_holder_that_was_succeeded_may_not_record():
    with leases.holding(["server:a"]) as held:
        assert held is not None
        Lease.objects.filter(resource="server:a").update(holder="successor", generation=9)
        with pytest.raises(leases.LeaseLost):
            held.confirm()


def test_a_leader_stays_leader_and_hands_over_when_it_resigns(monkeypatch):
    assert leases.lead("sweep")
    assert leases.lead("sweep")
    monkeypatch.setattr(leases, "_process", "another process")
    assert not leases.lead("sweep")
    monkeypatch.undo()
    leases.resign("sweep")
    monkeypatch.setattr(leases, "_process", "another process")
    assert leases.lead("sweep")
