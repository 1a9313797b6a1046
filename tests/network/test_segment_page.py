"""One segment: members wanted beside observed, addresses, clusters, and reading the switch."""

from __future__ import annotations

import pytest
from django.utils import timezone

from network.drivers.fake import FakeFabric
from network.models import Address, Link, Segment
from network.services import segments
from tests import make

pytestmark = pytest.mark.django_db


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def claim(db):
    made = make.claim("one-gpu", "ready", server=make.server("gpu-1", "held"))
    make.attachment(made.server, made.cluster.segment)
    return made


URL = "/networks/lab/default-one/"


def read_as(server, vlan) -> None:
    Link.objects.filter(interface__server=server).update(seen_vlan=vlan, seen_at=timezone.now())


def test_members_are_shown_wanted_beside_observed(client, admin, claim):
    client.force_login(admin)
    read_as(claim.server, claim.cluster.segment.vlan)
    page = text_of(client.get(URL))
    assert "/servers/gpu-1/" in page and "leaf-1 swp1" in page and "Inside" in page
    read_as(claim.server, 199)
    page = text_of(client.get(URL))
    assert "VLAN 199" in page and "1 not as wanted" in page


def test_addresses_and_clusters_lead_to_their_holders(client, admin, claim):
    segment = claim.cluster.segment
    Address.objects.create(
        segment=segment, address="192.168.101.10", purpose="node", owner_uid=claim.uid
    )
    client.force_login(admin)
    page = text_of(client.get(URL))
    assert "192.168.101.10" in page and "/claims/default/one-gpu/" in page
    assert "/clusters/default/one/" in page
    assert "<b>1</b> of 254" in page


def test_reading_the_switch_keeps_what_was_read(client, admin, claim):
    segment = claim.cluster.segment
    client.force_login(admin)
    answer = client.post(f"{URL}read/", follow=True)
    assert answer.status_code == 200
    assert "as read now" in text_of(answer)
    segment.refresh_from_db()
    assert segment.seen_at is not None
    assert Link.objects.get(interface__server=claim.server).seen_at is not None


def test_a_wanted_segment_that_is_found_on_the_fabric_counts_as_applied(client, admin, claim):
    segment = claim.cluster.segment
    segments.ensure(segment, "engine")
    Segment.objects.filter(pk=segment.pk).update(state="wanted")
    client.force_login(admin)
    client.post(f"{URL}read/")
    segment.refresh_from_db()
    assert segment.state == "applied"


def test_a_switch_that_does_not_answer_is_told_in_place(client, admin, claim, monkeypatch):
    from gpucloud.drivers import DriverError

    def silent(self, segment):
        raise DriverError("leaf-1 does not answer.", code="SWITCH_UNREACHABLE")

    monkeypatch.setattr(FakeFabric, "observe", silent)
    client.force_login(admin)
    answer = client.post(f"{URL}read/")
    page = text_of(answer)
    assert answer.status_code == 502
    assert "leaf-1 does not answer." in page and "SWITCH_UNREACHABLE" in page
    assert "nothing was changed" in page and "one-gpu" not in page.split("Members")[0]


def test_a_port_that_nobody_wants_in_a_tenants_segment_is_marked(client, admin, claim):
    segment = claim.cluster.segment
    Segment.objects.filter(pk=segment.pk).update(
        seen={
            "ports": [{"switch": "leaf-9", "port": "swp7", "access": segment.vlan, "tagged": []}]
        },
        seen_at=timezone.now(),
    )
    client.force_login(admin)
    page = text_of(client.get(URL))
    assert "leaf-9 swp7" in page and "No cable of ours is recorded there" in page


def test_a_tenant_sees_its_segment_without_ports_and_buttons(client, owner, claim):
    read_as(claim.server, 199)
    client.force_login(owner)
    page = text_of(client.get(URL))
    assert "/claims/default/one-gpu/" in page and "Elsewhere" in page
    for hidden in (
        "leaf-1",
        "swp1",
        "gpu-1<",
        "VLAN 199",
        "Read the switch now",
        "/servers/gpu-1/",
    ):
        assert hidden not in page
    assert client.post(f"{URL}read/").status_code == 403


@pytest.mark.parametrize("role", ["support", "auditor"])
def test_support_and_auditors_may_look_and_not_read_the_switch(client, claim, role, request):
    client.force_login(request.getfixturevalue(role))
    page = text_of(client.get(URL))
    assert "leaf-1 swp1" in page and "Read the switch now" not in page
    assert client.post(f"{URL}read/").status_code == 403


def test_foreign_and_absent_segments_are_404_alike(client, owner1, claim):
    client.force_login(owner1)
    for path in (URL, "/networks/lab/nothing/", "/networks/lab/provisioning/"):
        assert client.get(path).status_code == 404
        assert client.post(f"{path}read/").status_code == 404
    assert client.get(f"/o/{claim.cluster.segment.uid}/").status_code == 404


def test_a_gone_segment_is_reachable_by_its_permanent_link_only(client, admin):
    segment = make.segment("old", state="gone")
    make.segment("old", make.tenant("tenant1"))
    client.force_login(admin)
    page = text_of(client.get(f"/o/{segment.uid}/"))
    assert "Gone" in page and "Read the switch now" not in page
    assert 'of tenant <a href="/tenants/tenant1/"' in text_of(client.get("/networks/lab/old/"))
