"""How long each step usually takes, measured from the last runs of the same node type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gpucloud import durations
from gpucloud.models import Step
from provisioning.models import NodeType, Operation

# As many runs as say what is usual now; older ones are another firmware's.
RUNS: Final = 60


@dataclass(frozen=True)
class Usual:
    """Half of such steps took `p50` or less, nine of ten `p90` or less, out of `count`."""

    p50: timedelta
    p90: timedelta
    count: int

    @property
    def words(self) -> str:
        if self.count == 1:
            return f"once {durations.words(self.p50)}"
        return f"p50 {durations.words(self.p50)}, p90 {durations.words(self.p90)}"


def usual(node_type: NodeType, kind: str, but: Operation | None = None) -> dict[str, Usual]:
    """Usual times by step name, from done steps of the type's last finished runs."""
    runs = Operation.objects.filter(kind=kind, state="done", claim__node_type=node_type)
    if but is not None:
        runs = runs.exclude(pk=but.pk)
    uids = list(runs.order_by("-id").values_list("uid", flat=True)[:RUNS])
    took = defaultdict(list)
    for step in Step.objects.filter(
        kind="operation", owner_uid__in=uids, state="done", started__isnull=False
    ):
        if step.took is not None:
            took[step.name].append(step.took)
    return {name: _of(sorted(times)) for name, times in took.items()}


def _of(times: Sequence[timedelta]) -> Usual:
    return Usual(_at(times, 0.5), _at(times, 0.9), len(times))


def _at(times: Sequence[timedelta], share: float) -> timedelta:
    """The value below which this share lies, between neighbours where it falls between."""
    place = share * (len(times) - 1)
    low = int(place)
    high = min(low + 1, len(times) - 1)
    return times[low] + (times[high] - times[low]) * (place - low)


def starts(steps: Sequence[Step], known: dict[str, Usual], now: datetime) -> dict[str, datetime]:
    """When each step that is still planned will begin, as long as all before it are known."""
    at: datetime = now
    found = {}
    for step in steps:
        one = known.get(step.name)
        if step.state == "todo" and not step.current:
            found[step.name] = at
        if step.state in ("done", "skipped"):
            continue
        if one is None or step.state == "failed":
            break
        at = max((step.started or at) + one.p50, at)
    return found


def finish(steps: Sequence[Step], known: dict[str, Usual], now: datetime) -> datetime | None:
    """When the run is over if each step left takes its usual time; None when one is not known."""
    left = [s for s in steps if s.state in ("todo", "running", "waiting")]
    if not left or any(s.name not in known for s in left):
        return None
    at = now
    for step in left:
        at = max((step.started or at) + known[step.name].p50, at)
    return at


def spread(steps: Sequence[Step], known: dict[str, Usual], now: datetime) -> datetime | None:
    """By when nine of ten such runs are over: the rest at p50, the slowest surprise at p90."""
    at = finish(steps, known, now)
    if at is None:
        return None
    left = [s for s in steps if s.state in ("todo", "running", "waiting")]
    return at + max(known[s.name].p90 - known[s.name].p50 for s in left)
