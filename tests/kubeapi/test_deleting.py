"""Deleting: finalizers, preconditions, dependents, namespaces, definitions."""

from __future__ import annotations

import copy

import pytest

from gpucloud.kubeapi import deletion
from gpucloud.kubeapi.cluster import Selection
from gpucloud.kubeapi.errors import ApiError
from tests.kubeapi.builders import ANNA, World


@pytest.fixture
def world():
    return World()


def owned_by(owner, **more):
    meta = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {"ownerReferences": [reference | {"name": meta["name"], "uid": meta["uid"]} | more]}


def test_without_finalizers_an_object_is_gone_at_once(world):
    world.host()
    _, gone = world.delete("hosts", "h1")
    assert gone
    assert not world.has("hosts", "h1")


def test_a_finalizer_holds_the_object_until_it_is_removed(world):
    world.host(finalizers=["example.com/x"])
    left, gone = world.delete("hosts", "h1")
    assert not gone
    assert left["metadata"]["deletionTimestamp"]
    assert left["metadata"]["generation"] == 2
    world.merge("hosts", "h1", {"metadata": {"finalizers": []}})
    assert not world.has("hosts", "h1")


def test_deleting_twice_keeps_the_first_time(world):
    world.host(finalizers=["example.com/x"])
    first, _ = world.delete("hosts", "h1")
    second, _ = world.delete("hosts", "h1")
    assert second == first


def test_no_finalizer_can_be_added_to_a_deleted_object(world):
    world.host(finalizers=["example.com/x"])
    world.delete("hosts", "h1")
    with pytest.raises(ApiError) as caught:
        world.merge("hosts", "h1", {"metadata": {"finalizers": ["example.com/x", "b/b"]}})
    assert caught.value.code == 422


def test_a_deletion_time_cannot_be_taken_back(world):
    world.host(finalizers=["example.com/x"])
    world.delete("hosts", "h1")
    world.merge("hosts", "h1", {"metadata": {"deletionTimestamp": None}, "spec": {"online": True}})
    assert world.get("hosts", "h1")["metadata"]["deletionTimestamp"]


def test_preconditions_protect_a_newer_object(world):
    host = world.host()
    for wrong in ({"uid": "other"}, {"version": "1"}):
        with pytest.raises(ApiError) as caught:
            world.delete("hosts", "h1", **wrong)
        assert caught.value.reason == "Conflict"
    meta = host["metadata"]
    world.delete("hosts", "h1", uid=meta["uid"], version=meta["resourceVersion"])
    assert not world.has("hosts", "h1")


def test_dependents_are_collected_with_their_last_owner(world):
    one, two = world.host("one"), world.host("two")
    both = owned_by(one)["ownerReferences"] + owned_by(two)["ownerReferences"]
    world.config("only", **owned_by(one))
    world.config("shared", ownerReferences=both)
    world.delete("hosts", "one")
    assert world.names("configmaps") == ["shared"]
    world.delete("hosts", "two")
    assert world.names("configmaps") == []


def test_collecting_goes_down_the_whole_chain(world):
    child = world.config("child", **owned_by(world.host()))
    world.config("grandchild", **owned_by(child))
    world.delete("hosts", "h1")
    assert world.names("configmaps") == []


def test_orphaning_leaves_the_dependents(world):
    world.config("child", **owned_by(world.host()))
    world.delete("hosts", "h1", propagation="Orphan")
    assert world.get("configmaps", "child")["metadata"]["ownerReferences"] == []


def test_a_foreground_deletion_waits_for_the_dependents(world):
    owner = world.host()
    world.config("child", **owned_by(owner), finalizers=["a/b"])
    left, gone = world.delete("hosts", "h1", propagation="Foreground")
    assert not gone
    assert left["metadata"]["finalizers"] == ["foregroundDeletion"]
    world.merge("configmaps", "child", {"metadata": {"finalizers": None}})
    assert not world.has("configmaps", "child")
    assert not world.has("hosts", "h1")


def test_a_foreground_deletion_without_dependents_is_done_at_once(world):
    world.host()
    _, gone = world.delete("hosts", "h1", propagation="Foreground")
    assert gone


def test_a_namespace_takes_everything_in_it_along(world):
    world.host(finalizers=["a/b"])
    world.config()
    left, gone = world.delete("namespaces", "lab")
    assert not gone
    assert left["status"]["phase"] == "Terminating"
    assert world.names("configmaps") == []
    with pytest.raises(ApiError) as caught:
        world.config("late")
    assert caught.value.reason == "Forbidden"
    world.merge("hosts", "h1", {"metadata": {"finalizers": None}})
    assert not world.has("namespaces", "lab")


def test_a_definition_takes_its_objects_and_its_paths_along(world):
    world.host()
    world.delete("customresourcedefinitions", "hosts.example.com")
    assert world.cluster.registry.at("example.com", "v1", "hosts") is None
    assert world.cluster.store.list("hosts.example.com") == []


def test_deleting_a_collection_takes_what_is_selected(world):
    world.host("a", labels={"x": "1"})
    world.host("b")
    resource = world.cluster.registry.find("hosts")
    world.cluster.delete_collection(resource, "lab", Selection(labels="x=1"), ANNA)
    assert world.names("hosts") == ["b"]


def test_a_dry_delete_leaves_everything(world):
    before = copy.deepcopy(world.host())
    world.delete("hosts", "h1", dry_run=True)
    assert world.get("hosts", "h1") == before


def test_a_sweep_finishes_what_a_killed_process_began(world, monkeypatch):
    world.config("child", **owned_by(world.host()))
    with monkeypatch.context() as patched:
        patched.setattr(deletion, "after", lambda *_: None)  # killed right after the first commit
        world.delete("hosts", "h1")
    assert world.has("configmaps", "child")
    deletion.sweep(world.cluster, ANNA)
    assert not world.has("configmaps", "child")


def test_a_sweep_empties_a_namespace_that_was_being_deleted(world, monkeypatch):
    world.config()
    with monkeypatch.context() as patched:
        patched.setattr(deletion, "_begin", lambda *_: None)
        world.delete("namespaces", "lab")
    deletion.sweep(world.cluster, ANNA)
    assert not world.has("namespaces", "lab")


def test_a_sweep_of_a_tidy_cluster_writes_nothing(world):
    world.config("child", **owned_by(world.host(finalizers=["a/b"])))
    world.delete("hosts", "h1", propagation="Foreground")
    world.writes.clear()
    deletion.sweep(world.cluster, ANNA)
    assert world.writes == []
