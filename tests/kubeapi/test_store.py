"""The SQLite store: what was answered is there after the process died."""

from __future__ import annotations

from gpucloud.kubeapi.sqlite import SqliteStore
from tests.kubeapi.builders import World


def test_objects_versions_and_window_survive(tmp_path):
    world = World(SqliteStore(tmp_path / "objects.sqlite"))
    world.host("a")
    world.host("b")
    since = int(world.version)
    world.merge("hosts", "a", {"spec": {"online": True}})
    world.delete("hosts", "b")
    # No close: the process is as good as killed.
    again = World(SqliteStore(tmp_path / "objects.sqlite"))
    assert again.version == world.version
    assert again.get("hosts", "a") == world.get("hosts", "a")
    assert not again.has("hosts", "b")
    replayed = [(e.type, e.key.name) for e in again.cluster.store.events(since)]
    assert replayed == [("MODIFIED", "a"), ("DELETED", "b")]
    assert again.cluster.registry.find("ho").kind == "Host"


def test_the_window_is_bounded_on_disk_too(tmp_path):
    world = World(SqliteStore(tmp_path / "objects.sqlite", window=4))
    for name in "abcdef":
        world.host(name)
    again = SqliteStore(tmp_path / "objects.sqlite", window=4)
    assert len(again.events(0)) == 4
    assert again.oldest == world.cluster.store.oldest == again.revision - 4


def test_a_deletion_that_is_the_last_write_still_counts(tmp_path):
    world = World(SqliteStore(tmp_path / "objects.sqlite", window=1))
    world.host("a")
    world.delete("hosts", "a")
    assert SqliteStore(tmp_path / "objects.sqlite", window=1).revision == int(world.version)
