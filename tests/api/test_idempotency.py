"""Idempotency-Key: one create per key, the same answer again, and no confusion of requests."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpucloud.models import IdempotentRequest
from provisioning.models import OSImage
from tests import make

IMAGE = {"name": "i", "url": "https://x/y.qcow2", "checksum": "ab" * 32}
KEY = {"HTTP_IDEMPOTENCY_KEY": "k-1"}


@pytest.fixture
def client(admin, client_of):
    return client_of(admin)


def test_the_same_request_is_carried_out_once_and_answered_alike(client):
    first = client.post("os-images/", IMAGE, **KEY)
    again = client.post("os-images/", dict(reversed(IMAGE.items())), **KEY)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first and again["Idempotency-Replayed"] == "true"
    assert OSImage.objects.count() == 1


def test_the_same_key_with_another_body_or_address_is_refused(client):
    client.post("os-images/", IMAGE, **KEY)
    other = client.post("os-images/", {**IMAGE, "name": "j"}, **KEY)
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_REUSED")
    elsewhere = client.post("tenants/", {"name": "acme"}, **KEY)
    assert elsewhere.status_code == 422


def test_a_request_that_still_runs_is_not_run_again(client, admin):
    client.post("os-images/", IMAGE, **KEY)
    IdempotentRequest.objects.update(status=None)
    answer = client.post("os-images/", IMAGE, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "IDEMPOTENCY_RUNNING")


def test_a_request_whose_process_died_may_be_sent_again(client):
    client.post("os-images/", IMAGE, **KEY)
    OSImage.objects.all().delete()
    IdempotentRequest.objects.update(status=None, started=timezone.now() - timedelta(minutes=2))
    assert client.post("os-images/", IMAGE, **KEY).status_code == 201


def test_a_refused_request_is_forgotten_so_that_it_can_be_corrected(client):
    assert client.post("os-images/", {**IMAGE, "checksum": "x"}, **KEY).status_code == 400
    assert client.post("os-images/", IMAGE, **KEY).status_code == 201


def test_a_key_is_good_for_a_day_and_for_its_user_only(client, client_of, operator):
    client.post("os-images/", IMAGE, **KEY)
    theirs = client_of(operator).post("os-images/", {**IMAGE, "name": "j"}, **KEY)
    assert theirs.status_code == 201
    IdempotentRequest.objects.update(started=timezone.now() - timedelta(hours=25))
    assert client.post("os-images/", {**IMAGE, "name": "l"}, **KEY).status_code == 201


def test_a_key_that_is_too_long_is_told(client):
    answer = client.post("os-images/", IMAGE, HTTP_IDEMPOTENCY_KEY="k" * 256)
    assert list(answer.json()["errors"]) == ["Idempotency-Key"]


def test_a_cluster_is_asked_for_once(client_of, owner):
    make.template()
    body = {"tenant": "default", "name": "one", "template": "tenant-virtual-cluster"}
    client = client_of(owner)
    uids = {client.post("clusters/", body, **KEY).json()["uid"] for _ in range(3)}
    assert len(uids) == 1
