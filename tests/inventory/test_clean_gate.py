"""The clean gate: nobody gets a server whose last tenancy was not wiped, whoever writes the row."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction
from django.db.models import F

from inventory.models import Drive, Server, WipeRecord
from inventory.services import servers
from tests import make

pytestmark = pytest.mark.django_db


def offered(server, **fields):
    try:
        with transaction.atomic():
            Server.objects.filter(pk=server.pk).update(state="available", **fields)
    except DatabaseError:
        return False
    return True


def test_a_server_is_not_offered_while_its_tenancy_is_not_clean():
    server = make.server(state="cleaning")
    assert not offered(server)


def test_a_counter_without_a_record_does_not_open_the_gate():
    server = make.server(state="cleaning")
    assert not offered(server, clean_tenancy=F("tenancy"))


def test_a_record_of_an_earlier_tenancy_does_not_open_the_gate():
    server = make.server(state="cleaning")
    make.wipe(server)
    assert not offered(server, tenancy=F("tenancy") + 1, clean_tenancy=F("tenancy") + 1)


def test_a_record_that_did_not_pass_does_not_open_the_gate():
    server = make.server(state="cleaning")
    make.wipe(server, passed=False)
    assert not offered(server, clean_tenancy=F("tenancy"))


def test_a_record_that_lacks_a_drive_does_not_open_the_gate():
    server = make.server(state="cleaning")
    make.wipe(server)
    Drive.objects.create(server=server, serial="found-later")
    assert not offered(server)


def test_a_record_with_a_drive_that_is_not_there_does_not_open_the_gate():
    server = make.server(state="cleaning")
    make.wipe(server)
    server.drives.first().delete()
    assert not offered(server)


def test_a_passing_record_of_this_tenancy_with_the_same_drives_opens_the_gate():
    server = make.server(state="cleaning")
    make.wipe(server)
    assert offered(server)


def test_binding_a_claim_closes_the_gate_for_the_next_tenancy():
    server = make.server(state="available")
    Server.objects.filter(pk=server.pk).update(state="held", tenancy=F("tenancy") + 1)
    assert not offered(server)


@pytest.mark.parametrize("change", ["update", "delete"])
def test_a_wipe_record_is_never_changed_or_removed(change):
    record = make.wipe(make.server(state="cleaning"))
    rows = WipeRecord.objects.filter(pk=record.pk)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(passed=False) if change == "update" else rows._raw_delete("default")


def test_declaring_blank_opens_the_gate_once_and_only_for_the_first_tenancy():
    server = make.server(state="enrolled")
    servers.declare_blank(server, "admin", server.name)
    assert server.state == "available"
    Server.objects.filter(pk=server.pk).update(state="enrolled", tenancy=2)
    server.refresh_from_db()
    with pytest.raises(Exception, match="leaves through a wipe"):
        servers.declare_blank(server, "admin", server.name)
