"""Laying out steps: begin a run of a plan, retry a failed step, cancel what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
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


AGAIN: dict[str, Any] = {
    "state": Step.State.TODO,
    "code": "",
    "hint": "",
    "failures": 0,
    "started": None,
    "since": None,
    "ended": None,
    "deadline": None,
    "alarmed": False,
    "ref": "",
    "percent": None,
}


def retry(kind: str, uid: UUID, since: str = "") -> bool:
    """Make the failed step due again with a new deadline; False when no step has failed.

    `since` names an earlier step of the same run to go back to, when its result is what failed.
    """
    failed = steps_of(kind, uid).filter(state=Step.State.FAILED).order_by("-run", "-index").first()
    if failed is None:
        return False
    run = steps_of(kind, uid).filter(run=failed.run)
    first = run.filter(name=since, index__lt=failed.index).first() or failed
    again = run.filter(index__gte=first.index, index__lte=failed.index)
    if not again.filter(pk=failed.pk, state=Step.State.FAILED).exists():
        return False
    again.update(**AGAIN, rev=F("rev") + 1)
    run.filter(pk=first.pk).update(current=True, next_try_at=Now())
    nudge(kind, uid)
    return True


def look_now(kind: str, uid: UUID) -> None:
    """Something changed outside: look at the current step at once rather than at its next time."""
    if steps_of(kind, uid).filter(current=True).update(next_try_at=Now(), nudged=None):
        nudge(kind, uid)
