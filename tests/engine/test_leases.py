"""Leases have one holder at a time, by the database's clock."""

from __future__ import annotations

import os
import subprocess
import sys

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


def holder_of(pid, born=None):
    """As a process of this machine names itself, with another number and time of birth."""
    parts = leases._process.split(":")
    return ":".join([*parts[:2], str(pid), born or parts[3], "x", "1", "abc"])


def ended_process():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_leases_of_a_process_that_died_here_are_waited_for_one_request_only():
    dead = holder_of(ended_process())
    Lease.objects.create(resource="server:a", holder=dead, expires=later(40), generation=3)
    assert leases.expire_dead() == 1
    with leases.holding(["server:a"]) as early:
        assert early is None
    Lease.objects.filter(resource="server:a").update(expires=later(-leases.REQUEST_SECONDS - 1))
    with leases.holding(["server:a"]) as successor:
        assert successor is not None


def test_another_process_with_the_number_of_a_dead_one_does_not_keep_its_leases():
    dead = holder_of(os.getpid(), born="1")
    Lease.objects.create(resource="server:a", holder=dead, expires=later(40), generation=3)
    assert leases.expire_dead() == 1


def test_leases_of_the_living_and_of_other_machines_are_left_alone():
    living = holder_of(os.getpid())
    elsewhere = ":".join(["other", "0123456789ab", str(ended_process()), "1", "x", "1", "abc"])
    unknown = f"other::{ended_process()}::x:1:abc"
    for name, holder in (("a", living), ("b", elsewhere), ("c", unknown), ("d", "somebody")):
        Lease.objects.create(resource=f"server:{name}", holder=holder, expires=later(40))
    assert leases.expire_dead() == 0


def test_the_leadership_of_a_process_that_died_here_is_taken_at_once():
    dead = holder_of(ended_process())
    Lease.objects.create(resource="process:sealer", holder=dead, expires=later(15), generation=3)
    assert leases.lead("sealer")


def test_a_forked_child_is_a_holder_of_its_own():
    before = leases._process
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, leases._process.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 200).decode().split(":")[2] == str(child)
    assert leases._process == before
