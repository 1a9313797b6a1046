"""Lists in REST: `{results, next, previous}` by cursor, stable while rows come and go."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor as Place
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

TAKE: Final = "Take the cursor from `next` or `previous` of an answer."
# What fits into a database's big integer whatever the digits are.
MOST_DIGITS: Final = 18


class Cursor(CursorPagination):
    """Newest first; `limit` sets the page's size, and what cannot be read is an error."""

    ordering = "-id"
    page_size = 100
    max_page_size = 500
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get("limit")
        if given is None:
            return self.page_size
        if not (given.isascii() and given.isdigit()) or not 1 <= int(given[:9]) <= 500:
            raise ValidationError({"limit": [f"Give a number from 1 to {self.max_page_size}."]})
        return int(given)

    def decode_cursor(self, request: Request) -> Place | None:
        try:
            place = super().decode_cursor(request)
        except NotFound as error:
            raise ValidationError({"cursor": [TAKE]}) from error
        if place is not None and not _sortable(str(place.position or 0)):
            raise ValidationError({"cursor": [TAKE]})
        return place


def _sortable(position: str) -> bool:
    """Whether lists can begin there: all are sorted by a whole number."""
    return position.isascii() and position.isdigit() and len(position) <= MOST_DIGITS


class ByPosition(Cursor):
    """Events: newest first, or with `?after=<position>` onwards from there, oldest first."""

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return ("position",) if "after" in request.query_params else ("-position",)
