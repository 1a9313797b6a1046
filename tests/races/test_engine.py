"""Workers on one owner: one at a time, a late one records and writes nothing, nobody waits dead."""

from __future__ import annotations

import random
import threading
import time
import uuid
from types import SimpleNamespace

import pytest
from django.db.models.functions import Now

from gpucloud import drivers
from gpucloud.drivers import DriverError, Progress
from gpucloud.engine import leases, steps
from gpucloud.engine.advance import advance
from gpucloud.engine.plan import plan_of
from gpucloud.models import Step
from inventory.drivers.fake import FakeBmc, FakeBmcConfig
from inventory.models import Server
from provisioning.models import NodeClaim
from provisioning.plans import OperationPlan
from provisioning.services import claims
from tenants.lifecycle import PHASES
from tenants.models import TenantCluster
from tenants.plans import ClusterPlan
from tenants.services import clusters
from tests import make
from tests.drive import rounds
from tests.races.crowd import no_leases, raised, short_leases, together

pytestmark = pytest.mark.races
OWNER = uuid.UUID("00000000-0000-4000-8000-000000000002")
NAMES = ("configure", "setup", "install", "stop", "move")


class CountingPlan:
    """Counts how many are inside one step at once, and how often each was run and ended."""

    kind = "operation"

    def __init__(self):
        self.inside = self.most = 0
        self.ran, self.done, self.finished = [], [], 0
        self.during = lambda step: None
        self._mutex = threading.Lock()

    def load(self, uid):
        return SimpleNamespace(uid=uid)

    def lock(self, owner):
        return

    def leases(self, owner, step):
        return [f"server:{owner.uid}"]

    def run(self, owner, step):
        with self._mutex:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.ran.append(step.name)
        try:
            time.sleep(random.uniform(0.005, 0.03))
            return self.during(step) or Progress(True, f"{step.name} done")
        finally:
            with self._mutex:
                self.inside -= 1

    def on_started(self, owner, step):
        return

    def on_looked(self, owner, step):
        return

    def on_done(self, owner, step, progress):
        self.done.append(step.name)

    def on_finished(self, owner):
        self.finished += 1

    def on_failed(self, owner, step, error):
        return

    def on_alarm(self, owner, step):
        return


@pytest.fixture
def plan(monkeypatch):
    made = CountingPlan()
    monkeypatch.setattr("gpucloud.engine.advance.plan_of", lambda kind: made)
    return made


def crowd_on_one_owner(plan, threads=8):
    steps.begin("operation", OWNER, NAMES)

    def work():
        for _ in range(200):
            advance("operation", OWNER)
            if plan.finished:
                return

    assert raised(together(*[work] * threads)) == []


def test_two_workers_run_an_owners_step_one_at_a_time(plan):
    crowd_on_one_owner(plan)
    assert plan.most == 1
    assert plan.ran == plan.done == list(NAMES) and plan.finished == 1


def test_without_leases_a_step_runs_twice_at_once_and_is_still_recorded_once(plan, monkeypatch):
    monkeypatch.setattr(leases, "holding", no_leases)
    plan.during = lambda step: time.sleep(0.1)
    crowd_on_one_owner(plan, 2)
    assert plan.most > 1
    assert plan.done == list(NAMES) and plan.finished == 1


# -- a worker that freezes


class Freezing:
    """The first look stands still until it is told to go on, then writes to its BMC."""

    def __init__(self, plan):
        self.bmc = FakeBmc(FakeBmcConfig("frozen"))
        self.frozen, self.thaw, self.refused = threading.Event(), threading.Event(), []
        self._first = True
        plan.during = self._look

    def _look(self, step):
        frozen, self._first = self._first, False
        if frozen:
            self.frozen.set()
            self.thaw.wait(20)
        try:
            self.bmc.set_power("on" if frozen else "off")
        except DriverError as error:
            self.refused.append(error.code)
            raise
        who = "the frozen one" if frozen else "the successor"
        return Progress(True, f"seen by {who}")


def freeze(plan, successor=True):
    """A worker freezes past its lease; a successor takes over, or nobody comes; it wakes again."""
    world = Freezing(plan)
    world.bmc.server.power = "on"
    steps.begin("operation", OWNER, ["configure"])

    def late():
        advance("operation", OWNER)

    def next_one():
        world.frozen.wait(10)
        ends = time.monotonic() + 15
        while successor and not plan.done and time.monotonic() < ends:
            Step.objects.filter(current=True).update(next_try_at=Now())
            advance("operation", OWNER)
            time.sleep(0.1)
        if not successor:
            time.sleep(1.3)
        world.thaw.set()

    assert raised(together(late, next_one)) == []
    return world


def test_a_frozen_worker_writes_nothing_and_records_nothing(plan, monkeypatch):
    short_leases(monkeypatch)
    world = freeze(plan)
    step = Step.objects.get()
    assert (step.state, step.sentence) == ("done", "seen by the successor")
    assert plan.done == ["configure"] and plan.finished == 1
    assert world.refused == ["BUDGET_SPENT"]
    assert world.bmc.server.writes == [("power", "off")]


