"""Step rows as the timeline draws them: state, sentence, tries, durations, log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from gpucloud import ui
from gpucloud.models import Step

# A log of one line only repeats the sentence above it.
LOG_FROM: Final = 2


def shown(steps: Iterable[Step]) -> list[ui.TimelineStep]:
    """The steps of one run, in order."""
    return [_shown(step) for step in steps]


def _shown(step: Step) -> ui.TimelineStep:
    log = _log(step.lines)
    return ui.TimelineStep(
        name=step.name.replace("-", " ").capitalize(),
        state=ui.STEP_STATES[step.state],
        sentence=_sentence(step),
        tries=step.failures + 1 if step.failures else 0,
        took=_took(step),
        log=log,
        log_title="what was seen",
        percent=step.percent if step.state in ("running", "waiting") else None,
        percent_label=step.sentence if step.percent is not None else "",
        reason=step.code if step.state in ("running", "waiting", "failed") else "",
    )


def _sentence(step: Step) -> str:
    if step.state == Step.State.FAILED and step.hint:
        return f"{step.sentence} {step.hint}"
    return step.sentence


def _took(step: Step) -> timedelta | None:
    if step.took is not None:
        return step.took
    running = step.started and step.state in ("running", "waiting")
    return timezone.now() - step.started if running and step.started else None


def _log(lines: list[dict[str, Any]]) -> str:
    if len(lines) < LOG_FROM:
        return ""
    return "\n".join(_line(line) for line in lines)


def _line(line: dict[str, Any]) -> str:
    at = _clock(parse_datetime(str(line.get("at", ""))))
    times = f" ({line['times']} times)" if line.get("times", 1) > 1 else ""
    code = f" [{line['code']}]" if line.get("code") else ""
    return f"{at} {line.get('text', '')}{code}{times}"


def _clock(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%H:%M:%S}" if moment else "--:--:--"
