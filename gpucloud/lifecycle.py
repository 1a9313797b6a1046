"""Lifecycle: what may happen to an object, as a table; and the one compare-and-set move that makes
it happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import models, transaction
from django.db.models import F
from django.db.models.functions import Now

from gpucloud import history
from gpucloud.problems import NotAllowed, Stale


@dataclass(frozen=True)
class Verb:
    """From which states to which one, and the sentence that history tells."""

    sources: tuple[str, ...]
    target: str
    sentence: str


@dataclass(frozen=True)
class Lifecycle:
    """One model's table. `tones` gives each state its badge tone: neutral, busy, good, warn or
    bad.
    """

    kind: str
    verbs: Mapping[str, Verb]
    tones: Mapping[str, str]
    in_flight: tuple[str, ...] = field(default=())

    def may(self, state: str, verb: str) -> bool:
        return verb in self.verbs and state in self.verbs[verb].sources

    def move(
        self,
        row: Any,
        verb: str,
        actor: str,
        message: str = "",
        *,
        code: str | None = None,
        data: dict[str, Any] | None = None,
        guard: models.Q | None = None,
        **fields: Any,
    ) -> None:
        """Change the state by one conditional UPDATE, with its history row, or raise NotAllowed or
        Stale.

        Only `fields` and the state's own columns are written; `guard` is an extra condition
        on the row.
        """
        rule = self.verbs[verb]
        if row.state not in rule.sources:
            raise NotAllowed(
                f"{row} is {row.get_state_display().lower()}, so “{verb}” does not apply. "
                f"It applies to: {', '.join(rule.sources)}."
            )
        changes: dict[str, Any] = {"state": rule.target, "rev": F("rev") + 1, **fields}
        if code is not None and hasattr(row, "code"):
            changes["code"] = code
        if rule.target != row.state and hasattr(row, "state_since"):
            changes["state_since"] = Now()
        with transaction.atomic():
            rows = type(row)._default_manager.filter(pk=row.pk, state=row.state)
            if guard is not None:
                rows = rows.filter(guard)
            if not rows.update(**changes):
                raise Stale(f"{row} was changed by somebody else meanwhile; read it again.")
            row.refresh_from_db()
            history.record(
                row,
                verb,
                actor,
                message or rule.sentence.format(name=row),
                code=code or "",
                data=data,
            )

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram, for the README."""
        lines = ["stateDiagram-v2"]
        for verb, rule in self.verbs.items():
            lines += [f"    {source} --> {rule.target}: {verb}" for source in rule.sources]
        return "\n".join(line.replace("creating-namespace", "creating_namespace") for line in lines)
