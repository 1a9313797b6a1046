"""Managed fields and server-side apply."""

from __future__ import annotations

import copy

import pytest

from gpucloud.kubeapi.errors import ApiError
from tests.kubeapi.builders import ANNA, BERT, World


@pytest.fixture
def world():
    return World()


def intent(name="h1", **spec):
    return {
        "apiVersion": "example.com/v1", "kind": "Host", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def owners(obj):
    return {
        (row["manager"], row["operation"], row.get("subresource", "")): row["fieldsV1"]
        for row in obj["metadata"]["managedFields"]
    }


def test_apply_creates_and_then_owns_what_it_said(world):
    host = world.apply("hosts", intent(online=True))
    assert owners(host) == {("anna", "Apply", ""): {"f:spec": {".": {}, "f:online": {}}}}


def test_applying_a_foreign_value_conflicts_and_names_the_field(world):
    world.apply("hosts", intent(online=True))
    with pytest.raises(ApiError) as caught:
        world.apply("hosts", intent(online=False), by=BERT)
    assert caught.value.code == 409
    assert caught.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "anna"',
            "field": ".spec.online",
        }
    ]


def test_force_takes_the_field_over(world):
    world.apply("hosts", intent(online=True))
    host = world.apply("hosts", intent(online=False), by=BERT, force=True)
    assert host["spec"]["online"] is False
    assert "f:online" not in str(owners(host).get(("anna", "Apply", "")))
    assert "f:online" in str(owners(host)["bert", "Apply", ""])


def test_the_same_value_is_owned_together(world):
    world.apply("hosts", intent(online=True))
    host = world.apply("hosts", intent(online=True), by=BERT)
    assert "f:online" in str(owners(host)["anna", "Apply", ""])
    assert "f:online" in str(owners(host)["bert", "Apply", ""])


def test_what_an_applier_leaves_out_goes_unless_shared(world):
    world.apply("hosts", intent(online=True, a=1, b={"c": 2}))
    world.apply("hosts", intent(online=True, a=1), by=BERT)
    host = world.apply("hosts", intent(online=True))
    assert host["spec"] == {"online": True, "mode": "fast", "a": 1}


def test_an_update_takes_fields_from_an_applier(world):
    world.apply("hosts", intent(online=True))
    host = world.merge("hosts", "h1", {"spec": {"online": False}}, by=BERT)
    assert "f:online" in str(owners(host)["bert", "Update", ""])
    with pytest.raises(ApiError, match='conflict with "bert" using Update: .spec.online'):
        world.apply("hosts", intent(online=True))


def test_applying_lists_by_key_touches_only_named_items(world):
    world.apply("hosts", intent(online=True, taints=[{"key": "a", "v": "1"}]))
    host = world.apply("hosts", intent(online=True, taints=[{"key": "b", "v": "2"}]), by=BERT)
    assert host["spec"]["taints"] == [{"key": "a", "v": "1"}, {"key": "b", "v": "2"}]
    host = world.apply("hosts", intent(online=True), by=ANNA)
    assert host["spec"]["taints"] == [{"key": "b", "v": "2"}]


def test_applying_twice_changes_nothing(world):
    first = world.apply("hosts", intent(online=True))
    assert world.apply("hosts", intent(online=True)) == first


def test_status_has_owners_of_its_own(world):
    world.apply("hosts", intent(online=True))
    status = {"metadata": {"name": "h1"}, "status": {"state": "on"}}
    host = world.apply("hosts", status, by=BERT, subresource="status")
    assert host["status"] == {"state": "on"}
    assert owners(host)["bert", "Apply", "status"] == {"f:status": {".": {}, "f:state": {}}}


def test_apply_with_an_old_version_conflicts(world):
    version = world.apply("hosts", intent(online=True))["metadata"]["resourceVersion"]
    world.merge("hosts", "h1", {"metadata": {"labels": {"a": "b"}}})
    body = intent(online=True)
    body["metadata"]["resourceVersion"] = version
    with pytest.raises(ApiError) as caught:
        world.apply("hosts", body)
    assert caught.value.reason == "Conflict"


def test_annotations_of_others_survive_an_apply(world):
    world.host(annotations={"theirs": "x"}, by=BERT)
    body = intent(online=True)
    body["metadata"]["annotations"] = {"ours": "y"}
    host = world.apply("hosts", body, force=True)
    assert host["metadata"]["annotations"] == {"theirs": "x", "ours": "y"}


def test_a_writer_may_clear_who_owns_what(world):
    world.apply("hosts", intent(online=True))
    host = world.merge("hosts", "h1", {"metadata": {"managedFields": [{}]}}, by=BERT)
    assert "managedFields" not in host["metadata"]
    assert world.apply("hosts", intent(online=False), by=BERT)["spec"]["online"] is False


def test_a_replacement_without_managed_fields_keeps_the_owners(world):
    host = copy.deepcopy(world.apply("hosts", intent(online=True)))
    del host["metadata"]["managedFields"]
    assert ("anna", "Apply", "") in owners(world.update("hosts", host, by=BERT))
