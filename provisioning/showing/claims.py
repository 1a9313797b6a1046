"""A claim in one line: its words, its place in the queue, its steps as pips."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Prefetch, QuerySet

from gpucloud import tones, ui
from gpucloud.models import Step
from gpucloud.policy import visible
from provisioning.models import NodeClaim, Operation

DOING: Final = {
    "select": "Selecting",
    "configure": "Configuring",
    "setup": "Setting up",
    "install": "Installing",
    "stop": "Stopping",
    "move": "Moving",
    "boot": "Booting",
    "join": "Joining",
    "verify": "Verifying",
    "drain": "Draining",
    "return": "Returning",
    "deprovision": "Deprovisioning",
    "wipe": "Wiping",
    "check": "Checking",
}
Words = tuple[str, str]


@dataclass(frozen=True)
class Pip:
    name: str
    state: str


@dataclass(frozen=True)
class Summary:
    """One claim in a line: its newest run, the steps of that, its place in the queue."""

    claim: NodeClaim
    operation: Operation | None
    steps: tuple[Step, ...]
    place: tuple[int, int] = (0, 0)

    @property
    def step(self) -> Step | None:
        """The step that runs or has failed."""
        return next((s for s in self.steps if s.current or s.state == "failed"), None)

    @property
    def stopped(self) -> bool:
        return self.operation is not None and self.operation.state == "failed"

    @property
    def waits(self) -> bool:
        """For a server, in the queue of its node type."""
        return self.claim.state == "pending" and self.place[0] > 0

    @property
    def words(self) -> Words:
        """State and tone as rows, heads and titles say them."""
        claim, step = self.claim, self.step
        if self.stopped or claim.state == "failed":
            return (f"{step_name(step)} failed" if step else "Failed"), "bad"
        if claim.state == "pending" and step is not None and step.code:
            place, of = self.place
            return (f"Waiting, place {place} of {of}" if of else "Waiting"), "warn"
        if claim.state in ("provisioning", "releasing") and step is not None:
            percent = f", {step.percent} %" if step.percent is not None else ""
            return f"{DOING.get(step.name, step_name(step))}{percent}", "busy"
        return str(claim.get_state_display()), tones.tone(NodeClaim, claim.state)

    @property
    def pips(self) -> list[Pip]:
        return [Pip(step_name(s), ui.STEP_STATES[s.state]) for s in self.steps]

    @property
    def where(self) -> str:
        """Where it stands, for a row: "Step 4 of 9, Install"."""
        step = self.step
        if step is None:
            return ""
        what = "Release step" if self.operation and self.operation.kind == "release" else "Step"
        return f"{what} {step.index + 1} of {len(self.steps)}, {step_name(step)}"


def step_name(step: Step) -> str:
    return step.name.replace("-", " ").capitalize()


def claims(user: Any) -> QuerySet[NodeClaim]:
    """The claims that a person may see, with what one row needs, in a fixed number of queries."""
    runs = Operation.objects.filter(kind__in=("claim", "release")).order_by("-id")
    return (
        visible(user, NodeClaim.objects.all())
        .select_related(
            "tenant", "cluster__tenant", "cluster__segment", "node_type__provider", "image", "pool"
        )
        .select_related("server__rack__site")
        .prefetch_related(Prefetch("operations", runs, to_attr="runs"))
    )


def summarise(rows: Iterable[NodeClaim]) -> list[NodeClaim]:
    """Give each claim of `claims` its `summary`; one query for the steps, one for the queues."""
    found = list(rows)
    newest: dict[Any, Operation | None] = {c.pk: next(iter(c.runs), None) for c in found}  # type: ignore[attr-defined]
    steps = defaultdict(list)
    uids = [operation.uid for operation in newest.values() if operation]
    for step in Step.objects.filter(kind="operation", owner_uid__in=uids).order_by("run", "index"):
        steps[step.owner_uid].append(step)
    places = _places(found)
    for claim in found:
        operation = newest[claim.pk]
        own = tuple(steps[operation.uid]) if operation else ()
        claim.summary = Summary(claim, operation, own, places.get(claim.pk, (0, 0)))  # type: ignore[attr-defined]
    return found


def _places(claims: list[NodeClaim]) -> dict[int, tuple[int, int]]:
    types = {c.node_type_id for c in claims if c.state == "pending" and c.server_id is None}
    if not types:
        return {}
    queues = defaultdict(list)
    waiting = NodeClaim.objects.filter(state="pending", server=None, node_type__in=types)
    for pk, node_type in waiting.order_by("pk").values_list("pk", "node_type"):
        queues[node_type].append(pk)
    return {
        pk: (index, len(queue)) for queue in queues.values() for index, pk in enumerate(queue, 1)
    }
