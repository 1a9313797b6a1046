"""The bar strip of a claim: measured and usual time of each step on one axis, as percents for the
template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from django.utils import timezone

# Distances between labels that a reader can count in.
STEPS: Final = [
    timedelta(seconds=s)
    for s in (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
]
MOST_TICKS: Final = 8


@dataclass(frozen=True)
class Span:
    """One step: when it ran (each try), and how long it usually takes."""

    name: str
    tries: Sequence[tuple[datetime, datetime | None, str]] = ()
    p50: timedelta | None = None
    p90: timedelta | None = None


@dataclass(frozen=True)
class Bar:
    kind: str
    at: float
    length: float
    state: str = ""


@dataclass(frozen=True)
class Row:
    name: str
    bars: list[Bar]


@dataclass(frozen=True)
class Mark:
    words: str
    at: float
    kind: str = ""

    @property
    def end(self) -> bool:
        return self.at > 80

    @property
    def side(self) -> str:
        """The axis's own ends stand inside of it; everything between is centred on its line."""
        if self.at in (0, 100):
            return "end" if self.at else "start"
        return ""


@dataclass(frozen=True)
class Gantt:
    ticks: int
    hours: list[Mark]
    moments: list[Mark]
    rows: list[Row]
    sentence: str
    expected: datetime | None

    @classmethod
    def of(
        cls, spans: Sequence[Span], now: datetime, *, ended: datetime | None = None
    ) -> Self | None:
        """The strip as of `now`; None before anything ran. `ended` is when all was over, well or
        not.
        """
        runs = [run for span in spans for run in span.tries]
        if not runs:
            return None
        plan, expected = _plan(spans, now) if ended is None else ([], None)
        last: datetime = max(
            [ended or now, *(end for _, _, end in plan), *(end for _, end, _ in runs if end)]
        )
        axis = _Axis.around(min(start for start, _, _ in runs), last)
        rows = [Row(span.name, _bars(axis, span, plan, ended or now)) for span in spans]
        moments = _moments(axis, now, ended, expected)
        hours = [hour for hour in axis.labels() if not any(_covers(m, hour) for m in moments)]
        return cls(axis.ticks, hours, moments, rows, _sentence(axis, spans), expected)


@dataclass(frozen=True)
class _Axis:
    start: datetime
    tick: timedelta
    ticks: int

    @classmethod
    def around(cls, start: datetime, end: datetime) -> Self:
        length = max(end - start, timedelta(seconds=5))
        tick = next((step for step in STEPS if length / step < MOST_TICKS), STEPS[-1])
        local = timezone.localtime(start)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = midnight + tick * ((local - midnight) // tick)
        return cls(begin, tick, max(1, -((begin - end) // tick)))

    def at(self, moment: datetime) -> float:
        return round(100 * ((moment - self.start) / (self.tick * self.ticks)), 2)

    def bar(self, kind: str, start: datetime, end: datetime, state: str = "") -> Bar:
        return Bar(kind, self.at(start), round(max(self.at(end) - self.at(start), 0), 2), state)

    def labels(self) -> list[Mark]:
        form = "%H:%M:%S" if self.tick < timedelta(minutes=1) else "%H:%M"
        marks = [self.start + self.tick * n for n in range(self.ticks + 1)]
        return [Mark(timezone.localtime(m).strftime(form), self.at(m)) for m in marks]


def _plan(
    spans: Sequence[Span], now: datetime
) -> tuple[list[tuple[str, datetime, datetime]], datetime | None]:
    """Where unfinished steps will lie if each takes its usual time, one after the other."""
    plan: list[tuple[str, datetime, datetime]] = []
    at, known = now, True
    for span in spans:
        if span.tries and span.tries[-1][1] is not None:
            continue
        start = span.tries[-1][0] if span.tries else at
        if span.p50 is None:
            known = False
            continue
        at = max(start + span.p50, now)
        plan.append((span.name, start, at))
    return plan, (at if known and plan else None)


def _bars(
    axis: _Axis, span: Span, plan: list[tuple[str, datetime, datetime]], now: datetime
) -> list[Bar]:
    bars: list[Bar] = []
    for name, start, end in plan:
        if name == span.name:
            if span.p90:
                bars.append(
                    axis.bar(
                        "p90", start, min(start + span.p90, axis.start + axis.tick * axis.ticks)
                    )
                )
            bars.append(axis.bar("p50", start, end))
    for begun, ended, state in span.tries:
        bars.append(axis.bar("ran", begun, ended or now, state if state != "done" else ""))
    return bars


def _moments(
    axis: _Axis, now: datetime, ended: datetime | None, expected: datetime | None
) -> list[Mark]:
    def words(moment: datetime, before: str) -> str:
        return f"{before} {timezone.localtime(moment):%H:%M:%S}"

    if ended is not None:
        return [Mark(words(ended, "ended"), axis.at(ended))]
    marks = [Mark(words(now, "now"), axis.at(now))]
    if expected and axis.at(expected) - axis.at(now) > 12:
        marks.append(Mark(words(expected, "ready"), axis.at(expected), "expected"))
    return marks


def _covers(moment: Mark, hour: Mark) -> bool:
    """Whether a moment's words would lie over an hour's: centred, near the end flush right."""
    before, after = (15, 4) if moment.end else (9, 9)
    if hour.side:
        before, after = before + 3, after + 3
    return -before < hour.at - moment.at < after


def _sentence(axis: _Axis, spans: Sequence[Span]) -> str:
    done = [
        s.name
        for s in spans
        if s.tries and s.tries[-1][1] and s.tries[-1][2] not in ("failed", "tried")
    ]
    running = [s.name for s in spans if s.tries and s.tries[-1][1] is None]
    failed = [s.name for s in spans if s.tries and s.tries[-1][2] == "failed"]
    left = [s.name for s in spans if not s.tries]
    parts = [f"Steps on a time axis from {axis.labels()[0].words} to {axis.labels()[-1].words}"]
    parts += [f"{', '.join(running)} is running"] if running else []
    parts += [f"{', '.join(failed)} failed"] if failed else []
    parts += [f"{len(done)} are done, {len(left)} follow"]
    return ". ".join(parts) + "."
