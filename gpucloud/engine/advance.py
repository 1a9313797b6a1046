"""advance(): take the leases, run the current step once, record what was seen, decide when to look
again.
"""

from __future__ import annotations

import logging
import random
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, DateTimeField, F, When
from django.db.models.functions import Now

from gpucloud.drivers import DriverError, Progress, call_budget
from gpucloud.engine import leases
from gpucloud.engine.clock import db_now, scaled
from gpucloud.engine.crashpoint import crashpoint
from gpucloud.engine.deadlines import deadline_of
from gpucloud.engine.plan import Plan, plan_of
from gpucloud.models import Step

log = logging.getLogger(__name__)
# The row owns retries: waits after failures that may pass, in seconds.
BACKOFF = (1, 2, 4, 8, 15, 30, 60)
# Steps run in one go without waiting for the next nudge.
STEPS_IN_A_ROW = 12
LINES_KEPT = 60


class Moved(Exception):
    """The step is not as it was read: another worker or a person got there first."""


def advance(kind: str, uid: UUID) -> int:
    """Drive one owner as far as it goes without waiting; return how many steps were looked at."""
    plan = plan_of(kind)
    looked = 0
    while looked < STEPS_IN_A_ROW and _advance_once(plan, kind, uid):
        looked += 1
    return looked


def _advance_once(plan: Plan, kind: str, uid: UUID) -> bool:
    """Look at the current step once; True when a next step is due at once."""
    step = Step.objects.filter(
        kind=kind, owner_uid=uid, current=True, next_try_at__lte=Now()
    ).first()
    owner = plan.load(uid) if step else None
    if step is None or owner is None:
        return False
    with leases.holding(plan.leases(owner, step)) as held:
        if held is None:
            return False
        # Read again under the lease: what was read before may be another worker's past.
        step = Step.objects.filter(pk=step.pk, current=True, next_try_at__lte=Now()).first()
        owner = plan.load(uid) if step else None
        if step is None or owner is None:
            return False
        now = db_now()
        try:
            if _overdue(step, now):
                return _past_deadline(plan, owner, step, held, now)
            _start(plan, owner, step, held, now)
            progress, error = _run(plan, owner, step)
            if error is not None:
                return _record_error(plan, owner, step, held, error)
            assert progress is not None
            return _record(plan, owner, step, held, progress)
        except (leases.LeaseLost, Moved) as lost:
            log.info("%s %s: left to its new holder (%s)", kind, uid, lost)
            return False


def _overdue(step: Step, now: datetime) -> bool:
    return step.deadline is not None and step.deadline < now and not step.alarmed


def _set(step: Step, held: leases.Held, **fields: Any) -> None:
    """One conditional UPDATE of the step as read, under leases that are still ours."""
    held.confirm()
    fields.setdefault("rev", F("rev") + 1)
    if not Step.objects.filter(pk=step.pk, rev=step.rev, current=True).update(**fields):
        raise Moved(str(step))
    step.refresh_from_db()


def _start(plan: Plan, owner: Any, step: Step, held: leases.Held, now: datetime) -> None:
    with transaction.atomic():
        plan.lock(owner)
        first = step.state == Step.State.TODO
        # look_now() clears `nudged`: that is how a wake-up during the run is not lost.
        fields: dict[str, Any] = {
            "state": Step.State.RUNNING,
            "attempts": F("attempts") + 1,
            "nudged": Now(),
        }
        if first:
            fields |= {
                "started": now,
                "since": now,
                "deadline": now + scaled(deadline_of(step.kind, step.name).seconds),
            }
        _set(step, held, **fields)
        if first:
            plan.on_started(owner, step)


def _run(plan: Plan, owner: Any, step: Step) -> tuple[Progress | None, DriverError | None]:
    crashpoint(f"before {step.kind} {step.name}")
    try:
        with call_budget(leases.BUDGET_SECONDS):
            progress = plan.run(owner, step)
    except DriverError as error:
        return None, error
    except Exception as error:
        log.exception("%s %s: step %s met a fault of our own", step.kind, step.owner_uid, step.name)
        return None, DriverError(
            f"The step met a fault of the console ({type(error).__name__}); it is in the log.",
            code="BUG",
        )
    crashpoint(f"after {step.kind} {step.name}")
    return progress, None


def _line(step: Step, text: str, code: str = "") -> list[dict[str, Any]]:
    """The step's lines with this one added: kept once while nothing changes, newest last."""
    lines: list[dict[str, Any]] = list(step.lines)
    if lines and lines[-1]["text"] == text:
        lines[-1] = {**lines[-1], "times": lines[-1].get("times", 1) + 1}
        return lines
    at = datetime.now().astimezone().isoformat(timespec="milliseconds")
    return [*lines, {"at": at, "text": text, "code": code, "attempt": step.attempts}][-LINES_KEPT:]


