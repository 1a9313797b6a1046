"""Listing: everything from the URL, nothing that breaks a bookmark."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict

from gpucloud.listing import Column, Filter, Listing
from inventory.models import Server
from tests import make

COLUMNS = [
    Column("name", "Name", ("name",)),
    Column("state", "State", ("state", "name")),
    Column("labels", "Labels"),
]
FILTERS = [
    Filter("state", "State", Server.State.choices),
    Filter("power", "Power", lambda: Server.Power.choices),
]


def listing(query: str = "", **options: Any) -> Listing[Server]:
    options = {"columns": COLUMNS, "filters": FILTERS, "search": ("name", "serial")} | options
    return Listing(QueryDict(query), Server.objects.all(), name="servers", **options)


def names(query: str = "", **options: Any) -> list[str]:
    return [row.name for row in listing(query, **options).rows]


@pytest.fixture(autouse=True)
def four(db: None) -> None:
    make.server("alpha", serial="S-1", power="on")
    make.server("beta", serial="S-2", state="failed", power="off")
    make.server("gamma", serial="T-3", state="failed", power="on")
    make.server("delta", serial="T-4", state="retired", power="off")


def test_without_parameters_everything_is_shown_by_name() -> None:
    assert names() == ["alpha", "beta", "delta", "gamma"]
    assert listing().sentence == "4 servers"


def test_search_wants_every_word_in_some_field() -> None:
    assert names("q=t-") == ["delta", "gamma"]
    assert names("q=s-+bet") == ["beta"]
    assert names("q=nothing") == []


def test_values_of_one_filter_are_either_or_and_filters_add_up() -> None:
    assert names("state=failed&state=retired") == ["beta", "delta", "gamma"]
    assert names("state=failed&state=retired&power=off") == ["beta", "delta"]


def test_sorting_goes_both_ways_and_the_head_turns_round() -> None:
    assert names("sort=-name") == ["gamma", "delta", "beta", "alpha"]
    heads = {head.column.key: head for head in listing("sort=name&state=failed").heads}
    assert heads["name"].direction == "ascending"
    assert heads["name"].href == "?state=failed&sort=-name"
    assert heads["state"].direction == ""
    assert heads["labels"].href == ""


def test_unknown_values_are_ignored_with_a_note() -> None:
    odd = listing("state=haunted&sort=colour&per=7&page=99&state=failed")
    assert [row.name for row in odd.rows] == ["beta", "gamma"]
    assert len(odd.notes) == 4
    assert "haunted" in odd.notes[0]


def test_a_chip_is_a_link_without_its_value() -> None:
    chips = listing("q=a&state=failed&state=retired&sort=-name").chips
    assert [(chip.label, chip.values) for chip in chips] == [
        ("Search", "a"),
        ("State", "Failed, Retired"),
    ]
    assert chips[1].href == "?q=a&sort=-name"
    assert chips[0].href == "?state=failed&state=retired&sort=-name"


def test_pages_are_cut_and_linked_with_the_rest_kept() -> None:
    first = listing("sort=-name", per=2)
    assert [row.name for row in first.rows] == ["gamma", "delta"]
    assert (first.previous, first.next) == ("", "?sort=-name&page=2")
    second = listing("sort=-name&page=2", per=2)
    assert [row.name for row in second.rows] == ["beta", "alpha"]
    assert second.next == ""
    assert second.previous == "?sort=-name&page=1"


def test_a_new_filter_begins_on_the_first_page() -> None:
    assert "page" not in listing("page=2", per=2).href(state="failed")


def test_a_narrowed_list_says_of_how_many() -> None:
    narrowed = listing("state=failed")
    assert narrowed.sentence == "2 of 4 servers"
    assert narrowed.clear == "?"


def test_topics_name_each_shown_row_and_the_list() -> None:
    live = listing("state=retired", topic="server-row")
    assert live.topics == ["list:server-row", f"server-row:{Server.objects.get(name='delta').uid}"]
    assert listing().topics == []


def test_a_list_costs_two_queries(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        shown = listing("q=a")
        assert len(list(shown.rows)) == shown.count


def test_a_filter_may_be_any_condition() -> None:
    from django.db.models import Q

    odd = Filter("kind", "Kind", [("s", "S-serials")], lambda values: Q(serial__startswith="S"))
    assert names("kind=s", filters=[odd]) == ["alpha", "beta"]
