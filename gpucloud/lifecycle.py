"""Lifecycle: what may happen to an object, as a table; and the one compare-and-set move that makes
it happen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
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
        """The table as a Mermaid state diagram. States between which any order is allowed (a
        cluster's phases) share one box, since an arrow for each pair would hide the rest.
        """
        box = self._box()
        lines = [f"[*] --> {next(iter(self.tones))}"]
        if box:
            lines += ["state phases {", *(f"{a} --> {b}" for a, b in pairwise(box)), "}"]
        for verb, rule in self.verbs.items():
            sources = [source for source in rule.sources if source not in box]
            target, words = rule.target, verb
            if box and set(box) <= set(rule.sources):
                if target in box:
                    target, words = "phases", "enter"
                else:
                    sources.append("phases")
            else:
                sources = list(rule.sources)
            lines += [f"{source} --> {target}: {words}" for source in sources]
        left = {source for rule in self.verbs.values() for source in rule.sources}
        lines += [f"{state} --> [*]" for state in self.tones if state not in left]
        # Mermaid takes a hyphen in a name for the start of an arrow.
        drawn = [f"    {re.sub(r'(?<=[a-z])-(?=[a-z])', '_', line)}" for line in lines]
        return "\n".join(dict.fromkeys(["stateDiagram-v2", *drawn]))

    def _box(self) -> list[str]:
        """The states that all lead to each other, by verbs of the same sources; often none."""
        shared = Counter(rule.sources for rule in self.verbs.values())
        sources, count = shared.most_common(1)[0]
        targets = [rule.target for rule in self.verbs.values() if rule.sources == sources]
        return targets if count > 2 and set(targets) < set(sources) else []
