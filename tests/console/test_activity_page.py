"""The feed: everything for people of the platform, their own for members of tenants."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpucloud import history
from gpucloud.models import Heartbeat
from tests import make

pytestmark = pytest.mark.django_db
PAGE = "/activity/"


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def events(db):
    """One event of a server, and one of a claim of each of two tenants."""
    server = make.server("gpu-1")
    history.record(server, "offer", "engine", "gpu-1 is on offer.")
    mine = make.claim("mine")
    history.record(mine, "request", "owner", "mine asks for one gpu.")
    history.record(mine, "fail", "engine", "leaf-1 says no.", code="QUOTA_EXCEEDED")
    theirs = make.claim("theirs", cluster=make.cluster("two", make.tenant("tenant1")))
    history.record(theirs, "request", "owner1", "theirs asks for one gpu.")
    return server, mine, theirs


def test_people_of_the_platform_see_everything(client, auditor, events):
    client.force_login(auditor)
    page = text_of(client.get(PAGE))
    for words in ("gpu-1 is on offer.", "mine asks", "theirs asks", "QUOTA_EXCEEDED"):
        assert words in page
    assert f"/o/{events[0].uid}/" in page


def test_members_see_their_tenants_events_only(client, owner, events):
    client.force_login(owner)
    page = text_of(client.get(PAGE))
    assert "mine asks" in page
    for hidden in ("gpu-1 is on offer", "theirs asks", "tenant1", "Processes"):
        assert hidden not in page


def test_the_feed_is_searched_and_filtered_by_kind(client, admin, events):
    client.force_login(admin)
    page = text_of(client.get(f"{PAGE}?kind=server"))
    assert "gpu-1 is on offer." in page and "mine asks" not in page
    page = text_of(client.get(f"{PAGE}?q=owner1"))
    assert "theirs asks" in page and "mine asks" not in page
    page = text_of(client.get(f"{PAGE}?q=QUOTA"))
    assert "leaf-1 says no." in page and "theirs asks" not in page


def test_one_objects_events_are_shown_alone(client, admin, events):
    client.force_login(admin)
    page = text_of(client.get(f"{PAGE}?object={events[1].uid}"))
    assert "mine asks" in page and "theirs asks" not in page


def test_another_tenants_object_gives_an_empty_feed(client, owner, events):
    client.force_login(owner)
    page = text_of(client.get(f"{PAGE}?object={events[2].uid}"))
    assert "theirs" not in page


def test_the_newest_stand_first_and_pages_follow(client, admin):
    server = make.server("gpu-1")
    for number in range(60):
        history.record(server, "offer", "engine", f"Change {number}.")
    client.force_login(admin)
    page = text_of(client.get(PAGE))
    assert page.index("Change 59.") < page.index("Change 58.")
    assert "Change 5." not in page and "page=2" in page
    assert "Change 5." in text_of(client.get(f"{PAGE}?page=2"))


def test_a_silent_process_is_marked(client, support):
    Heartbeat.objects.create(name="sweep")
    Heartbeat.objects.create(name="sealer", at=timezone.now() - timedelta(minutes=2))
    client.force_login(support)
    page = text_of(client.get(PAGE))
    assert 'data-tone="good">Lives' in page and 'data-tone="bad">Silent' in page
    part = client.get(PAGE, headers={"HX-Request": "true", "HX-Target": "processes"})
    assert "<html" not in part.content.decode() and "sealer" in part.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_events(client, admin, events):
    client.force_login(admin)

    def asked(count: int) -> int:
        for number in range(count):
            history.record(make.server(), "offer", "engine", f"Change {number}.")
        with CaptureQueriesContext(connection) as queries:
            assert client.get(PAGE).status_code == 200
        return len(queries)

    few = asked(1)
    assert asked(6) == few
    assert few <= 20


def test_a_permanent_link_leads_to_the_page_for_those_who_may_see_it(client, admin, owner, events):
    server, mine, theirs = events
    client.force_login(admin)
    assert client.get(f"/o/{server.uid}/").headers["Location"] == "/servers/gpu-1/"
    client.force_login(owner)
    assert client.get(f"/o/{mine.uid}/").headers["Location"] == "/claims/default/mine/"
    assert client.get(f"/o/{theirs.uid}/").status_code == 404
    assert client.get(f"/o/{server.uid}/").status_code == 404


def test_a_tenant_reads_the_catalogues_sentence_and_never_the_drivers(client, owner):
    claim = make.claim()
    secret = "leaf-7 swp12 reads VLAN 4000"
    history.record(claim, "fail", "engine", secret, code="PORT_MISMATCH")
    client.force_login(owner)
    page = client.get("/activity/").content.decode()
    assert "leaf-7" not in page
    assert "A port is not in the segment that was asked" in page
    assert "PORT_MISMATCH" not in client.get("/activity/?q=leaf-7").content.decode()
