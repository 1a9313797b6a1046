"""The lanes: who is in which segment, for people of the platform and for tenants."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from network.models import Attachment, Link
from tests import make

pytestmark = pytest.mark.django_db
PAGE = "/networks/"


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


def lane(page: str, name: str) -> str:
    """The part of the page that is this segment's lane."""
    found = re.search(rf'<section class="lane"(?:(?!</section>).)*{name} · VLAN.*?</section>', page)
    assert found, f"no lane {name}"
    return found.group(0)


def seat(lane_text: str, name: str) -> str:
    """The box of an endpoint in a lane."""
    boxes = re.findall(r'<li class="endpoint".*?</li>', lane_text)
    return next((box for box in boxes if f">{name}<" in box), "")


def read_as(server, vlan, **fields) -> None:
    Link.objects.filter(interface__server=server).update(
        seen_vlan=vlan, seen_at=timezone.now(), **fields
    )


@pytest.fixture
def page(client, admin):
    client.force_login(admin)
    return lambda: text_of(client.get(PAGE))


def test_a_parked_server_stands_where_it_was_read(page):
    server = make.server("free-1")
    read_as(server, 10)
    box = seat(lane(page(), "provisioning"), "free-1")
    assert "available, off" in box and "data-state" not in box


def test_a_server_nobody_has_read_is_only_expected(page):
    server = make.server("free-1")
    read_as(server, None)
    box = seat(lane(page(), "provisioning"), "free-1")
    assert 'data-state="planned"' in box and "not read yet" in box


def test_an_install_runs_in_provisioning_and_is_expected_in_the_tenants_lane(page):
    claim = make.claim(state="provisioning", server=make.server("gpu-1", "held"))
    make.operation(claim, at="install")
    read_as(claim.server, 10)
    text = page()
    assert 'data-state="running"' in seat(lane(text, "provisioning"), "gpu-1")
    box = seat(lane(text, "default-one"), "gpu-1")
    assert 'data-state="planned"' in box and "Move follows" in box


def test_a_moving_server_stands_in_quarantine_and_on_its_way(page):
    claim = make.claim(state="provisioning", server=make.server("gpu-1", "held"))
    make.operation(claim, at="move")
    read_as(claim.server, 4000)
    text = page()
    assert 'data-state="moving"' in seat(lane(text, "quarantine"), "gpu-1")
    assert 'data-state="moving"' in seat(lane(text, "default-one"), "gpu-1")
    assert seat(lane(text, "provisioning"), "gpu-1") == ""


def test_a_port_that_is_not_where_we_put_it_drifts_and_stands_first(page):
    claim = make.claim(state="ready", server=make.server("gpu-1", "held"))
    make.attachment(claim.server, claim.cluster.segment)
    read_as(claim.server, 199)
    text = page()
    box = seat(lane(text, "default-one"), "gpu-1")
    assert 'data-state="drift"' in box and "leaf-1 swp1 reads VLAN 199" in box
    assert '<span class="badge" data-tone="warn">Drift</span>' in text
    rows = re.findall(r'<th scope="row" class="id">(.*?)</th>', text)
    assert rows[0] == "leaf-1 swp1"


def test_a_shared_endpoint_spans_the_lanes_that_it_reaches(page):
    endpoint = make.shared_endpoint("knode-1")
    port = endpoint.interfaces.get()
    for name, reached in (("blue", True), ("green", False), ("red", True)):
        segment = make.segment(name, make.tenant(name))
        if reached:
            Attachment.objects.create(
                interface=port, segment=segment, mode="trunk", state="applied", observed=True
            )
    text = page()
    box = re.search(r'<div class="endpoint shared" style="--at:(\d+);--for:2">', text)
    assert box and "in blue, red" in text
    # Those that it reaches are neighbours, whatever stands between them by number.
    names = re.findall(r'href="/networks/lab/([a-z]+)/">[a-z]+ · VLAN', text)
    assert names == ["provisioning", "quarantine", "blue", "red", "green"]


def test_a_tenant_sees_its_own_segment_and_claims_and_nothing_beneath(client, owner):
    claim = make.claim("one-gpu", "ready", server=make.server("gpu-1", "held"))
    make.attachment(claim.server, claim.cluster.segment)
    read_as(claim.server, 199)
    make.segment("theirs", make.tenant("tenant1"))
    make.server("free-1")
    client.force_login(owner)
    text = text_of(client.get(PAGE))
    box = seat(lane(text, "default-one"), "one-gpu")
    assert "/claims/default/one-gpu/" in box and "not as wanted" in box
    for hidden in ("theirs", "provisioning ·", "quarantine", "gpu-1", "free-1", "leaf-1", "199"):
        assert hidden not in text


def test_a_stranger_is_told_that_there_is_nothing(client, owner1):
    make.cluster()
    client.force_login(owner1)
    text = text_of(client.get(PAGE))
    assert "No segments yet" in text and "default-one" not in text


def test_the_number_of_queries_does_not_grow_with_the_servers(client, admin):
    client.force_login(admin)

    def asked(count: int) -> int:
        for _ in range(count):
            claim = make.claim(state="ready")
            make.attachment(claim.server, claim.cluster.segment)
            make.server()
        with CaptureQueriesContext(connection) as queries:
            assert client.get(PAGE).status_code == 200
        return len(queries)

    asked(1)
    few = asked(1)
    assert asked(6) == few
    assert few <= 30


def test_live_lanes_are_drawn_for_each_class_of_reader(admin, owner, owner1):
    from gpucloud.live.fragments import ViewClass, registry

    claim = make.claim("one-gpu", "ready", server=make.server("gpu-1", "held"))
    make.attachment(claim.server, claim.cluster.segment)
    fragment = registry()["fabric-lanes"]
    fabric = claim.cluster.segment.fabric
    assert fragment.load(owner1, fabric.uid) is None
    for user, sees, not_seen in ((admin, "gpu-1", "<form"), (owner, "one-gpu", "leaf-1")):
        found = fragment.load(user, fabric.uid)
        text = fragment.render(found, ViewClass.of(user))
        assert sees in text and not_seen not in text
        assert f'id="network-{fabric.uid}-lanes"' in text
