"""Wipe and Check: our agent erases every drive, and the evidence is judged before anybody else may
have the server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from gpucloud import history
from gpucloud.drivers import DriverError, Progress
from gpucloud.engine.clock import scaled
from gpucloud.models import Step
from inventory.lifecycle import SERVER
from inventory.models import Server, WipeRecord
from network.models import Segment
from network.services import moves
from network.services.segments import role_segment
from provisioning.agents import close_run, media_url, open_run
from provisioning.models import AgentRun, Operation
from provisioning.services.providers import driver_of
from provisioning.spec import node_spec
from provisioning.steps.install import read_power


def wipe(operation: Operation, step: Step) -> Progress:
    """Boot our agent, wait for its report, take the power off.

    What the report is worth is Check's to say.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    if server.state == Server.State.HELD:
        SERVER.move(server, "clean", "engine", f"{server} is being wiped after {claim}.")
    run = _run(operation, step)
    provider = driver_of(claim.node_type.provider)
    if run.result_at is None:
        _home(operation)
        progress = provider.wipe(node_spec(operation, step, media_url=media_url(run)))
        run.refresh_from_db()
        if run.hello_at is None:
            return _await_call(operation, step, run, progress)
        if _died(operation, run):
            return _boot_again(
                operation, run, progress, f"{operation.server} went off before its agent reported"
            )
        said = run.message or "the agent has called and reads its plan"
        return Progress(
            False,
            f"The agent works on {server}: {said}.",
            progress.ref,
            2,
            run.percent,
            evidence=progress.evidence,
        )
    stopped = provider.remove(node_spec(operation, step, power=read_power(operation)), "stopped")
    if not stopped.done:
        return Progress(
            False, f"The agent has reported; {stopped.detail}", stopped.ref, stopped.wait
        )
    close_run(run)
    drives = run.report.get("drives", [])
    return Progress(
        True,
        f"The agent reported on {len(drives)} drives; the server is off again.",
        evidence={
            "drives": drives,
            "agent": {"hello": run.hello, "ok": run.ok, "error": run.error},
        },
    )


def _await_call(operation: Operation, step: Step, run: AgentRun, progress: Progress) -> Progress:
    """The agent boots and has not called: a BMC that could not load it boots something else."""
    assert operation.claim is not None
    boots, now = step.evidence.get("boots", {}), timezone.now()
    if progress.done and boots.get("run") != str(run.uid):
        boots = {"run": str(run.uid), "since": now.isoformat()}
    longest = scaled(operation.claim.node_type.post_seconds) + SILENT_AFTER
    if progress.done and now - datetime.fromisoformat(boots["since"]) > longest:
        return _boot_again(operation, run, progress, f"No agent has called from {operation.server}")
    evidence = {**progress.evidence, "boots": boots}
    return Progress(False, progress.detail, progress.ref, progress.wait, evidence=evidence)


def _boot_again(operation: Operation, run: AgentRun, progress: Progress, why: str) -> Progress:
    close_run(run)
    open_run(operation, "wipe")
    return Progress(False, f"{why}; it is booted again with a new key.", progress.ref, 0.1)


def _died(operation: Operation, run: AgentRun) -> bool:
    """Whether the power went under a working agent: it reports before it takes the power off."""
    try:
        seen = read_power(operation)
    except DriverError:
        return False  # what cannot be read is no sign of death: the agent's silence is
    # After the power, so that a report which came in between is not missed.
    run.refresh_from_db()
    heard = run.last_at or run.hello_at
    if run.result_at is not None or heard is None:
        return False
    return seen.power == "off" and seen.at is not None and seen.at > heard


# An agent that has said nothing for so long is dead: its key is spent, it needs a new boot.
SILENT_AFTER = scaled(300)


def _run(operation: Operation, step: Step) -> AgentRun:
    """The run whose report is this step's; a new one where the old one is spent or outdated."""
    run = operation.agent_runs.filter(verb="wipe").first()
    began = step.started or timezone.now()
    if run is not None and run.result_at is not None and run.result_at >= began:
        return run
    if run is None or run.closed or run.result_at is not None:
        return open_run(operation, "wipe", renew=True)[0]
    if run.hello_at is not None:
        last = run.last_at or run.hello_at
        if last < began or timezone.now() - last > SILENT_AFTER:
            return open_run(operation, "wipe", renew=True)[0]
    return run


def _home(operation: Operation) -> dict[str, Any]:
    """A ramdisk runs nowhere but in the provisioning segment."""
    assert operation.server is not None and operation.claim is not None
    ports = moves.plan_interfaces(operation.server, operation.claim.node_type.nic_plan)
    return moves.read_back(ports, role_segment(ports[0].link.fabric, Segment.Role.PROVISIONING))


