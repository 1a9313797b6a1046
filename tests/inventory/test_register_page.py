"""Registering a server by hand, and trying its BMC first."""

from __future__ import annotations

import pytest

from inventory.models import Server
from network.models import Link
from tests import make

pytestmark = pytest.mark.django_db
URL = "/servers/register/"
TEST = "/servers/register/test/"


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


def typed(*ports, **fields):
    """What a person typed: a fake BMC, and ports as (name, mac, roles) or with switch and port."""
    data = {"name": "new-1", "labels": "role=gpu", "driver": "fake", "password": "fake", **fields}
    data |= {"ports-TOTAL_FORMS": str(max(len(ports), 1)), "ports-INITIAL_FORMS": "0"}
    for index, port in enumerate(ports):
        keys = ("name", "mac", "roles", "switch", "switch_port")
        data |= {f"ports-{index}-{key}": value for key, value in zip(keys, port, strict=False)}
    return data


@pytest.fixture
def as_admin(client, admin):
    client.force_login(admin)
    return client


def test_a_server_is_registered_with_its_ports_and_cables(as_admin):
    fabric = make.fabric()
    data = typed(
        ("nic1", "B8-3F-D2-5E-01-A1", ["boot", "tenant"], "leaf-1", "swp9"),
        ("nic2", "b8:3f:d2:5e:01:a2", ["storage"]),
        fabric=fabric.pk,
        rack="A01",
        site="lab",
        slot="3",
        provisioning_address="10.10.0.50/22",
    )
    answer = as_admin.post(URL, data, follow=True)
    assert answer.redirect_chain[-1][0] == "/servers/new-1/"
    assert "new-1 was registered" in text_of(answer)
    server = Server.objects.get(name="new-1")
    assert server.labels == {"role": "gpu"} and server.state == "enrolled"
    assert [(p.mac, p.roles) for p in server.interfaces.all()] == [
        ("b8:3f:d2:5e:01:a1", ["boot", "tenant"]),
        ("b8:3f:d2:5e:01:a2", ["storage"]),
    ]
    assert str(Link.objects.get()) == "leaf-1 swp9"


def test_errors_stand_beside_their_fields_and_what_was_typed_stays(as_admin):
    make.server("new-1")
    data = typed(
        ("nic1", "not a mac", ["boot"]), driver="redfish", address="", username="root", rack="A07"
    )
    answer = as_admin.post(URL, data)
    page = text_of(answer)
    assert answer.status_code == 422
    assert "Give the address of the BMC" in page and "Six pairs of hex digits" in page
    for kept in ('value="new-1"', 'value="not a mac"', 'value="root"', 'value="A07"'):
        assert kept in page
    assert 'aria-invalid="true"' in page
    assert Server.objects.count() == 1


def test_what_the_service_refuses_stands_beside_its_field_too(as_admin):
    make.server("new-1")
    taken = Server.objects.get().interfaces.get().mac
    data = typed(("nic1", taken, ["boot"]), provisioning_address="10.10.0.50")
    answer = as_admin.post(URL, data)
    page = text_of(answer)
    assert answer.status_code == 422
    assert "There is a server called new-1 already." in page
    assert f"{taken} belongs to another port already." in page
    assert "Give an address with its prefix" in page


def test_a_taken_switch_port_saves_nothing(as_admin):
    other = make.server("old-1")
    port = other.interfaces.get().link
    data = typed(
        ("nic1", "b8:3f:d2:5e:01:a1", ["boot"], port.switch, port.port), fabric=port.fabric_id
    )
    answer = as_admin.post(URL, data)
    assert answer.status_code == 422
    assert "has the cable of old-1 nic1" in text_of(answer)
    assert not Server.objects.filter(name="new-1").exists()


def test_a_cable_wants_its_fabric(as_admin):
    data = typed(("nic1", "b8:3f:d2:5e:01:a1", ["boot"], "leaf-1", "swp9"))
    answer = as_admin.post(URL, data)
    assert answer.status_code == 422
    assert "Say which fabric" in text_of(answer)


def test_the_password_is_never_echoed(as_admin):
    data = typed(name="Not A Name", password="s3cret-word")
    for path in (URL, TEST):
        page = as_admin.post(path, data).content.decode()
        assert "s3cret-word" not in page
        assert 'value="Not A Name"' in page


def test_ports_are_added_without_script_and_nothing_is_judged(as_admin):
    data = typed(("nic1", "b8:3f", ["boot"]), name="", add_port="1")
    page = as_admin.post(URL, data).content.decode()
    assert 'name="ports-1-mac"' in page and 'value="b8:3f"' in page
    assert "This field is required" not in page and "Six pairs" not in page


def test_the_connection_is_tried_without_saving(as_admin):
    page = text_of(as_admin.post(TEST, typed(name="")))
    assert "The BMC answers and accepts the login" in page
    page = text_of(as_admin.post(TEST, typed(password="wrong")))
    assert "The test failed" in page and "password" in page.lower()
    assert not Server.objects.exists()


def test_with_script_only_the_result_is_sent(as_admin):
    headers = {"HX-Request": "true", "HX-Target": "connection"}
    part = as_admin.post(TEST, typed(), headers=headers).content.decode()
    assert part.lstrip().startswith("<div") or "<html" not in part
    assert 'id="connection"' in part


def test_a_test_without_an_address_says_so_in_place(as_admin):
    page = text_of(as_admin.post(TEST, typed(driver="redfish")))
    assert "Address: Give the address of the BMC" in page


def test_kept_credentials_are_not_sent_to_another_address(as_admin):
    make.server("gpu-1", bmc="redfish")
    data = {"driver": "redfish", "address": "https://attacker.example.com"}
    page = text_of(as_admin.post("/servers/gpu-1/bmc/test/", data))
    assert "the kept ones are for the kept address only" in page


@pytest.mark.parametrize("role", ["support", "auditor", "owner"])
def test_others_may_not_register(client, role, request):
    client.force_login(request.getfixturevalue(role))
    assert client.get(URL).status_code == 403
    assert client.post(URL, typed()).status_code == 403
    assert client.post(TEST, typed()).status_code == 403
    assert not Server.objects.exists()
