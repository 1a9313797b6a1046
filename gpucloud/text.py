"""Text from outside (BMCs, engines, agents) as it may be kept and shown: whole, but harmless."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from django.db import models

T = TypeVar("T")
# What a database refuses (NUL, surrogates), a terminal obeys, or turns the order of letters round.
HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LARGEST: Final = 2**63 - 1


def plain(value: T) -> T:
    """The value without harmful characters, at any depth of mappings, lists and dataclasses."""
    found: Any = value
    if isinstance(value, str):
        return HARMFUL.sub("", value)  # type: ignore[return-value]
    if isinstance(value, dict):
        found = {plain(key): plain(one) for key, one in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)(plain(one) for one in value)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = {one.name: plain(getattr(value, one.name)) for one in fields(value)}
        found = replace(value, **changed)
    return found  # type: ignore[no-any-return]


def fit(model: type[models.Model], field: str, text: str | None) -> str:
    """The text cut to what the field holds: PostgreSQL refuses a longer one, SQLite keeps it."""
    longest = getattr(model._meta.get_field(field), "max_length", None)
    return (text or "")[:longest]


def whole(number: int | None) -> int | None:
    """A number that a database can hold, or None: a wild one says nothing."""
    return number if number is not None and 0 <= number <= LARGEST else None
