"""Drives the engine in a test without processes: due steps are run, pools reconciled, our agent answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models.functions import Now

from gpucloud import vault
from gpucloud.engine.advance import advance
from gpucloud.models import Step
from provisioning import agents, reconcile
from provisioning.models import AgentRun
from tenants.services import clusters


class Agent:
    """What the ramdisk would do: calls in with the run's key and reports every drive of the inventory blank."""

    def __init__(self, **change: Any) -> None:
        self.change = change

    def report(self, run: AgentRun) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        drives = [
            {
                "serial": drive.serial,
                "model": drive.model,
                "ok": True,
                "method": "sanitize",
                "methods_tried": [{"method": "sanitize", "status": "ok"}],
                "started": now,
                "ended": now,
                "readback": {"samples": 64, "nonblank": 0},
                **self.change,
            }
            for drive in run.operation.server.drives.all()
        ]
        return {"drives": drives}

    def answer(self) -> None:
        for run in AgentRun.objects.filter(closed=False, result_at=None):
            step = Step.objects.filter(owner_uid=run.operation.uid, current=True).first()
            if step is None or step.name != "wipe" or not step.attempts:
                continue
            server = run.operation.server
            key = vault.get("agent_run", run.uid, "key")
            macs = [port.mac for port in server.interfaces.all()]
            token = agents.hello(key, server.system_uuid, macs, server.serial, "10.10.0.9")
            agents.plan(token)
            agents.result(token, True, "", self.report(run))


def rounds(count: int = 40, agent: Agent | None = None) -> None:
    """Let the world go on for some rounds: every current step is looked at once a round."""
    agent = agent or Agent()
    for _ in range(count):
        reconcile.pools()
        clusters.settle()
        Step.objects.filter(current=True).update(next_try_at=Now())
        due = list(Step.objects.filter(current=True).values_list("kind", "owner_uid"))
        if not due:
            return
        for kind, uid in due:
            advance(kind, uid)
        agent.answer()
