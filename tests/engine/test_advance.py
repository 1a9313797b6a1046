"""advance() runs one step at a time, records what it saw, acts on nothing it lost."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import pytest
from django.db.models.functions import Now

from gpucloud.drivers import DriverError, Progress, budget_left
from gpucloud.engine import leases, steps
from gpucloud.engine.advance import advance
from gpucloud.engine.clock import later
from gpucloud.engine.due import nudge_due
from gpucloud.models import Step

pytestmark = pytest.mark.django_db
OWNER = uuid.UUID("00000000-0000-4000-8000-000000000001")


class ScriptedPlan:
    """A plan whose every step plays the next entry of its script: a Progress or an error."""

    kind = "operation"

    def __init__(self):
        self.script = {}
        self.ran = []
        self.told = []
        self.during = lambda step: None
        self.halting = None

    def load(self, uid):
        return SimpleNamespace(uid=uid)

    def leases(self, owner, step):
        return [f"server:{owner.uid}"]

    def lock(self, owner):
        return

    def run(self, owner, step):
        self.ran.append(step.name)
        self.during(step)
        entry = self.script.get(step.name, [Progress(True, f"{step.name} done")])
        result = entry.pop(0) if len(entry) > 1 else entry[0]
        if isinstance(result, Exception):
            raise result
        return result

    def on_started(self, owner, step):
        self.told.append(("started", step.name))

    def on_looked(self, owner, step):
        self.told.append(("looked", step.name))

    def on_done(self, owner, step, progress):
        self.told.append(("done", step.name))

    def on_finished(self, owner):
        self.told.append(("finished", ""))

    def on_failed(self, owner, step, error):
        self.told.append(("failed", error.code))

    def halt(self, owner, step):
        self.told.append(("halt", step.name))
        if self.halting:
            raise self.halting

    def on_alarm(self, owner, step):
        self.told.append(("alarm", step.name))


@pytest.fixture
def plan(monkeypatch):
    made = ScriptedPlan()
    monkeypatch.setattr("gpucloud.engine.advance.plan_of", lambda kind: made)
    return made


def begin(*names):
    steps.begin("operation", OWNER, names)


def step(name):
    return Step.objects.get(owner_uid=OWNER, name=name)


def test_steps_that_need_no_waiting_run_one_after_the_other(plan):
    begin("configure", "setup")
    advance("operation", OWNER)
    assert plan.ran == ["configure", "setup"]
    assert plan.told[-1] == ("finished", "")
    assert not Step.objects.filter(current=True).exists()


def test_a_step_that_is_not_done_waits_and_is_looked_at_again_when_due(plan):
    plan.script["configure"] = [Progress(False, "halfway", wait=60), Progress(True, "there")]
    begin("configure")
    advance("operation", OWNER)
    waiting = step("configure")
    assert (waiting.state, waiting.sentence, waiting.attempts) == ("waiting", "halfway", 1)
    advance("operation", OWNER)
    assert plan.ran == ["configure"]
    Step.objects.update(next_try_at=Now())
    advance("operation", OWNER)
    assert step("configure").state == "done"
    assert [line["text"] for line in step("configure").lines] == ["halfway", "there"]


def test_a_step_that_is_woken_during_its_look_is_looked_at_again_at_once(plan):
    plan.script["configure"] = [Progress(False, "halfway", wait=60), Progress(True, "there")]
    plan.during = lambda _: steps.look_now("operation", OWNER) if len(plan.ran) == 1 else None
    begin("configure")
    advance("operation", OWNER)
    assert plan.ran == ["configure", "configure"]
    assert step("configure").state == "done"


def test_a_step_that_fails_while_it_is_woken_is_due_at_once(plan):
    plan.script["configure"] = [DriverError("no answer", code="BMC_TIMEOUT")]
    plan.during = lambda _: steps.look_now("operation", OWNER)
    begin("configure")
    advance("operation", OWNER)
    assert Step.objects.filter(next_try_at__lte=Now()).exists()
    plan.during = lambda _: None
    advance("operation", OWNER)
    assert not Step.objects.filter(next_try_at__lte=Now()).exists()


def test_a_passing_error_keeps_the_step_waiting_with_its_code_and_backs_off(plan):
    plan.script["configure"] = [DriverError("no answer", code="BMC_TIMEOUT")]
    begin("configure")
    waits = []
    for _ in range(3):
        Step.objects.update(next_try_at=Now())
        advance("operation", OWNER)
        found = step("configure")
        waits.append(found.failures)
    assert (found.state, found.code, found.sentence) == ("waiting", "BMC_TIMEOUT", "no answer")
    assert waits == [1, 2, 3]
    assert ("failed", "BMC_TIMEOUT") not in plan.told


def test_a_permanent_error_fails_the_step_and_tells_the_owner(plan):
    plan.script["configure"] = [DriverError("wrong", code="BMC_LOGIN", permanent=True)]
    begin("configure", "setup")
    advance("operation", OWNER)
    assert step("configure").state == "failed"
    assert step("setup").state == "todo"
    assert plan.told[-1] == ("failed", "BMC_LOGIN")


def test_a_fault_of_ours_is_shown_as_one_without_its_text(plan):
    plan.script["configure"] = [KeyError("password=hunter2")]
    begin("configure")
    advance("operation", OWNER)
    assert step("configure").code == "BUG"
    assert "hunter2" not in step("configure").sentence


def test_retry_goes_on_at_the_step_that_failed(plan):
    refused = DriverError("no", code="HOST_ERROR", permanent=True)
    plan.script["setup"] = [refused, Progress(True, "ok")]
    begin("configure", "setup", "install")
    advance("operation", OWNER)
    assert steps.retry("operation", OWNER)
    advance("operation", OWNER)
    assert plan.ran == ["configure", "setup", "setup", "install"]


def test_a_step_past_its_deadline_fails_with_what_was_seen_last(plan):
    plan.script["configure"] = [Progress(False, "the control plane is not there", wait=0.05)]
    begin("configure")
    advance("operation", OWNER)
    Step.objects.update(deadline=later(-1), next_try_at=Now())
    advance("operation", OWNER)
    assert step("configure").state == "failed"
    assert "the control plane is not there" in step("configure").sentence
    assert plan.told[-1] == ("failed", "STEP_TIMEOUT")


@pytest.mark.parametrize("trouble", [None, DriverError("no answer", code="KUBE_UNREACHABLE")])
def test_what_the_outside_still_does_is_called_off_before_a_deadline_fails_the_step(plan, trouble):
    plan.script["install"] = [Progress(False, "writing", wait=0.05)]
    plan.halting = trouble
    begin("install")
    advance("operation", OWNER)
    Step.objects.update(deadline=later(-1), next_try_at=Now())
    advance("operation", OWNER)
    assert plan.told[-2:] == [("halt", "install"), ("failed", "INSTALL_SILENT")]
    assert step("install").state == "failed"


def test_waiting_for_capacity_alarms_at_its_deadline_and_goes_on(plan):
    plan.script["select"] = [Progress(False, "none free", wait=0.05)]
    begin("select")
    advance("operation", OWNER)
    Step.objects.update(deadline=later(-1), next_try_at=Now())
    advance("operation", OWNER)
    assert ("alarm", "select") in plan.told
    assert step("select").state == "waiting"


def test_nothing_is_done_while_another_worker_holds_the_lease(plan):
    begin("configure")
    with leases.holding([f"server:{OWNER}"]):
        advance("operation", OWNER)
    assert plan.ran == []


def test_a_worker_whose_lease_was_taken_while_it_ran_records_nothing(plan):
    from gpucloud.models import Lease

    begin("configure", "setup")
    plan.during = lambda step: Lease.objects.update(holder="successor", generation=99)
    advance("operation", OWNER)
    assert step("configure").state == "running"
    assert plan.ran == ["configure"]


def test_a_step_cancelled_while_it_ran_is_not_brought_back(plan):
    begin("configure", "setup")
    plan.during = lambda step: steps.cancel("operation", OWNER)
    advance("operation", OWNER)
    assert step("configure").state == "skipped"
    assert plan.ran == ["configure"]
    assert ("finished", "") not in plan.told


def test_a_killed_workers_running_step_is_run_again(plan):
    begin("configure")
    Step.objects.update(state="running", attempts=1, started=Now(), since=Now())
    advance("operation", OWNER)
    assert step("configure").state == "done"
    assert step("configure").attempts == 2


def test_a_driver_call_has_a_budget_below_its_lease(plan):
    seen = []
    plan.during = lambda step: seen.append(budget_left())
    begin("configure")
    advance("operation", OWNER)
    assert 0 < seen[0] <= leases.LEASE_SECONDS - leases.MARGIN_SECONDS


def test_a_new_run_takes_the_old_runs_steps_out(plan):
    plan.script["install"] = [Progress(False, "writing", wait=60)]
    begin("install", "stop")
    advance("operation", OWNER)
    begin("drain")
    first = Step.objects.filter(run=1).values_list("state", flat=True)
    assert list(first) == ["skipped", "skipped"]
    assert Step.objects.get(current=True).name == "drain"


def test_without_redis_the_sweep_runs_what_is_due(plan, monkeypatch, settings):
    settings.REDIS_URL = ""
    ran = []
    monkeypatch.setattr("gpucloud.engine.due._here", lambda kind, uid: ran.append((kind, uid)))
    begin("configure")
    assert nudge_due() == 1
    from gpucloud.engine import due

    due._pool.submit(lambda: None).result()
    assert ran == [("operation", OWNER)]
