"""Selection is pure: every server judged by every check, repeatable and explained."""

from __future__ import annotations

from dataclasses import replace

from provisioning.select import Candidate, Wanted, select

FREE = Candidate(
    uid="1",
    name="a",
    labels={"role": "gpu"},
    state="available",
    clean=True,
    maintenance=False,
    quarantined=False,
    health="OK",
    held_by="",
    active_operation=False,
    cabled=True,
    refused="",
    rack="A1",
    provisioning_address=True,
    gpu_count=4,
    gpu_models=("L40S",),
)
WANTED = Wanted({"role": "gpu"})


def failed(candidate):
    row = select([candidate], WANTED).considered[0]
    return [check.name for check in row.checks if not check.passed]


def test_a_free_matching_server_is_chosen():
    assert select([FREE], WANTED).chosen == "1"


def test_each_predicate_refuses_by_itself_and_says_so():
    assert failed(replace(FREE, labels={"role": "cpu"})) == ["Labels role=gpu"]
    assert failed(replace(FREE, state="cleaning")) == ["Free"]
    assert failed(replace(FREE, held_by="one-x")) == ["Free"]
    assert failed(replace(FREE, active_operation=True)) == ["Free"]
    assert failed(replace(FREE, maintenance=True)) == ["In service"]
    assert failed(replace(FREE, quarantined=True)) == ["In service"]
    assert failed(replace(FREE, clean=False)) == ["Wiped"]
    assert failed(replace(FREE, cabled=False)) == ["Cabled"]
    assert failed(replace(FREE, provisioning_address=False)) == ["Address"]
    assert failed(replace(FREE, refused="host in error")) == ["Engine"]
    assert failed(replace(FREE, health="Critical")) == ["Healthy"]


def test_nothing_is_chosen_when_nobody_passes_and_all_are_explained():
    found = select([replace(FREE, state="held"), replace(FREE, uid="2", clean=False)], WANTED)
    assert found.chosen == ""
    assert [row.result for row in found.considered] == ["Refused", "Refused"]


def test_equal_servers_are_chosen_by_name_so_that_it_is_repeatable():
    a, b = replace(FREE, uid="2", name="b"), FREE
    assert select([a, b], WANTED).chosen == select([b, a], WANTED).chosen == "1"


def test_a_server_whose_health_was_never_read_comes_after_one_that_is_known_well():
    unknown = replace(FREE, uid="0", name="0", health="")
    assert select([unknown, FREE], WANTED).chosen == "1"


def test_the_chosen_server_stands_first_then_those_that_fit_then_the_refused():
    rows = select(
        [replace(FREE, uid="3", name="c", clean=False), replace(FREE, uid="2", name="b"), FREE],
        WANTED,
    ).considered
    assert [row.result for row in rows] == ["Chosen", "Fits", "Refused"]
