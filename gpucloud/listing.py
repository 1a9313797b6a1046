"""Listing: search, filters, sort and page of a table, all read from the URL and nothing else.

    listing = Listing(request.GET, visible(user, Server.objects.all()), name="servers",
                      search=("name", "serial"), columns=COLUMNS, filters=FILTERS,
                      topic="server-row")

The template gets one object: `rows`, `count`, `heads`, `chips`, `choices`, `notes` and addresses.
A value in the URL that nobody knows is ignored and said so in `notes`; it never breaks a bookmark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from gpucloud import words

Row = TypeVar("Row", bound=Model)

PER_PAGE: Final = 50
PER_CHOICES: Final = (25, 50, 100, 200)


@dataclass(frozen=True)
class Column:
    """One column: its head and, when it can be sorted, the ordering fields behind `?sort=key`."""

    key: str
    label: str
    sort: tuple[str, ...] = ()
    number: bool = False


@dataclass(frozen=True)
class Filter:
    """One URL parameter with a closed list of values; several values are either-or.

    `lookup` is a field path, or a callable from the chosen values to a Q. `choices` may be a
    callable,
    so that it is read per request (names of providers, say).
    """

    key: str
    label: str
    choices: Sequence[tuple[str, str]] | Callable[[], Sequence[tuple[str, str]]]
    lookup: str | Callable[[list[str]], Q] = ""

    def options(self) -> list[tuple[str, str]]:
        found = self.choices() if callable(self.choices) else self.choices
        return [(str(value), str(label)) for value, label in found]

    def condition(self, values: list[str]) -> Q:
        if callable(self.lookup):
            return self.lookup(values)
        return Q(**{f"{self.lookup or self.key}__in": values})


@dataclass(frozen=True)
class Head:
    """A table head as drawn: label, where a click leads, and the current direction."""

    column: Column
    href: str = ""
    direction: str = ""

    @property
    def arrow(self) -> str:
        return {"ascending": " ↑", "descending": " ↓"}.get(self.direction, "")


@dataclass(frozen=True)
class Chip:
    """An active filter: what it says, and the address without it."""

    label: str
    values: str
    href: str


@dataclass(frozen=True)
class Option:
    """One tick box in the filter menu."""

    value: str
    label: str
    on: bool


class Listing(Generic[Row]):
    """One table's state. Cheap to make: the query runs when rows or count are asked for."""

    def __init__(
        self,
        params: QueryDict,
        queryset: QuerySet[Row],
        *,
        name: str,
        columns: Sequence[Column],
        filters: Sequence[Filter] = (),
        search: Sequence[str] = ("name",),
        default_sort: str = "",
        per: int = PER_PAGE,
        topic: str = "",
    ) -> None:
        self.params, self.queryset, self.name = params, queryset, name
        self.columns, self.filters, self.search = columns, filters, search
        self.default_sort = default_sort or next((c.key for c in columns if c.sort), "")
        self.default_per, self.topic = per, topic
        self.notes: list[str] = []
        self.q = self._words()
        self.chosen = {each.key: self._known(each) for each in filters}
        self.sort = self._sort()
        self.per = self._per()

    def _words(self) -> str:
        asked = self.params.get("q", "").replace("\0", "").split()
        if len(asked) > words.MOST:
            self.notes.append(f"Only the first {words.MOST} words were looked for.")
        return " ".join(asked[: words.MOST])

    def _known(self, each: Filter) -> list[str]:
        asked = [value for value in self.params.getlist(each.key) if value]
        options = dict(each.options()) if asked else {}
        for value in asked:
            if value not in options:
                self.notes.append(f"{each.label} “{value[:40]}” is not known here and was ignored.")
        return [value for value in dict.fromkeys(asked) if value in options]

    def _sort(self) -> str:
        asked = self.params.get("sort", "")
        if asked.removeprefix("-") in {c.key for c in self.columns if c.sort}:
            return asked
        if asked:
            self.notes.append(f"Sorting by “{asked[:40]}” is not possible here and was ignored.")
        return self.default_sort

    def _per(self) -> int:
        asked = self.params.get("per", "")
        if asked in map(str, PER_CHOICES):
            return int(asked)
        if asked:
            self.notes.append(
                f"{asked[:10]} rows per page is not offered; {self.default_per} are shown."
            )
        return self.default_per

    # ---- What the database is asked -------------------------------------------------------------

    @cached_property
    def matching(self) -> QuerySet[Row]:
        """Every row that fits, unordered: what "all N matching" means for a bulk action."""
        rows = self.queryset
        for each in self.filters:
            if values := self.chosen[each.key]:
                rows = rows.filter(each.condition(values))
        return rows.filter(words.hits(self.q.split(), self.search))

    @cached_property
    def page(self) -> Page[Row]:
        paginator = Paginator(self.matching.order_by(*self.ordering), self.per)
        asked = self.params.get("page", "1")
        page = paginator.get_page(asked)
        if str(page.number) != asked:
            self.notes.append(f"There is no page {asked[:10]}; this is page {page.number}.")
        return page

    @property
    def ordering(self) -> list[str]:
        column = next((c for c in self.columns if c.key == self.sort.removeprefix("-")), None)
        if column is None:
            return ["pk"]
        down = self.sort.startswith("-")
        # Ties are broken by key, otherwise a row may show on two pages.
        return [*(_flip(path) if down else path for path in column.sort), "pk"]

    @property
    def rows(self) -> Page[Row]:
        return self.page

    @property
    def count(self) -> int:
        return self.page.paginator.count

    @cached_property
    def total(self) -> int:
        """How many there are without search and filters."""
        return self.queryset.count() if self.narrowed else self.count

    @property
    def narrowed(self) -> bool:
        return bool(self.q or any(self.chosen.values()))

    # ---- What the templates draw ----------------------------------------------------------------

    @property
    def heads(self) -> list[Head]:
        return [self._head(column) for column in self.columns]

    def _head(self, column: Column) -> Head:
        if not column.sort:
            return Head(column)
        current = self.sort.removeprefix("-") == column.key
        down = current and not self.sort.startswith("-")
        direction = ("descending" if self.sort.startswith("-") else "ascending") if current else ""
        return Head(column, self.href(sort=("-" if down else "") + column.key), direction)

    @property
    def chips(self) -> list[Chip]:
        found = [Chip("Search", self.q, self.href(q=None))] if self.q else []
        for each in self.filters:
            if values := self.chosen[each.key]:
                names = dict(each.options())
                words = ", ".join(names[value] for value in values)
                found.append(Chip(each.label, words, self.href(**{each.key: None})))
        return found

    @property
    def choices(self) -> list[tuple[Filter, list[Option]]]:
        return [
            (each, [Option(v, label, v in self.chosen[each.key]) for v, label in each.options()])
            for each in self.filters
        ]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Parameters that the filter form does not edit but must keep."""
        return [(key, value) for key, value in self._current(page=None) if key in ("sort", "per")]

    @property
    def previous(self) -> str:
        return self.href(page=self.page.previous_page_number()) if self.page.has_previous() else ""

    @property
    def next(self) -> str:
        return self.href(page=self.page.next_page_number()) if self.page.has_next() else ""

    @property
    def clear(self) -> str:
        return "?" + urlencode(self.hidden)

    @property
    def refresh(self) -> str:
        return "?" + urlencode(self._current())

    @property
    def topics(self) -> list[str]:
        """What the page's socket subscribes to: each row, and news of rows not shown."""
        if not self.topic:
            return []
        return [f"list:{self.topic}", *(f"{self.topic}:{_uid(row)}" for row in self.page)]

    @property
    def sentence(self) -> str:
        noun = self.name if self.count != 1 else self.name.removesuffix("s")
        return (
            f"{self.count} of {self.total} {self.name}" if self.narrowed else f"{self.count} {noun}"
        )

    def href(self, **changes: Any) -> str:
        """The address of this listing with some parameters changed; any change but `page` goes to
        page 1.
        """
        return "?" + urlencode(self._current(**{"page": None, **changes}))

    def _current(self, **changes: Any) -> list[tuple[str, str]]:
        """The known parameters in a fixed order, so that equal listings have equal addresses."""
        pairs: list[tuple[str, Any]] = [("q", self.q)]
        pairs += [(key, value) for key, values in self.chosen.items() for value in values]
        pairs += [("sort", self.sort if self.sort != self.default_sort else "")]
        pairs += [("per", self.per if self.per != self.default_per else "")]
        pairs += [("page", self.params.get("page", ""))]
        kept = [(key, value) for key, value in pairs if key not in changes]
        return [(k, str(v)) for k, v in [*kept, *changes.items()] if v not in (None, "")]


def _flip(path: str) -> str:
    return path[1:] if path.startswith("-") else f"-{path}"


def _uid(row: Any) -> str:
    return str(row.uid)
