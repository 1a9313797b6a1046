"""Lists and watches: selectors, pages, resuming, bookmarks, forgotten pasts."""

from __future__ import annotations

import asyncio

import pytest

from gpucloud.kubeapi.cluster import Selection
from gpucloud.kubeapi.errors import ApiError
from gpucloud.kubeapi.store import MemoryStore
from gpucloud.kubeapi.watch import Watch
from tests.kubeapi.builders import World


@pytest.fixture
def world():
    return World()


def listed(world, **selection):
    resource = world.cluster.registry.find("hosts")
    return world.cluster.list(resource, "lab", Selection(**selection))


def names(found):
    return [obj["metadata"]["name"] for obj in found["items"]]


async def watched(world, labels="", fields="", since="", timeout=0.02, **options):
    resource = world.cluster.registry.find("hosts")
    match = world.cluster.match(resource, labels, fields)
    wanted = Watch(resource, match, "lab", since, timeout=timeout, **options)
    seen = []
    async for event in world.cluster.watch(wanted):
        seen.append((event.type, event.object["metadata"].get("name", "")))
    return seen


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("role=gpu", ["b"]),
        ("role==gpu", ["b"]),
        ("role!=gpu", ["a", "c"]),
        ("role in (gpu, cpu)", ["a", "b"]),
        ("role notin (gpu,cpu)", ["c"]),
        ("role", ["a", "b"]),
        ("!role", ["c"]),
        ("role,role!=cpu", ["b"]),
        ("size>3", ["b"]),
        ("size<3", ["a"]),
        ("role in (gpu,cpu),size>1", ["a", "b"]),
        ("", ["a", "b", "c"]),
    ],
)
def test_label_selectors(world, selector, expected):
    world.host("a", labels={"role": "cpu", "size": "2"})
    world.host("b", labels={"role": "gpu", "size": "8"})
    world.host("c")
    assert names(listed(world, labels=selector)) == expected


@pytest.mark.parametrize("selector", ["a in", "=x", "a=(b", "a in (b", "role in gpu"])
def test_a_selector_that_cannot_be_read_is_refused(world, selector):
    with pytest.raises(ApiError) as caught:
        listed(world, labels=selector)
    assert caught.value.code == 400


def test_field_selectors_know_name_and_namespace_only(world):
    world.host("a")
    world.host("b")
    assert names(listed(world, fields="metadata.name=b")) == ["b"]
    assert names(listed(world, fields="metadata.name!=b,metadata.namespace=lab")) == ["a"]
    with pytest.raises(ApiError, match="field label not supported: spec.online"):
        listed(world, fields="spec.online=true")


def test_pages_follow_one_another(world):
    for name in "abcde":
        world.host(name)
    first = listed(world, limit=2)
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = listed(world, limit=2, continue_from=first["metadata"]["continue"])
    third = listed(world, limit=2, continue_from=second["metadata"]["continue"])
    assert names(second) + names(third) == ["c", "d", "e"]
    assert "continue" not in third["metadata"]
    assert third["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_page_of_a_forgotten_past_is_gone():
    world = World(MemoryStore(window=3))
    world.host("a")
    world.host("b")
    token = listed(world, limit=1)["metadata"]["continue"]
    for name in "cdefg":
        world.host(name)
    with pytest.raises(ApiError) as caught:
        listed(world, continue_from=token)
    assert caught.value.code == 410


def test_a_list_from_the_future_is_refused(world):
    with pytest.raises(ApiError) as caught:
        listed(world, version="99999")
    assert caught.value.code == 504


async def test_a_watch_without_a_version_starts_with_what_there_is(world):
    world.host("a")
    assert await watched(world) == [("ADDED", "a")]


async def test_a_watch_resumes_after_its_version(world):
    version = world.host("a")["metadata"]["resourceVersion"]
    world.merge("hosts", "a", {"spec": {"online": True}})
    world.config("noise")
    world.host("b")
    world.delete("hosts", "a")
    seen = await watched(world, since=version)
    assert seen == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_follows_what_happens(world):
    task = asyncio.create_task(watched(world, since=world.version, timeout=0.1))
    await asyncio.sleep(0.01)
    world.host("late")
    assert await task == [("ADDED", "late")]


async def test_a_selector_turns_changes_into_coming_and_going(world):
    version = world.version
    world.host("a", labels={"role": "gpu"})
    world.merge("hosts", "a", {"metadata": {"labels": {"role": "cpu"}}})
    world.merge("hosts", "a", {"metadata": {"labels": {"role": "gpu"}}})
    seen = await watched(world, labels="role=gpu", since=version)
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_a_forgotten_past_ends_the_watch_with_410():
    world = World(MemoryStore(window=3))
    for name in "abcdef":
        world.host(name)
    resource = world.cluster.registry.find("hosts")
    wanted = Watch(resource, lambda _: True, "lab", since="1")
    events = [event async for event in world.cluster.watch(wanted)]
    assert [event.type for event in events] == ["ERROR"]
    assert events[0].object["code"] == 410
    assert events[0].object["reason"] == "Expired"


async def test_a_watch_from_the_future_must_list_again(world):
    resource = world.cluster.registry.find("hosts")
    wanted = Watch(resource, lambda _: True, "lab", since="99999", timeout=0.05)
    events = [event async for event in world.cluster.watch(wanted)]
    assert events[0].object["code"] == 410


async def test_a_slow_watcher_that_falls_out_of_the_window_is_told():
    world = World(MemoryStore(window=5))
    resource = world.cluster.registry.find("hosts")
    wanted = Watch(resource, lambda _: True, "lab", since=world.version)
    events = world.cluster.watch(wanted)
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    world.host("first")
    assert (await first).type == "ADDED"
    for number in range(10):
        world.host(f"more-{number}")
    assert (await anext(events)).type == "ERROR"
    await events.aclose()


async def test_a_bookmark_marks_the_place_before_the_end(world):
    world.host("a")
    version = world.version
    world.config("noise")
    resource = world.cluster.registry.find("hosts")
    wanted = Watch(resource, lambda _: True, "lab", version, bookmarks=True, timeout=0.02)
    events = [event async for event in world.cluster.watch(wanted)]
    assert [event.type for event in events] == ["BOOKMARK"]
    assert events[0].object["metadata"]["resourceVersion"] == world.version


async def test_a_watcher_that_leaves_is_forgotten(world):
    await watched(world)
    assert not world.cluster.store._wakers
