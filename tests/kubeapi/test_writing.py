"""Creating, replacing and patching: versions, generations, the status door, refusals."""

from __future__ import annotations

import copy

import pytest

from gpucloud.kubeapi.errors import ApiError
from tests.kubeapi.builders import BERT, World


@pytest.fixture
def world():
    return World()


def refused(code, reason, call, *args, **options):
    with pytest.raises(ApiError) as caught:
        call(*args, **options)
    assert (caught.value.code, caught.value.reason) == (code, reason)
    return caught.value


def test_every_write_takes_the_next_of_one_global_version(world):
    first, second = world.host("a"), world.config("b")
    changed = world.merge("hosts", "a", {"spec": {"online": True}})
    versions = [int(o["metadata"]["resourceVersion"]) for o in (first, second, changed)]
    assert versions == list(range(versions[0], versions[0] + 3))


def test_a_write_that_changes_nothing_keeps_the_version(world):
    host = world.host()
    assert world.merge("hosts", "h1", {"spec": {"online": False}}) == host
    assert world.version == host["metadata"]["resourceVersion"]


def test_a_new_object_has_uid_generation_and_time(world):
    meta = world.host()["metadata"]
    assert len(meta["uid"]) == 36
    assert meta["generation"] == 1
    assert meta["creationTimestamp"].endswith("Z")


def test_generate_name_makes_distinct_names(world):
    made = {
        world.create("configmaps", {"metadata": {"generateName": "x-"}})["metadata"]["name"]
        for _ in range(5)
    }
    assert len(made) == 5
    assert all(name.startswith("x-") and len(name) == 7 for name in made)


def test_a_second_object_of_the_same_name_already_exists(world):
    world.host()
    refused(409, "AlreadyExists", world.host)


def test_an_object_needs_its_namespace(world):
    resource = world.cluster.registry.find("hosts")
    call = world.cluster.create
    body = {"metadata": {"name": "x"}, "spec": {"online": True}}
    refused(404, "NotFound", call, resource, "nowhere", body, BERT)


def test_replacing_with_an_old_version_conflicts(world):
    stale = copy.deepcopy(world.host())
    world.merge("hosts", "h1", {"spec": {"online": True}})
    error = refused(409, "Conflict", world.update, "hosts", stale)
    assert "the object has been modified" in error.message


def test_replacing_a_custom_object_needs_its_version(world):
    host = copy.deepcopy(world.host())
    del host["metadata"]["resourceVersion"]
    refused(422, "Invalid", world.update, "hosts", host)


def test_replacing_what_is_not_there_creates_nothing(world):
    ghost = {"metadata": {"name": "ghost"}, "spec": {"online": True}}
    refused(404, "NotFound", world.update, "hosts", ghost)


