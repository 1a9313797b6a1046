"""The word and tone of an object's state: the model's label, and the tone of its app's lifecycle
table.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

from gpucloud.lifecycle import Lifecycle

# Steps belong to the engine and have no table of verbs.
STEPS: Final = {
    "todo": "neutral",
    "running": "busy",
    "waiting": "busy",
    "done": "good",
    "failed": "bad",
    "skipped": "neutral",
}


def of(obj: Any) -> tuple[str, str] | None:
    """Label and tone, or None for something without a state."""
    if not hasattr(obj, "get_state_display"):
        return None
    return str(obj.get_state_display()), tone(type(obj), str(obj.state))


def tone(model: type, state: str) -> str:
    return _table(model).get(state, "neutral")


@cache
def _table(model: type) -> dict[str, str]:
    """The tones of a model, found by the kind under which history knows it."""
    from gpucloud.history import KINDS

    if model.__name__ == "Step":
        return STEPS
    kind = KINDS.get(model.__name__, model.__name__.lower())
    module = import_module(f"{model.__module__.partition('.')[0]}.lifecycle")
    tables = (value for value in vars(module).values() if isinstance(value, Lifecycle))
    return next((dict(table.tones) for table in tables if table.kind == kind), {})
