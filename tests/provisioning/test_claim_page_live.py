"""The claim's page moves by itself: what the socket of an open page gets."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now

from gpucloud.engine.advance import advance
from gpucloud.live import fragments, hub
from gpucloud.models import Step
from tests import make
from tests.live.conftest import page, redis_url, valkey  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
WAIT = 15


@pytest.fixture(autouse=True)
def redis(settings, redis_url):  # noqa: F811
    settings.REDIS_URL = redis_url
    fragments._gather.cache_clear()
    yield
    fragments._gather.cache_clear()


async def heard() -> None:
    for _ in range(100):
        if hub.Hub.current().heard:
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)


async def until(socket, words: str) -> str:
    """What the socket gets, until one message holds the words."""
    for _ in range(20):
        text = str(await socket.receive_from(timeout=WAIT))
        if words in text:
            return text
    raise AssertionError(words)


def look(claim) -> None:
    Step.objects.filter(current=True).update(next_try_at=Now())
    advance("operation", claim.operations.get().uid)


def begun():
    """A claim that is about to select, a free server, and the people of its tenant."""
    people = make.user("live-support", "support"), make.user("live-owner", default="owner")
    claim = make.claim("one-a", cluster=make.cluster("one", state="scheduling"))
    make.server("server-1", gpus=1)
    make.operation(claim)
    return claim, *people


async def test_a_step_that_moves_changes_the_timeline_without_a_reload(page):  # noqa: F811
    claim, support, _ = await sync_to_async(begun)()
    socket = await page(support, f"claim:{claim.uid}")
    assert (await socket.connect(timeout=WAIT))[0]
    first = await until(socket, "timeline")
    assert "Step 1 of 9" in first
    await heard()
    await sync_to_async(look)(claim)
    text = await until(socket, "server-1 chosen from 1 that fit")
    assert f'id="claim-{claim.uid}-timeline"' in text
    assert "Step 2 of 9" in text
    assert "csrfmiddlewaretoken" not in text and "<form" not in text


async def test_the_tenant_gets_the_same_step_in_its_own_words(page):  # noqa: F811
    claim, _, owner = await sync_to_async(begun)()
    socket = await page(owner, f"claim:{claim.uid}")
    assert (await socket.connect(timeout=WAIT))[0]
    await until(socket, "timeline")
    await heard()
    await sync_to_async(look)(claim)
    text = await until(socket, "Step 2 of 9")
    assert "A healthy, wiped fake.gpu that fits your claim." in text
    assert "chosen from" not in text