def test_without_the_budget_a_frozen_worker_writes_over_its_successor(plan, monkeypatch):
    short_leases(monkeypatch)
    monkeypatch.setattr("inventory.drivers.fake.check_budget", lambda verb: None)
    world = freeze(plan)
    assert world.bmc.server.writes[-1] == ("power", "on")


def test_a_worker_whose_lease_ran_out_records_nothing_even_when_nobody_came(plan, monkeypatch):
    short_leases(monkeypatch, budget=60)
    freeze(plan, successor=False)
    assert plan.done == [] and Step.objects.get().state == "running"


def test_without_the_lease_asked_again_a_late_worker_records(plan, monkeypatch):
    short_leases(monkeypatch, budget=60)
    monkeypatch.setattr(leases.Held, "confirm", lambda self: None)
    freeze(plan, successor=False)
    assert plan.done == ["configure"]


def test_a_spent_budget_refuses_before_the_write():
    with drivers.call_budget(0), pytest.raises(DriverError) as refused:
        drivers.check_budget("power on")
    assert refused.value.code == "BUDGET_SPENT"


# -- people who decide while steps are recorded


def pause_in_hook(monkeypatch, kind):
    """The engine stands for a moment in the transaction that records a look."""
    inside = threading.Event()
    real = kind.on_looked

    def on_looked(self, owner, step):
        # Not when a step starts: a cluster's row is locked by its move then, before this.
        if step.state != Step.State.RUNNING:
            inside.set()
            time.sleep(0.5)
        real(self, owner, step)

    monkeypatch.setattr(kind, "on_looked", on_looked)
    plan_of.cache_clear()
    return inside


def waiting_claim():
    cluster = make.cluster(state="network")
    claim = claims.request("owner", cluster.tenant, make.node_type(), cluster=cluster)
    return claim, claim.operations.get().uid


def release_while_recorded(monkeypatch):
    claim, uid = waiting_claim()
    inside = pause_in_hook(monkeypatch, OperationPlan)

    def person():
        inside.wait(10)
        claims.release(claim, "owner")

    results = together(lambda: advance("operation", uid), person)
    return raised(results), NodeClaim.objects.get()


def test_a_release_and_a_step_that_is_recorded_do_not_wait_for_each_other(monkeypatch):
    errors, claim = release_while_recorded(monkeypatch)
    assert errors == [] and claim.state == "gone"
    assert not Step.objects.filter(current=True).exists()


def test_without_the_owner_locked_first_the_two_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(OperationPlan, "lock", lambda self, owner: None)
    errors, _ = release_while_recorded(monkeypatch)
    assert any("deadlock" in str(one) for one in errors)


def make_cluster():
    make.segment("rack")
    return clusters.create_cluster("owner", make.tenant(), "one", make.template(), {}, [])


def delete_while_recorded(monkeypatch):
    cluster = make_cluster()
    inside = pause_in_hook(monkeypatch, ClusterPlan)

    def person():
        inside.wait(10)
        clusters.delete_cluster(cluster, "owner")

    return raised(together(lambda: advance("cluster", cluster.uid), person))


def test_a_deletion_and_a_phase_that_is_recorded_do_not_wait_for_each_other(monkeypatch):
    assert delete_while_recorded(monkeypatch) == []
    assert TenantCluster.objects.get().state == "deleting"


def test_without_the_cluster_locked_first_the_two_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(ClusterPlan, "lock", lambda self, owner: None)
    assert any("deadlock" in str(one) for one in delete_while_recorded(monkeypatch))


@pytest.mark.parametrize("again", range(4))
def test_a_deletion_at_any_phase_ends_all_phases_and_the_cluster_goes(again):
    cluster = make_cluster()

    def engine():
        for _ in range(30):
            Step.objects.filter(kind="cluster", current=True).update(next_try_at=Now())
            advance("cluster", cluster.uid)

    def person():
        time.sleep(0.15 * again)
        clusters.delete_cluster(TenantCluster.objects.get(), "owner")

    assert raised(together(engine, engine, person)) == []
    rows = Step.objects.filter(kind="cluster", name__in=PHASES)
    assert not rows.filter(state__in=Step.LIVE).exists()
    rounds(20)
    assert TenantCluster.objects.get().state == "gone"


def test_many_releases_at_once_wake_the_queue_and_hold_nothing():
    cluster = make.cluster(state="network")
    kind = make.node_type()
    for _ in range(12):
        claims.request("owner", cluster.tenant, kind, cluster=cluster)
    wished = list(NodeClaim.objects.order_by("pk"))
    works = [lambda one=one: claims.release(one, "owner") for one in wished[:10]]
    assert raised(together(*works)) == []
    assert NodeClaim.objects.live().count() == 2
    assert Step.objects.filter(current=True).count() == 2
    assert not Server.objects.filter(state="held").exists()
