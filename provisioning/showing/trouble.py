"""What is wrong with a claim: reason code, cause, effect and the next safe action."""

from __future__ import annotations

from typing import Final

from django.utils import timezone

from gpucloud import durations, policy, ui
from gpucloud.models import Step, User
from gpucloud.reasons import reason
from provisioning.models import NodeClaim
from provisioning.showing.claims import Summary, step_name

# Where a person mends what the reason names.
AT_SERVER: Final = ("quarantine", "cable", "power_off", "edit", "pick_another")


def trouble(claim: NodeClaim, summary: Summary, staff: bool) -> ui.Notice | None:
    """The notice above the strip, or None while all is well."""
    step = summary.step
    if summary.stopped or claim.state == NodeClaim.State.FAILED:
        return _stopped(claim, summary, staff)
    if summary.waits and step is not None and step.code == "WAITING_FOR_CAPACITY":
        return _waits(claim, summary, step)
    if step is not None and step.code and step.failures:
        return _tried_again(claim, step, staff)
    return None


def _stopped(claim: NodeClaim, summary: Summary, staff: bool) -> ui.Notice:
    step, operation = summary.step, summary.operation
    code = claim.code or (operation.code if operation else "") or (step.code if step else "")
    known = reason(code)
    what = step_name(step) if step else "The claim"
    where = f" on {claim.server}" if claim.server and staff else ""
    told = claim.problem or (step.sentence if step else "")
    facts = [("Cause", told if staff and told else known.sentence)]
    if staff and told:
        facts.append(("Means", known.sentence))
    facts.append(("Effect", _effect(claim, summary, staff)))
    hint = step.hint if step and step.hint and staff else ""
    # What is mended under the tenant's objects is not the tenant's to do.
    theirs = not staff and known.action in AT_SERVER
    facts.append(
        ("Next", f"{hint or known.next}{f' This is for a {known.who}.' if theirs else ''}")
    )
    return ui.Notice(f"{what} stopped{where}", "", "bad", "warn", code, facts)


def _effect(claim: NodeClaim, summary: Summary, staff: bool) -> str:
    server = claim.server
    parts = []
    if server is None:
        parts.append("No server is held.")
    elif summary.operation and summary.operation.kind == "release":
        parts.append(f"Nobody gets {server} before it is wiped and checked.")
    else:
        parts.append(f"{claim} still holds {server}; nothing is wiped and nobody else gets it.")
    if server is not None and staff:
        at = f", read {timezone.localtime(server.power_at):%H:%M:%S}" if server.power_at else ""
        parts.append(f"Its power is {server.power_now}{at}.")
    if claim.cluster is not None and claim.state == "failed":
        ready = claim.cluster.claims.filter(state="ready").count()
        nodes = "ready node is" if ready == 1 else f"{ready} ready nodes are"
        others = f"Cluster {claim.cluster}'s {nodes} not affected."
        parts.append(others if ready else f"Cluster {claim.cluster} has no ready node yet.")
    return " ".join(parts)


def _waits(claim: NodeClaim, summary: Summary, step: Step) -> ui.Notice:
    known = reason("WAITING_FOR_CAPACITY")
    place, of = summary.place
    since = durations.words(timezone.now() - (step.started or claim.created))
    long = ", longer than usual" if step.alarmed else ""
    facts = [
        ("Cause", f"No {claim.node_type} is free, as read in the last look at the fleet."),
        ("Effect", f"The claim keeps its place, {place} of {of}, and takes nothing meanwhile."),
        ("Next", known.next),
    ]
    title = f"Waiting for a free {claim.node_type} for {since}{long}"
    tone: ui.Tone = "warn" if step.alarmed else "neutral"
    return ui.Notice(title, "", tone, "clock", "WAITING_FOR_CAPACITY", facts)


def _tried_again(claim: NodeClaim, step: Step, staff: bool) -> ui.Notice:
    known = reason(step.code)
    again = step.next_try_at
    at = f" at {timezone.localtime(again):%H:%M:%S}" if again and again > timezone.now() else " now"
    times = "once" if step.failures == 1 else f"{step.failures} times"
    facts = [
        ("Cause", step.sentence if staff else known.sentence),
        ("Effect", f"Nothing is given up; {step_name(step)} has failed {times}."),
        ("Next", f"It is tried again{at} by itself. {step.hint if staff else ''}".strip()),
    ]
    return ui.Notice(f"{step_name(step)} is tried again", "", "warn", "refresh", step.code, facts)


def actions(user: User, claim: NodeClaim, summary: Summary) -> list[ui.Link]:
    """What this person may do with the claim now; destructive last."""
    found: list[ui.Link] = []
    at = claim.get_absolute_url()
    stopped = summary.stopped and claim.state in ("failed", "releasing")
    code = claim.code or (summary.operation.code if summary.operation else "")
    action = reason(code).action if code else "none"
    if stopped and policy.sees_platform(user) and action in AT_SERVER:
        image = code.startswith("IMAGE_") and claim.image is not None
        target = claim.image if image else claim.server
        if target is not None:
            found.append(ui.Link(f"Open {target}", target.get_absolute_url()))
    if stopped and policy.may(user, "retry", claim):
        kind = "" if action == "release" else "primary"
        found.append(ui.Link("Retry the step", f"{at}retry/", kind, "refresh", "post"))  # type: ignore[arg-type]
    if claim.state not in ("releasing", "gone") and policy.may(user, "release", claim):
        found.append(ui.Link("Release claim…", f"{at}release/", "danger"))
    return found
