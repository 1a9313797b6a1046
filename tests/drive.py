"""Drives the engine in a test without processes: steps run, pools settle, our agent answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models.functions import Now

from gpucloud import vault
from gpucloud.engine.advance import advance
from gpucloud.models import Step
from provisioning import agents, reconcile
from provisioning.models import AgentRun, Operation
from tenants.drivers import fake
from tenants.services import clusters


class Agent:
    """What the ramdisk would do: call in with the run's key, report every drive blank."""

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


def boot_machines() -> None:
    """Machines that were told to boot run their user data and join, as a tenant's system would."""
    for step in Step.objects.filter(kind="operation", current=True, name="boot", attempts__gt=0):
        operation = Operation.objects.get(uid=step.owner_uid)
        user_data = vault.get("claim", operation.claim.uid, "user_data")
        fake.boot(user_data, operation.server.system_uuid)


def rounds(count: int = 40, agent: Agent | None = None) -> None:
    """Let the world go on: every current step is looked at once a round, until nothing moves."""
    agent = agent or Agent()
    seen: list[object] = []
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
        boot_machines()
        seen.append(list(Step.objects.values_list("pk", "state", "sentence", "ref").order_by("pk")))
        if seen[-6:] == seen[-1:] * 6:
            return
