"""Filters of lists: `?state=a&state=b&q=…`; an unknown name or value is an error, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from gpucloud import words

PAGING = ("cursor", "limit")
# Either-or of more values than this is not a question that people ask.
MOST_VALUES = 50


@dataclass(frozen=True)
class Filter:
    """One query name: the lookup that its values go to, or a function from a value to a Q.

    `choices` closes the list of values; several values are either-or.
    """

    lookup: str | Callable[[str], Q]
    help: str
    choices: Sequence[str] = ()
    kind: str = "string"

    def q(self, value: str) -> Q:
        if self.choices and value not in self.choices:
            raise ValueError(f"Choose of: {', '.join(self.choices)}.")
        if callable(self.lookup):
            return self.lookup(value)
        if self.kind == "uuid":
            try:
                return Q(**{self.lookup: UUID(value)})
            except ValueError as error:
                raise ValueError("Give a uid.") from error
        if self.kind == "boolean":
            if value not in ("true", "false"):
                raise ValueError("Say true or false.")
            return Q(**{self.lookup: value == "true"})
        if self.kind == "integer":
            if not value.isascii() or not value.isdigit() or len(value) > 18:
                raise ValueError("Give a whole number.")
            return Q(**{self.lookup: int(value)})
        return Q(**{self.lookup: value})


def states(model: type[Model], hidden: str = "") -> Filter:
    """The filter over a model's states."""
    words = "" if not hidden else f" Without it, all but {hidden}."
    known: list[str] = model.State.values  # type: ignore[attr-defined]
    return Filter("state", f"The state; may be given several times.{words}", known)


def _counts(request: Request) -> list[tuple[str, int, int]]:
    """How many values, or for `q` words, each name of the query was given, and how many it may."""
    found = [(name, len(values), MOST_VALUES) for name, values in request.query_params.lists()]
    return [*found, ("q", len(request.query_params.get("q", "").split()), words.MOST)]


class StrictFilter(BaseFilterBackend):
    """Reads `filters`, `search` and `hidden` of a view.

    `hidden` is (name, value): rows of that value are left out unless the list is filtered by it.
    """

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: Any
    ) -> QuerySet[Any]:
        filters: Mapping[str, Filter] = view.filters
        known = [*filters, *(["q"] if view.search else []), *PAGING]
        errors: dict[str, list[str]] = {
            name: [f"Unknown filter. Known are: {', '.join(known)}."]
            for name in request.query_params
            if name not in known
        }
        errors |= {
            name: ["Leave NUL characters out."]
            for name, values in request.query_params.lists()
            if any("\0" in value for value in values)
        }
        errors |= {
            name: [f"Give {most} at most."]
            for name, count, most in _counts(request)
            if count > most
        }
        if errors:
            raise ValidationError(errors)
        for name, one in filters.items():
            values = request.query_params.getlist(name)
            try:
                if values:
                    queryset = queryset.filter(reduce(or_, [one.q(value) for value in values]))
            except ValueError as error:
                errors[name] = [str(error)]
        if errors:
            raise ValidationError(errors)
        if view.hidden and view.hidden[0] not in request.query_params:
            queryset = queryset.exclude(**{view.hidden[0]: view.hidden[1]})
        asked = request.query_params.get("q", "").split() if view.search else []
        return queryset.filter(words.hits(asked, view.search))

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        found = []
        for name, one in view.filters.items():
            value: dict[str, Any] = {"type": "string"}
            if one.kind == "uuid":
                value["format"] = "uuid"
            elif one.kind in ("boolean", "integer"):
                value["type"] = one.kind
            if one.choices:
                value = {"type": "array", "items": {"type": "string", "enum": list(one.choices)}}
            found.append(
                {
                    "name": name,
                    "in": "query",
                    "required": False,
                    "description": one.help,
                    "schema": value,
                }
            )
        if view.search:
            found.append(
                {
                    "name": "q",
                    "in": "query",
                    "required": False,
                    "description": f"Words to find in {', '.join(view.search)}.",
                    "schema": {"type": "string"},
                }
            )
        return found
