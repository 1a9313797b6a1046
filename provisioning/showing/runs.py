"""One run of a claim, there or back: its timeline and its strip, with measured and usual times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone

from gpucloud import durations, timeline, ui
from gpucloud.gantt import Gantt, Span
from gpucloud.models import Step
from provisioning.models import NodeClaim, Operation
from provisioning.showing import attempts, proofs, sentences
from provisioning.showing.claims import step_name
from provisioning.showing.usual import Usual, spread, starts, usual

TITLES = {"claim": "Provisioning", "release": "Release"}


@dataclass(frozen=True)
class Run:
    """An operation of the claim as its panel shows it."""

    operation: Operation
    title: str
    note: str
    history: str
    timeline: Sequence[ui.TimelineStep]


@dataclass(frozen=True)
class Plan:
    """The strip above the timeline, and the sentences of its head."""

    title: str
    notes: str
    gantt: Gantt | None


def run(
    claim: NodeClaim, operation: Operation, steps: Sequence[Step], staff: bool, vlans: proofs.Vlans
) -> tuple[Run, Plan]:
    known = usual(claim.node_type, operation.kind, operation)
    now = timezone.now()
    begun = min((s.started for s in steps if s.started), default=None)
    shown = _timeline(claim, steps, known, now, staff, vlans)
    note = _note(operation, steps, begun)
    count = max((one.count for one in known.values()), default=0)
    history = f"usual times of {count} such runs of {claim.node_type}" if count else ""
    found = Run(operation, TITLES[operation.kind], note, history, shown)
    return found, _plan(claim, operation, steps, known, now)


def _note(operation: Operation, steps: Sequence[Step], begun: datetime | None) -> str:
    since = f", started {timezone.localtime(begun):%H:%M:%S %Z}" if begun else ""
    at = next((s for s in steps if s.current or s.state == "failed"), None)
    if operation.state == "cancelled":
        return f"Ended before it was done{since}"
    if at is None:
        return f"All {len(steps)} steps done{since}"
    verb = "Stopped in step" if at.state == "failed" else "Step"
    return f"{verb} {at.index + 1} of {len(steps)}{since}"


def _timeline(
    claim: NodeClaim,
    steps: Sequence[Step],
    known: dict[str, Usual],
    now: datetime,
    staff: bool,
    vlans: proofs.Vlans,
) -> list[ui.TimelineStep]:
    facts = sentences.names(claim)
    plan = starts(steps, known, now)
    found = []
    for step, shown in zip(steps, timeline.shown(steps), strict=True):
        tries = attempts.tries(step)
        several = len(tries) > 1
        sentence = shown.sentence
        if not staff:
            sentence = sentences.for_tenant(step, facts)
        elif step.state == "todo":
            sentence = sentences.planned(step.name, facts)
        found.append(
            replace(
                shown,
                name=step_name(step),
                sentence=sentence,
                tries=len(tries),
                expected_at=plan.get(step.name),
                usual=known[step.name].words if step.name in known else "",
                log=shown.log if staff else "",
                percent_label=shown.percent_label if staff else "",
                attempts=[one.shown() for one in tries] if several and staff else (),
                proofs=proofs.of_step(step, vlans) if staff else (),
            )
        )
    return found


def _plan(
    claim: NodeClaim,
    operation: Operation,
    steps: Sequence[Step],
    known: dict[str, Usual],
    now: datetime,
) -> Plan:
    spans = [_span(step, known) for step in steps]
    ended = operation.ended if operation.state != "active" else None
    gantt = Gantt.of(spans, now, ended=ended)
    return Plan(*_heading(claim, operation, steps, known, now, gantt), gantt)


def _span(step: Step, known: dict[str, Usual]) -> Span:
    one = known.get(step.name)
    tries = [(t.started, t.ended, t.state) for t in attempts.tries(step)]
    return Span(step_name(step), tries, one.p50 if one else None, one.p90 if one else None)


def _slow(steps: Sequence[Step], known: dict[str, Usual], now: datetime) -> str:
    """The step that has run for longer than nine of ten before it did."""
    for step in steps:
        running = step.started and step.state in ("running", "waiting") and step.name in known
        if running and step.started and now - step.started > known[step.name].p90:
            return step_name(step)
    return ""


def _heading(
    claim: NodeClaim,
    operation: Operation,
    steps: Sequence[Step],
    known: dict[str, Usual],
    now: datetime,
    gantt: Gantt | None,
) -> tuple[str, str]:
    begun = min((s.started for s in steps if s.started), default=None)
    goal = "ready" if operation.kind == "claim" else "back in the pool"
    whole = sum((one.p50 for one in known.values()), timedelta())
    all_known = bool(known) and all(step.name in known for step in steps)
    usually = f"usually {goal} after {durations.words(whole)}" if all_known else ""
    what = TITLES[operation.kind].lower()
    none = f"No {what} of {claim.node_type} has finished yet, so nothing is usual yet"
    if begun is None:
        return "Not begun yet", usually.capitalize() or none
    if operation.state != "active":
        took = durations.words((operation.ended or now) - begun)
        verb = {"done": goal.capitalize(), "failed": "Stopped"}.get(operation.state, "Ended")
        return f"{verb} after {took}", usually.capitalize() or none
    if gantt is None or gantt.expected is None:
        return f"Running for {durations.words(now - begun)}", usually.capitalize() or none
    if slow := _slow(steps, known, now):
        return f"{slow} takes longer than usual", f"Running for {durations.words(now - begun)}"
    late = spread(steps, known, now)
    notes = [f"in {durations.words(gantt.expected - now)}"]
    if late is not None:
        notes.append(f"9 of 10 such runs are {goal} by {timezone.localtime(late):%H:%M:%S}")
    at = timezone.localtime(gantt.expected)
    return f"Expected {goal} at {at:%H:%M:%S}", " · ".join([*notes, usually])