def test_a_merge_patch_with_an_old_version_conflicts(world):
    version = world.host()["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "spec": {"online": True}}
    world.merge("hosts", "h1", body)
    refused(409, "Conflict", world.merge, "hosts", "h1", body)


def test_generation_moves_with_the_spec_only(world):
    world.host()
    world.merge("hosts", "h1", {"metadata": {"labels": {"a": "b"}}})
    world.merge("hosts", "h1", {"status": {"state": "on"}}, subresource="status")
    assert world.get("hosts", "h1")["metadata"]["generation"] == 1
    world.merge("hosts", "h1", {"spec": {"online": True}})
    assert world.get("hosts", "h1")["metadata"]["generation"] == 2


def test_the_main_door_does_not_touch_the_status(world):
    obj = {"metadata": {"name": "h1"}, "spec": {"online": False}, "status": {"state": "lie"}}
    assert "status" not in world.create("hosts", obj)
    world.merge("hosts", "h1", {"status": {"state": "on"}}, subresource="status")
    host = world.merge("hosts", "h1", {"spec": {"online": True}, "status": {"state": "lie"}})
    assert host["status"] == {"state": "on"}
    assert host["spec"]["online"] is True


def test_the_status_door_does_not_touch_anything_else(world):
    world.host()
    body = {
        "spec": {"online": True}, "status": {"state": "on"}, "metadata": {"labels": {"x": "y"}},
    }  # fmt: skip
    host = world.merge("hosts", "h1", body, subresource="status")
    assert host["spec"]["online"] is False
    assert "labels" not in host["metadata"]
    assert host["status"] == {"state": "on"}


def test_system_metadata_cannot_be_written(world):
    before = world.host()["metadata"]
    body = {"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 99}}
    after = world.merge("hosts", "h1", body)["metadata"]
    assert after == before


def test_a_json_patch_whose_test_fails_changes_nothing(world):
    world.host()
    patch = [
        {"op": "test", "path": "/spec/online", "value": True},
        {"op": "replace", "path": "/spec/mode", "value": "slow"},
    ]
    refused(422, "Invalid", world.json, "hosts", "h1", patch)
    assert world.get("hosts", "h1")["spec"]["mode"] == "fast"
    patch[0]["value"] = False
    assert world.json("hosts", "h1", patch)["spec"]["mode"] == "slow"


def test_a_json_patch_of_a_missing_path_is_refused(world):
    world.host()
    refused(422, "Invalid", world.json, "hosts", "h1", [{"op": "remove", "path": "/spec/nope"}])


def test_a_merge_patch_removes_with_null_and_replaces_lists(world):
    world.host(annotations={"keep": "1", "drop": "2"}, finalizers=["a/a", "b/b"])
    body = {"metadata": {"annotations": {"drop": None}, "finalizers": ["a/a"]}}
    meta = world.merge("hosts", "h1", body)["metadata"]
    assert meta["annotations"] == {"keep": "1"}
    assert meta["finalizers"] == ["a/a"]


def test_custom_objects_refuse_strategic_patches(world):
    world.host()
    refused(415, "UnsupportedMediaType", world.strategic, "hosts", "h1", {"spec": {}})


def test_a_strategic_patch_merges_containers_by_name(world):
    pod = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    world.create("pods", {"metadata": {"name": "p"}, "spec": pod})
    patch = {"spec": {"containers": [
        {"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"}, {"name": "c", "image": "3"},
    ]}}  # fmt: skip
    patched = world.strategic("pods", "p", patch)
    assert patched["spec"]["containers"] == [
        {"name": "b", "image": "2"},
        {"name": "c", "image": "3"},
    ]


def test_the_schema_fills_defaults_and_refuses_wrong_values(world):
    assert world.host()["spec"]["mode"] == "fast"
    error = refused(422, "Invalid", world.host, "h2", {"mode": "warp"})
    assert error.details["causes"][0]["field"] == "spec.mode"
    error = refused(422, "Invalid", world.merge, "hosts", "h1", {"spec": {"online": None}})
    assert error.details["causes"][0]["reason"] == "FieldValueRequired"
    refused(422, "Invalid", world.merge, "hosts", "h1", {"spec": {"online": "yes"}})


@pytest.mark.parametrize("name", ["Big", "under_score", "-x", "x" * 254])
def test_names_must_be_lower_case_subdomains(world, name):
    refused(422, "Invalid", world.host, name)


def test_label_values_must_be_labels(world):
    refused(422, "Invalid", world.host, labels={"a": "no spaces"})
    refused(422, "Invalid", world.host, labels={"a": 1})


def test_a_body_of_another_kind_is_refused(world):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
    refused(400, "BadRequest", world.create, "configmaps", body)


def test_a_dry_run_checks_everything_and_keeps_nothing(world):
    body = {"metadata": {"name": "x"}, "spec": {"online": True}}
    version = world.version
    assert world.create("hosts", body, dry_run=True)["metadata"]["uid"]
    assert not world.has("hosts", "x")
    world.host()
    world.merge("hosts", "h1", {"spec": {"online": True}}, dry_run=True)
    assert world.get("hosts", "h1")["spec"]["online"] is False
    assert int(world.version) == int(version) + 1
    refused(422, "Invalid", world.create, "hosts", {"metadata": {"name": "y"}, "spec": {}},
            dry_run=True)  # fmt: skip


def test_secrets_turn_string_data_into_data(world):
    secret = world.create("secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    assert secret["data"] == {"a": "Yg=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret
    refused(400, "BadRequest", world.merge, "secrets", "s", {"data": {"a": "no base64!"}})


def test_what_is_handed_in_is_never_changed(world):
    body = {"metadata": {"name": "x"}, "spec": {"online": True}}
    kept = copy.deepcopy(body)
    world.create("hosts", body)
    assert body == kept


def test_the_log_hears_of_each_write_once(world):
    world.writes.clear()
    world.host()
    world.merge("hosts", "h1", {"status": {"state": "x"}}, subresource="status", by=BERT)
    world.delete("hosts", "h1")
    told = [(w.verb, w.subresource, w.writer.manager, w.event.type) for w in world.writes]
    assert told == [
        ("create", "", "anna", "ADDED"),
        ("patch", "status", "bert", "MODIFIED"),
        ("delete", "", "anna", "DELETED"),
    ]
