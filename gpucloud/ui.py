"""The shapes that the fragments under templates/ui/ take: plain values, nothing that touches the
database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

Tone = Literal["neutral", "busy", "good", "warn", "bad"]
TONES: Final[tuple[Tone, ...]] = ("neutral", "busy", "good", "warn", "bad")
StepState = Literal["planned", "running", "done", "failed", "skipped"]

# What the engine stores about a step, as the timeline, the strip and the pips draw it.
STEP_STATES: Final[dict[str, StepState]] = {
    "todo": "planned",
    "running": "running",
    "waiting": "running",
    "done": "done",
    "failed": "failed",
    "skipped": "skipped",
}


@dataclass(frozen=True)
class Fact:
    """One name and value; `note` is the small line below it."""

    label: str
    value: Any
    note: str = ""
    href: str = ""
    copy: bool = False
    badge: tuple[str, str] | None = None


@dataclass(frozen=True)
class Figure:
    """One number that decides something: label, figure, the words after it, the line below it."""

    label: str
    value: Any
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Link:
    """A place to go or, with `method="post"`, a thing to do; kind: primary, danger, quiet
    or plain.
    """

    label: str
    href: str
    kind: Literal["", "primary", "danger", "quiet"] = ""
    icon: str = ""
    method: Literal["get", "post"] = "get"


@dataclass(frozen=True)
class Attempt:
    """One try of a step, as the folded table of the timeline shows it."""

    started: datetime | None
    result: str
    tone: Tone = "neutral"
    took: timedelta | None = None


@dataclass(frozen=True)
class Proof:
    """A small table of what was read: a row is a name (or name and note), then words or
    (words, tone) for a verdict.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    # Names are ids (ports, serials) and stand in mono; questions are not.
    ids: bool = True


@dataclass(frozen=True)
class TimelineStep:
    """One step of a claim, cluster or release as the timeline draws it."""

    name: str
    state: StepState
    sentence: str = ""
    tries: int = 0
    max_tries: int = 0
    took: timedelta | None = None
    expected_at: datetime | None = None
    usual: str = ""
    log: str = ""
    log_title: str = ""
    percent: int | None = None
    percent_label: str = ""
    reason: str = ""
    attempts: Sequence[Attempt] = ()
    proofs: Sequence[Proof] = ()

    @property
    def more(self) -> str:
        """What is folded below the sentence, in words; nothing when there is nothing."""
        parts = [f"{len(self.attempts)} attempts"] if self.attempts else []
        parts += ["what was read"] if self.proofs else []
        parts += ["log"] if self.log else []
        words = ", ".join(parts) or ("progress" if self.percent is not None else "")
        return words[:1].upper() + words[1:]


@dataclass(frozen=True)
class Endpoint:
    """One box in a lane: who sits in the segment, and how."""

    name: str
    note: str = ""
    state: Literal["", "running", "moving", "planned", "drift", "failed"] = ""
    href: str = ""


@dataclass(frozen=True)
class Lane:
    """One segment across the page, with the endpoints in it."""

    name: str
    notes: Sequence[str] = ()
    tone: Tone = "neutral"
    endpoints: Sequence[Endpoint] = ()
    href: str = ""


@dataclass(frozen=True)
class SharedEndpoint:
    """An endpoint that spans several neighbouring lanes: 1-based first lane and how many."""

    name: str
    at: int
    span: int
    notes: Sequence[str] = ()
    href: str = ""


@dataclass(frozen=True)
class QueueItem:
    """Work for a person: what, effect, reason code and age, one safe next action."""

    title: str
    href: str
    effect: str
    reason: str = ""
    age: str = ""
    tone: Tone = "bad"
    action: Link | None = None


@dataclass(frozen=True)
class Moment:
    """One past event of one object."""

    title: str
    note: str = ""
    at: datetime | None = None
    tone: Tone = "neutral"
    actor: str = ""
    href: str = ""


@dataclass(frozen=True)
class Part:
    """A part of a meter: claimed, available, standby, out, free or planned."""

    part: str
    amount: float
    label: str = ""
    plain: bool = False


@dataclass(frozen=True)
class Meter:
    """Parts of a whole, drawn to the scale of the largest meter beside it."""

    parts: Sequence[Part]
    most: float = 0

    @property
    def total(self) -> float:
        return sum(part.amount for part in self.parts)

    @property
    def scale(self) -> float:
        return self.most or self.total or 1

    @property
    def shown(self) -> list[Part]:
        return [part for part in self.parts if part.amount]

    @property
    def sentence(self) -> str:
        return ", ".join(f"{part.amount:g} {part.label or part.part}" for part in self.shown)


@dataclass(frozen=True)
class Notice:
    """One thing said across the width of a page: words, reason code, cause/effect/next, actions."""

    title: str
    text: str = ""
    tone: Tone = "neutral"
    icon: str = "info"
    reason: str = ""
    facts: Sequence[tuple[str, str]] = ()
    actions: Sequence[Link] = field(default_factory=tuple)
