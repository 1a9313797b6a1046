"""manage.py check tells which drivers do not load and whose settings are wrong."""

from __future__ import annotations

import base64

import pytest
from django.core.checks import run_checks

from gpucloud import vault
from network.models import Fabric
from tests import make

pytestmark = pytest.mark.django_db


def told():
    return [one.msg for one in run_checks() if one.id and one.id.startswith("gpucloud.")]


def test_good_rows_are_silent():
    make.server()
    make.provider()
    make.control_plane()
    assert told() == []


def test_a_row_with_an_unknown_setting_is_named_with_the_setting():
    fabric = make.fabric()
    Fabric.objects.filter(pk=fabric.pk).update(config={"colour": "red"})
    assert len(told()) == 1
    assert fabric.name in told()[0] and "colour" in told()[0]


def test_a_row_with_a_driver_that_is_not_installed_is_named():
    fabric = make.fabric()
    Fabric.objects.filter(pk=fabric.pk).update(driver="quantum")
    assert "quantum" in told()[0]


def test_a_row_whose_secrets_were_sealed_with_another_key_is_named(settings):
    server = make.server()
    vault.put("bmc", server.bmc.uid, "credentials", {"username": "admin", "password": "x"})
    settings.ENCRYPTION_KEY = base64.b64encode(b"another".ljust(32)).decode()
    assert any("sealed with key" in text for text in told())


def test_a_path_that_does_not_load_is_named(settings):
    settings.DRIVERS = {**settings.DRIVERS, "fabric": {"mine": "nowhere.Mine"}}
    assert any("nowhere.Mine" in text for text in told())
