"""Pages of providers: what is shown, checked, and asked by a form made from the driver."""

from __future__ import annotations

import pytest

from gpucloud import vault
from inventory.models import KubernetesConnection
from provisioning.models import NodeProvider
from tests import make

pytestmark = pytest.mark.django_db


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def test_the_list_shows_driver_types_and_the_last_check(client, support, django_assert_num_queries):
    make.node_type("gpu")
    make.provider("second")
    html = get(client, support, "/providers/")
    assert "second" in html and "Not checked" in html
    with django_assert_num_queries(4):
        client.get("/providers/")


def test_providers_are_not_for_tenants(client, owner):
    make.provider()
    for path in ("/providers/", "/providers/fake/"):
        get(client, owner, path, 404)
    get(client, owner, "/providers/new/", 403)


def test_the_page_shows_types_with_what_is_there_of_them(client, support):
    make.node_type("gpu")
    make.server()
    make.server(state="failed")
    html = get(client, support, "/providers/fake/")
    assert "1 available, 1 out of service" in html
    assert "fake.gpu" in html
    assert "Check connection" not in html


def test_a_check_says_what_it_found(client, operator, monkeypatch):
    make.provider()
    monkeypatch.setattr("provisioning.drivers.fake.FakeProvider.check", lambda self: [])
    client.force_login(operator)
    html = client.post("/providers/fake/check/", follow=True).content.decode()
    assert "fake answers and may do what it needs" in html and "Answers" in html
    monkeypatch.setattr(
        "provisioning.drivers.fake.FakeProvider.check", lambda self: ["The API refused the token."]
    )
    html = client.post("/providers/fake/check/", follow=True).content.decode()
    assert "The API refused the token." in html and "then check again" in html


def test_support_may_look_but_not_check(client, support):
    make.provider()
    client.force_login(support)
    answer = client.post("/providers/fake/check/")
    assert answer.status_code == 403 and "platform operator" in answer.content.decode()


def test_the_form_asks_what_the_driver_needs(client, operator):
    html = get(client, operator, "/providers/new/")
    assert "Metal3" in html
    html = get(client, operator, "/providers/new/?driver=metal3")
    assert "Namespace of the BareMetalHosts" in html and 'name="config_kubeconfig"' in html
    assert "There is no driver called oracle." in get(
        client, operator, "/providers/new/?driver=oracle"
    )


def test_a_secret_is_written_and_never_shown(client, operator):
    client.force_login(operator)
    sent = {"driver": "metal3", "name": "m3", "config_namespace": "metal3"}
    answer = client.post("/providers/new/", {**sent, "config_kubeconfig": "very-secret"})
    assert answer["Location"] == "/providers/m3/"
    provider = NodeProvider.objects.get()
    assert provider.config == {"namespace": "metal3"}
    assert vault.get("provider", provider.uid, "credentials") == {"kubeconfig": "very-secret"}
    for path in ("/providers/m3/", "/providers/m3/edit/"):
        assert "very-secret" not in get(client, operator, path)
    client.post("/providers/m3/edit/", {"config_namespace": "other", "display_name": "Hosts"})
    provider.refresh_from_db()
    assert (provider.config, provider.display_name) == ({"namespace": "other"}, "Hosts")
    assert vault.get("provider", provider.uid, "credentials") == {"kubeconfig": "very-secret"}


def test_what_is_missing_stands_beside_its_field_and_what_was_typed_is_kept(client, operator):
    client.force_login(operator)
    answer = client.post(
        "/providers/new/", {"driver": "metal3", "name": "Bad Name", "config_namespace": "mine"}
    )
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="Bad Name"' in html and 'value="mine"' in html
    answer = client.post("/providers/new/", {"driver": "metal3", "name": "m3"})
    assert answer.status_code == 422 and "This setting is required." in answer.content.decode()


def test_a_connection_may_give_the_secret(client, operator):
    row = KubernetesConnection.objects.create(name="host")
    vault.put("connection", row.uid, "kubeconfig", "from the connection")
    client.force_login(operator)
    client.post("/providers/new/", {"driver": "metal3", "name": "m3", "connection": "host"})
    assert NodeProvider.objects.get().connection == row
