"""An agent that never calls is booted again: its media could not be loaded, something else runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpucloud import vault
from gpucloud.models import Step
from inventory.drivers.fake import FakeBmc
from provisioning import agents
from provisioning.models import AgentRun, NodeClaim
from provisioning.services import claims
from tests import make
from tests.drive import Agent, rounds

pytestmark = pytest.mark.django_db


class Cut(Agent):
    """A machine whose power goes while our agent works, and stays away."""

    def answer(self):
        for run in AgentRun.objects.filter(closed=False, hello_at=None):
            server = run.operation.server
            bmc = FakeBmc.worlds[server.bmc.config.get("name", "fake")]
            if bmc.power != "on":
                continue
            key = vault.get("agent_run", run.uid, "key")
            macs = [port.mac for port in server.interfaces.all()]
            agents.hello(key, server.system_uuid, macs, server.serial, "10.10.0.9")
            bmc.faults.add("ignore_power")
            bmc.power = "off"


class Silent(Agent):
    """A machine that booted something else than our agent."""

    def answer(self):
        return


def wiping():
    """A claim on its way home whose agent boots and does not call."""
    make.server()
    claim = make.claim(state="ready")
    claims.release(claim, "owner")
    rounds(agent=Silent())
    return Step.objects.get(name="wipe", state="waiting")


def let_pass(step, seconds):
    since = timezone.now() - timedelta(seconds=seconds)
    boots = {**step.evidence["boots"], "since": since.isoformat()}
    Step.objects.filter(pk=step.pk).update(evidence={**step.evidence, "boots": boots})


def test_an_agent_that_boots_slowly_is_waited_for():
    step = wiping()
    let_pass(step, NodeClaim.objects.get().node_type.post_seconds)
    rounds(8, agent=Silent())
    assert AgentRun.objects.count() == 1


def test_an_agent_that_never_calls_is_booted_again_with_a_new_key():
    step = wiping()
    let_pass(step, NodeClaim.objects.get().node_type.post_seconds + 301)
    rounds(8, agent=Silent())
    old, new = AgentRun.objects.order_by("pk")
    assert old.closed and not new.closed and old.key_digest != new.key_digest
    rounds()
    assert NodeClaim.objects.get().state == "gone"


def test_an_agent_whose_power_was_cut_is_booted_again_at_once():
    claim = make.claim(state="ready", server=make.server("x1", "held"))
    server = claim.server
    claims.release(claim, "owner")
    rounds(14, agent=Cut())
    called = AgentRun.objects.exclude(hello_at=None)
    assert called.count() == 1 and called.get().closed
    assert AgentRun.objects.filter(closed=False, hello_at=None).count() == 1
    server.refresh_from_db()
    assert server.state == "cleaning" and server.clean_tenancy != server.tenancy
    FakeBmc.worlds[server.bmc.config.get("name", "fake")].faults.clear()
    rounds()
    server.refresh_from_db()
    assert (server.state, server.clean_tenancy) == ("available", server.tenancy)
