"""The tries of a step, read from its lines: each error that was recorded ends one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from gpucloud import ui
from gpucloud.models import Step


@dataclass(frozen=True)
class Try:
    started: datetime
    ended: datetime | None
    state: str
    words: str = ""

    def shown(self) -> ui.Attempt:
        tone: dict[str, ui.Tone] = {"running": "busy", "done": "good", "tried": "bad"}
        took = self.ended - self.started if self.ended else None
        return ui.Attempt(self.started, self.words, tone.get(self.state, "bad"), took)


def tries(step: Step) -> list[Try]:
    """Every try in order; one that goes on has no end. Nothing before the first look."""
    began = _began(step)
    if began is None:
        return []
    found: list[Try] = []
    errors = [line for line in step.lines if line.get("code")]
    for line in errors:
        at = _at(line) or began
        found.append(Try(began, at, "tried", _words(line)))
        began = at
    if step.state == "failed":
        if not found:
            return [Try(began, step.ended, "failed", step.sentence)]
        last = found.pop()
        return [*found, Try(last.started, step.ended or last.ended, "failed", last.words)]
    if step.state == "done":
        return [*found, Try(max(began, step.started or began), step.ended, "done", "Done")]
    if step.state == "skipped":
        return [*found, Try(began, step.ended, "skipped", "Ended by a release")]
    return [*found, Try(began, None, "running", "Running")]


def _began(step: Step) -> datetime | None:
    """The first look; a person's retry begins the step anew but keeps the lines of before."""
    first = _at(step.lines[0]) if step.lines else None
    moments = [moment for moment in (first, step.started) if moment]
    return min(moments) if moments else None


def _at(line: dict[str, Any]) -> datetime | None:
    return parse_datetime(str(line.get("at", "")))


def _words(line: dict[str, Any]) -> str:
    times = f", {line['times']} times" if line.get("times", 1) > 1 else ""
    return f"{line.get('code', '')}{times}"
