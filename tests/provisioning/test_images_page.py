"""Pages of OS images: list, detail, form, removal."""

from __future__ import annotations

import pytest

from provisioning.models import OSImage
from tests import make

pytestmark = pytest.mark.django_db
SENT = {
    "name": "ubuntu",
    "display_name": "Ubuntu 24.04",
    "url": "https://images.example.com/ubuntu.qcow2",
    "checksum_type": "sha256",
    "checksum": "ab" * 32,
    "format": "qcow2",
}


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def test_images_and_what_uses_them_are_shown(client, owner, django_assert_num_queries):
    make.node_type("gpu")
    make.claim("one-a", "ready")
    assert "qcow2" in get(client, owner, "/images/")
    html = get(client, owner, "/images/ubuntu/")
    assert "fake.gpu" in html and "one-a" in html and "https://images.example.com" in html
    assert "Edit" not in html
    with django_assert_num_queries(5):
        client.get("/images/")


def test_an_image_is_added(client, operator):
    client.force_login(operator)
    assert client.post("/images/new/", SENT)["Location"] == "/images/ubuntu/"
    assert OSImage.objects.get().checksum == "ab" * 32


def test_a_wrong_checksum_and_url_stand_beside_their_fields(client, operator):
    client.force_login(operator)
    wrong = {**SENT, "checksum": "zz", "url": "ftp://x"}
    answer = client.post("/images/new/", wrong)
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "64 hexadecimal digits" in html and "Give an http or https URL" in html
    assert 'value="ftp://x"' in html


def test_an_image_in_use_is_not_changed_under_a_claim(client, operator):
    claim = make.claim("one-a", "provisioning")
    client.force_login(operator)
    answer = client.post("/images/ubuntu/edit/", {**SENT, "checksum": "cd" * 32})
    assert answer.status_code == 422
    assert f"{claim} is being provisioned with ubuntu" in answer.content.decode()
    assert "cd" * 32 in answer.content.decode()
    client.post("/images/ubuntu/edit/", {**SENT, "display_name": "New"})
    assert OSImage.objects.get().display_name == "New"


def test_an_image_that_is_named_is_not_removed(client, operator):
    make.node_type("gpu")
    html = get(client, operator, "/images/ubuntu/delete/")
    assert "Remove image ubuntu?" in html
    answer = client.post("/images/ubuntu/delete/")
    assert answer.status_code == 409 and "IN_USE" in answer.content.decode()
    make.image("spare")
    client.post("/images/spare/delete/")
    assert not OSImage.objects.filter(name="spare").exists()


def test_a_tenant_may_not_change_images(client, owner):
    make.image()
    for path in ("/images/new/", "/images/ubuntu/edit/", "/images/ubuntu/delete/"):
        get(client, owner, path, 403)