def judge(server: Server, report: dict[str, Any]) -> tuple[str, str]:
    """(reason code, sentence) of what is wrong with a wipe report, or two blanks when it proves a
    blank server.
    """
    drives = {str(d.get("serial", "")): d for d in report.get("drives", [])}
    inventory = set(server.drives.values_list("serial", flat=True))
    if not inventory:
        return (
            "DRIVE_SET_MISMATCH",
            f"{server} has no drives in the inventory, so nothing can be proved.",
        )
    if missing := sorted(inventory - set(drives)):
        return (
            "DRIVE_SET_MISMATCH",
            f"The agent did not see {', '.join(missing)}, which the inventory has.",
        )
    if extra := sorted(set(drives) - inventory):
        return (
            "DRIVE_SET_MISMATCH",
            f"The agent saw {', '.join(extra)}, which the inventory does not have.",
        )
    for serial, drive in sorted(drives.items()):
        if not drive.get("ok"):
            tried = ", ".join(m.get("method", "?") for m in drive.get("methods_tried", []))
            return "WIPE_FAILED", f"Drive {serial} could not be wiped (tried {tried or 'nothing'})."
    for serial, drive in sorted(drives.items()):
        seen = drive.get("readback", {})
        if not seen.get("samples") or seen.get("nonblank"):
            return "READBACK_NOT_BLANK", (
                f"Drive {serial} still holds data: {seen.get('nonblank', '?')} of "
                f"{seen.get('samples', 0)} samples "
                "read back are not blank."
            )
    return "", ""


def check(operation: Operation, step: Step) -> Progress:
    """Judge the evidence, read power and ports once more, give the engine's object free, open the
    clean gate.
    """
    claim, server = operation.claim, operation.server
    assert claim is not None and server is not None
    run = operation.agent_runs.filter(verb="wipe", result_at__isnull=False).first()
    if run is None:
        raise DriverError(
            f"There is no report of a wipe of {server}.", code="WIPE_FAILED", permanent=True
        )
    code, sentence = judge(server, run.report)
    if not code and not run.ok:
        code, sentence = (
            "WIPE_FAILED",
            f"The agent reports a failure: {run.error or 'without words'}.",
        )
    record = _record(operation, run, code)
    if code:
        raise DriverError(sentence, code=code, permanent=True)
    seen = read_power(operation)
    if seen.power != "off":
        raise DriverError(f"{server} reads {seen.power} after its wipe.", code="NOT_OFF", wait=2)
    evidence = _home(operation)
    freed = driver_of(claim.node_type.provider).remove(
        node_spec(operation, step, power=seen), "released"
    )
    if not freed.done:
        return Progress(False, freed.detail, freed.ref, freed.wait)
    return Progress(
        True,
        f"{len(record.drives)} drives blank, as many as the inventory has; off, in the "
        "provisioning segment.",
        evidence={**evidence, "wipe": str(record.uid), "signed": False},
    )


def _record(operation: Operation, run: AgentRun, code: str) -> WipeRecord:
    """Write the wipe's record once per report; it is never changed."""
    server, claim = operation.server, operation.claim
    assert server is not None and claim is not None
    mark = str(run.uid)
    found = WipeRecord.objects.filter(
        server=server, tenancy=server.tenancy, report__run=mark
    ).first()
    if found:
        return found
    drives = run.report.get("drives", [])
    times = [(d.get("started"), d.get("ended")) for d in drives]
    with transaction.atomic():
        record = WipeRecord.objects.create(
            server=server,
            tenancy=server.tenancy,
            kind=WipeRecord.Kind.VERIFIED,
            passed=not code,
            code=code,
            drives=drives,
            drive_serials=sorted(str(d.get("serial", "")) for d in drives),
            report={**run.report, "run": mark},
            actor="agent",
            claim_uid=claim.uid,
            started=_time(min((s for s, _ in times if s), default=None)),
            ended=_time(max((e for _, e in times if e), default=None)),
        )
        words = "passed" if record.passed else f"did not pass ({code})"
        history.record(
            server,
            "wipe",
            "agent",
            f"Wipe of {server} for tenancy {server.tenancy} {words}.",
            data={"wipe": str(record.uid)},
        )
    return record


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def open_gate(operation: Operation) -> None:
    """Inside the transaction that ends Check: the server is clean for its tenancy and on offer."""
    server = operation.server
    assert server is not None
    server.refresh_from_db()
    SERVER.move(
        server,
        "offer",
        "engine",
        f"{server} is wiped, checked and on offer again.",
        clean_tenancy=F("tenancy"),
        code="",
        problem="",
    )
