"""The builders keep the constraints and triggers that the product rests on."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from inventory.models import Server
from tests import make

pytestmark = pytest.mark.django_db


def test_an_available_server_is_one_that_a_claim_may_take():
    made = make.server()
    assert list(Server.objects.usable()) == [made]


def test_a_held_server_belongs_to_the_next_tenancy():
    made = make.server(state="held")
    assert (made.tenancy, made.clean_tenancy) == (2, 1)


def test_the_gate_stays_shut_for_a_drive_that_no_record_covers():
    made = make.server(state="enrolled")
    make.wipe(made, drive_serials=["another"])
    with pytest.raises(IntegrityError), transaction.atomic():
        Server.objects.filter(pk=made.pk).update(state="available")


def test_two_clusters_and_their_claims_stand_beside_each_other():
    one = make.claim(state="ready")
    two = make.claim(cluster=make.cluster("two", make.tenant("tenant1")), state="failed")
    assert one.server != two.server and one.tenant != two.tenant
    make.operation(two, state="failed", at="install", code="INSTALL_FAILED")
    make.pool(one.cluster)
