"""Lists in REST: `{results, next, previous}` by cursor, stable while rows come and go."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class Cursor(CursorPagination):
    ordering = "-id"
    page_size = 100
    max_page_size = 500
    page_size_query_param = "limit"
