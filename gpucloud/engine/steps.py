"""Laying out steps: begin a run of a plan, retry a failed step, cancel what is left."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now

from gpucloud.engine.nudge import nudge
from gpucloud.models import Step


def steps_of(kind: str, uid: UUID) -> QuerySet[Step]:
    return Step.objects.filter(kind=kind, owner_uid=uid)


def begin(kind: str, uid: UUID, names: Sequence[str]) -> int:
    """Write the steps of a new run, the first one due now, and return the run's number.

    Inside a transaction.
    """
    cancel(kind, uid)
    last = steps_of(kind, uid).aggregate(last=Max("run"))["last"] or 0
    Step.objects.bulk_create(
        Step(
            kind=kind,
            owner_uid=uid,
            run=last + 1,
            index=index,
            name=name,
            current=index == 0,
        )
        for index, name in enumerate(names)
    )
    steps_of(kind, uid).filter(current=True).update(next_try_at=Now())
    nudge(kind, uid)
    return last + 1


def cancel(kind: str, uid: UUID) -> None:
    """Take the current step and those after it out of the plan:

    they are skipped, nothing is due any more.
    """
    steps_of(kind, uid).filter(state__in=Step.LIVE).update(
        state=Step.State.SKIPPED, current=False, next_try_at=None, ended=Now(), rev=F("rev") + 1
    )


def retry(kind: str, uid: UUID) -> bool:
    """Make the failed step due again with a new deadline; False when no step has failed."""
    step = steps_of(kind, uid).filter(state=Step.State.FAILED).order_by("-run", "-index").first()
    if step is None:
        return False
    done = Step.objects.filter(pk=step.pk, state=Step.State.FAILED).update(
        state=Step.State.TODO,
        current=True,
        code="",
        hint="",
        failures=0,
        started=None,
        since=None,
        ended=None,
        deadline=None,
        alarmed=False,
        ref="",
        percent=None,
        next_try_at=Now(),
        rev=F("rev") + 1,
    )
    if done:
        nudge(kind, uid)
    return bool(done)


def look_now(kind: str, uid: UUID) -> None:
    """Something changed outside: look at the current step at once rather than at its next time."""
    if steps_of(kind, uid).filter(current=True).update(next_try_at=Now(), nudged=None):
        nudge(kind, uid)
