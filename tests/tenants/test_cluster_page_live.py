"""The cluster's page moves by itself, also when only one of its claims has moved."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from gpucloud.models import Step
from tests import make
from tests.live.conftest import page, redis_url, valkey  # noqa: F401
from tests.provisioning.test_claim_page_live import WAIT, begun, heard, look, redis, until  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_claims_step_changes_the_clusters_nodes_without_a_reload(page):  # noqa: F811
    claim, support, _ = await sync_to_async(begun)()
    cluster = claim.cluster
    socket = await page(support, f"cluster:{cluster.uid}")
    assert (await socket.connect(timeout=WAIT))[0]
    assert "server-1" not in await until(socket, f"cluster-{cluster.uid}-nodes")
    await heard()
    await sync_to_async(look)(claim)
    # Between the two the server is bound and Select not recorded yet.
    text = await until(socket, "Configuring")
    assert "server-1" in text
    assert "csrfmiddlewaretoken" not in text and "<form" not in text


async def test_a_foreign_reader_gets_nothing(page):  # noqa: F811
    claim, _, _ = await sync_to_async(begun)()
    stranger = await sync_to_async(make.user)("live-stranger", tenant1="owner")
    socket = await page(stranger, f"cluster:{claim.cluster.uid}", f"claim:{claim.uid}")
    assert (await socket.connect(timeout=WAIT))[0]
    for _ in range(2):
        assert "refused" in str(await socket.receive_from(timeout=WAIT))
    assert not await sync_to_async(Step.objects.filter(state="done").exists)()
