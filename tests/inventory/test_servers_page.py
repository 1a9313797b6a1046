"""The list of servers, as people of the platform see it."""

from __future__ import annotations

import pytest
from django.test.utils import CaptureQueriesContext

from tests import make

pytestmark = pytest.mark.django_db
LIST = "/servers/"


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


def test_every_row_says_state_power_claim_tenant_and_segment(client, admin):
    segment = make.segment("blue", make.tenant("default"))
    claim = make.claim("one-gpu", "ready")
    make.attachment(claim.server, segment)
    make.server("free-1", gpus=2)
    client.force_login(admin)
    page = text_of(client.get(LIST))
    assert "Provisioned" in page and "one-gpu" in page and "blue</a> · VLAN 101" in page
    assert "2× H100" in page and "Available" in page


def test_a_server_being_installed_says_how_far(client, admin):
    claim = make.claim(state="provisioning")
    operation = make.operation(claim, at="install")
    from gpucloud.models import Step

    Step.objects.filter(owner_uid=operation.uid, current=True).update(percent=61, state="waiting")
    client.force_login(admin)
    assert "Install 61 %" in text_of(client.get(LIST))


def test_a_stopped_install_is_called_failed(client, admin):
    claim = make.claim(state="failed", code="INSTALL_FAILED")
    make.operation(claim, at="install", state="failed")
    client.force_login(admin)
    assert "Install failed" in text_of(client.get(LIST))


@pytest.mark.parametrize(
    ("query", "shown", "absent"),
    [
        ("q=cpu-1", "cpu-1", "gpu-1"),
        ("q=SN-gpu-1", "gpu-1", "cpu-1"),
        ("state=enrolled", "new-1", "gpu-1"),
        ("role=cpu", "cpu-1", "gpu-1"),
        ("flag=maintenance", "cpu-1", "gpu-1"),
        ("flag=not-clean", "new-1", "cpu-1"),
        ("power=on", "cpu-1", "gpu-1"),
        ("provider=fake&role=cpu", "cpu-1", "new-1"),
    ],
)
def test_search_and_filters_come_from_the_address(client, admin, query, shown, absent):
    make.provider()
    make.server("gpu-1")
    make.server("cpu-1", role="cpu", maintenance=True, power="on")
    make.server("new-1", "enrolled")
    client.force_login(admin)
    page = client.get(f"{LIST}?{query}").content.decode()
    assert f"/servers/{shown}/" in page
    assert f"/servers/{absent}/" not in page


def test_a_server_found_by_two_ports_is_one_row(client, admin):
    from inventory.models import Interface

    server = make.server("gpu-1")
    Interface.objects.create(server=server, name="nic2", mac="52:54:00:00:00:99", roles=["storage"])
    client.force_login(admin)
    assert client.get(f"{LIST}?q=52:54").content.decode().count('href="/servers/gpu-1/"') == 1


def test_retired_servers_are_shown_only_when_asked_for(client, admin):
    make.server("old-1", "retired")
    client.force_login(admin)
    assert "old-1" not in client.get(LIST).content.decode()
    assert "old-1" in client.get(f"{LIST}?state=retired").content.decode()


def test_an_unknown_filter_value_is_ignored_and_said(client, admin):
    make.server("gpu-1")
    client.force_login(admin)
    page = text_of(client.get(f"{LIST}?state=melted"))
    assert "“melted” is not known here" in page and "gpu-1" in page


def test_capacity_is_counted(client, admin):
    make.server("a", gpus=4)
    make.claim(state="ready", server=make.server("b", "held", gpus=4))
    make.server("c", "failed")
    client.force_login(admin)
    page = text_of(client.get(LIST, headers={"HX-Request": "true", "HX-Target": "server-figures"}))
    assert "<html" not in page
    assert "<b>1</b> of 3" in page
    assert "<b>4</b> of 8" in page
    assert "1 failed, 0 in maintenance or quarantine" in page


def test_the_number_of_queries_does_not_grow_with_the_servers(client, admin, connection_of_tests):
    client.force_login(admin)

    def asked(count: int) -> int:
        for _ in range(count):
            make.claim(state="ready")
            make.server(gpus=2)
        with CaptureQueriesContext(connection_of_tests) as queries:
            assert client.get(LIST).status_code == 200
        return len(queries)

    asked(1)
    few = asked(1)
    assert asked(6) == few
    assert few <= 32


@pytest.fixture
def connection_of_tests():
    from django.db import connection

    return connection


def test_tenants_have_no_such_page(client, owner):
    client.force_login(owner)
    assert client.get(LIST).status_code == 404


def test_only_those_who_may_register_see_the_button(client, admin, support, auditor):
    for user, sees in ((admin, True), (support, False), (auditor, False)):
        client.force_login(user)
        assert ("/servers/register/" in client.get(LIST).content.decode()) is sees


def test_an_empty_list_says_what_it_is_and_what_to_do(client, admin):
    client.force_login(admin)
    page = text_of(client.get(LIST))
    assert "No servers yet" in page and "Register server" in page