def _record(plan: Plan, owner: Any, step: Step, held: leases.Held, progress: Progress) -> bool:
    evidence = {**step.evidence, **progress.evidence}
    common: dict[str, Any] = {
        "sentence": progress.detail,
        "ref": progress.ref or step.ref,
        "percent": progress.percent,
        "evidence": evidence,
        "lines": _line(step, progress.detail),
        "failures": 0,
        "nudged": None,
    }
    code = str(progress.evidence.get("code", ""))
    with transaction.atomic():
        plan.lock(owner)
        if not progress.done:
            wait = timedelta(seconds=max(0.05, progress.wait))
            woken = _woken(step)
            again = _after(wait)
            _set(step, held, state=Step.State.WAITING, code=code, next_try_at=again, **common)
            plan.on_looked(owner, step)
            return woken
        common["percent"] = None
        _set(
            step,
            held,
            state=Step.State.DONE,
            code="",
            hint="",
            ended=Now(),
            next_try_at=None,
            current=False,
            **common,
        )
        plan.on_done(owner, step, progress)
        more = Step.objects.filter(
            kind=step.kind,
            owner_uid=step.owner_uid,
            run=step.run,
            index=step.index + 1,
            state=Step.State.TODO,
        ).update(current=True, next_try_at=Now(), rev=F("rev") + 1)
        if not more:
            plan.on_finished(owner)
    crashpoint(f"recorded {step.kind} {step.name}")
    return bool(more)


def _woken(step: Step) -> bool:
    """Whether somebody asked for a look while the step was being looked at."""
    return Step.objects.filter(pk=step.pk, nudged=None).exists()


def _after(wait: timedelta) -> Case:
    """When to look again: at once if what was seen may be out of date already."""
    return Case(When(nudged=None, then=Now()), default=Now() + wait, output_field=DateTimeField())


def _record_error(
    plan: Plan, owner: Any, step: Step, held: leases.Held, error: DriverError
) -> bool:
    if error.permanent:
        return _fail(plan, owner, step, held, error)
    wait = error.wait if error.wait is not None else BACKOFF[min(step.failures, len(BACKOFF) - 1)]
    jitter = 1 + random.random() / 5
    with transaction.atomic():
        plan.lock(owner)
        _set(
            step,
            held,
            state=Step.State.WAITING,
            sentence=error.message,
            code=error.code,
            hint=error.hint,
            failures=F("failures") + 1,
            next_try_at=_after(timedelta(seconds=scaled(wait).total_seconds() * jitter)),
            lines=_line(step, error.message, error.code),
            nudged=None,
        )
        plan.on_looked(owner, step)
    return False


def _fail(plan: Plan, owner: Any, step: Step, held: leases.Held, error: DriverError) -> bool:
    with transaction.atomic():
        plan.lock(owner)
        _set(
            step,
            held,
            state=Step.State.FAILED,
            current=False,
            sentence=error.message,
            code=error.code,
            hint=error.hint,
            failures=F("failures") + 1,
            ended=Now(),
            next_try_at=None,
            nudged=None,
            lines=_line(step, error.message, error.code),
        )
        plan.on_failed(owner, step, error)
    return False


def _past_deadline(plan: Plan, owner: Any, step: Step, held: leases.Held, now: datetime) -> bool:
    rule = deadline_of(step.kind, step.name)
    if rule.then == "alarm":
        with transaction.atomic():
            plan.lock(owner)
            _set(step, held, alarmed=True)
            plan.on_alarm(owner, step)
        return True
    last = f" Last seen: {step.sentence}" if step.sentence else ""
    code = step.code or rule.code
    took = int((now - (step.started or now)).total_seconds())
    message = f"{step.name.capitalize()} did not end within its deadline ({took} s so far).{last}"
    _halt(plan, owner, step)
    return _fail(plan, owner, step, held, DriverError(message, code=code, permanent=True))


def _halt(plan: Plan, owner: Any, step: Step) -> None:
    """Let the plan call off what the outside may still be doing; when it cannot, the step fails all
    the same.
    """
    try:
        with call_budget(leases.BUDGET_SECONDS):
            plan.halt(owner, step)
    except DriverError as error:
        log.warning("%s %s: %s was not called off: %s", step.kind, step.owner_uid, step.name, error)
    except Exception:
        log.exception("%s %s: %s was not called off", step.kind, step.owner_uid, step.name)
