"""Many claims want few servers at once: each server goes to one of them, oldest first."""

from __future__ import annotations

import random
import threading
import time

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from gpucloud.engine import leases, steps
from gpucloud.engine.advance import advance
from gpucloud.models import Step
from inventory.models import Server
from inventory.services.servers import set_quarantine
from provisioning.models import NodeClaim, Operation
from provisioning.select import select
from provisioning.services import claims
from provisioning.steps import selecting
from tests import make
from tests.races.crowd import Meeting, no_leases, together

pytestmark = pytest.mark.races


def wanting(count):
    """Claims of a cluster whose API is not there yet, so that a bound claim stops at Configure."""
    cluster = make.cluster(state="network")
    kind = make.node_type()
    return [
        claims.request("owner", cluster.tenant, kind, cluster=cluster).operations.get().uid
        for _ in range(count)
    ]


def look_again():
    Step.objects.filter(current=True, name="select").update(next_try_at=Now())


def fight(operations, threads=8, rounds=2):
    """Every thread looks at every operation in an order of its own, again and again."""

    def work(seed):
        mine = list(operations)
        for _ in range(rounds):
            random.Random(seed).shuffle(mine)
            for uid in mine:
                advance("operation", uid)
            look_again()

    errors = [one for one in together(*[lambda s=s: work(s) for s in range(threads)]) if one]
    assert errors == []
    # A look that met another's lease was none; the sweep would come again.
    for uid in operations:
        advance("operation", uid)


def held():
    """(server, claim) of all live claims that have one, oldest claim first."""
    rows = NodeClaim.objects.live().exclude(server=None).order_by("pk")
    return list(rows.values_list("server", "pk"))


def bind_without_asking(meeting):
    """Select as one would write it first: read, check, write."""

    def bind(operation, claim, uid, selection):
        server = Server.objects.get(uid=uid)
        if server.state != "available":
            return False
        meeting.wait()
        Server.objects.filter(pk=server.pk).update(state="held", tenancy=server.tenancy + 1)
        NodeClaim.objects.filter(pk=claim.pk).update(server=server, state="provisioning")
        operation.refresh_from_db()
        return True

    return bind


def test_without_the_guards_one_server_goes_to_two_claims(monkeypatch, without_index):
    without_index("claim_one_per_server")
    make.server()
    operations = wanting(2)
    monkeypatch.setattr(leases, "holding", no_leases)
    monkeypatch.setattr(selecting, "position", lambda claim: (1, 2))
    monkeypatch.setattr(selecting, "_bind", bind_without_asking(Meeting(2)))
    together(*[lambda uid=uid: advance("operation", uid) for uid in operations])
    assert len(held()) == 2 and len({server for server, _ in held()}) == 1


def test_the_index_alone_refuses_the_second_claim_of_a_server(monkeypatch):
    make.server()
    operations = wanting(2)
    meeting = Meeting(2)
    found = []
    bind = bind_without_asking(meeting)

    def binding(*args):
        try:
            return bind(*args)
        except IntegrityError as error:
            found.append(error)
            return False

    monkeypatch.setattr(leases, "holding", no_leases)
    monkeypatch.setattr(selecting, "position", lambda claim: (1, 2))
    monkeypatch.setattr(selecting, "_bind", binding)
    together(*[lambda uid=uid: advance("operation", uid) for uid in operations])
    assert len(held()) == 1 and len(found) == 1


@pytest.mark.parametrize("with_leases", [True, False])
def test_every_server_goes_to_one_claim_and_no_claim_is_lost(monkeypatch, with_leases):
    for _ in range(5):
        make.server()
    operations = wanting(12)
    if not with_leases:
        monkeypatch.setattr(leases, "holding", no_leases)
    fight(operations)
    assert len(held()) == 5 and len({server for server, _ in held()}) == 5
    assert Server.objects.filter(state="held", tenancy=2).count() == 5
    bound = Operation.objects.filter(state="active").exclude(server=None)
    assert {o.server_id for o in bound} == {server for server, _ in held()}
    assert all(o.claim.server_id == o.server_id for o in bound)
    still = Step.objects.filter(owner_uid__in=operations, current=True)
    assert sorted(still.values_list("name", flat=True)) == ["configure"] * 5 + ["select"] * 7

    for _ in range(7):
        make.server()
    fight(operations)
    assert len({server for server, _ in held()}) == 12


def test_the_oldest_claims_are_served_first():
    for _ in range(5):
        make.server()
    operations = wanting(12)
    fight(operations)
    oldest = list(NodeClaim.objects.order_by("pk").values_list("pk", flat=True)[:5])
    assert [claim for _, claim in held()] == oldest


def test_a_queue_without_places_does_not_serve_the_oldest_first(monkeypatch):
    make.server()
    operations = wanting(2)
    monkeypatch.setattr(selecting, "position", lambda claim: (1, 2))
    advance("operation", operations[1])
    assert held()[0][1] != NodeClaim.objects.order_by("pk").first().pk


def meanwhile(monkeypatch, happens):
    """Something happens between the moment Select has chosen and the moment it binds."""
    done = []

    def chosen(*args):
        found = select(*args)
        if not done:
            done.append(together(happens))
            assert done[0] == [None] or not isinstance(done[0][0], Exception), done
        return found

    monkeypatch.setattr(selecting, "select", chosen)


def test_a_server_that_is_quarantined_meanwhile_is_not_bound(monkeypatch):
    server = make.server()
    [uid] = wanting(1)
    meanwhile(monkeypatch, lambda: set_quarantine(server, True, "admin", "smoke"))
    advance("operation", uid)
    server.refresh_from_db()
    assert held() == [] and server.state == "available" and server.quarantined


def test_a_server_being_quarantined_while_select_binds_is_not_bound(monkeypatch):
    """The UPDATE waits for the person's transaction, and must see what that wrote."""
    server = make.server()
    [uid] = wanting(1)
    written, done = threading.Event(), threading.Event()

    def person():
        with transaction.atomic():
            Server.objects.filter(pk=server.pk).update(quarantined=True)
            written.set()
            done.wait(10)

    def engine():
        written.wait(5)
        # Read before, while the person's change was not committed.
        advance("operation", uid)

    def let_go():
        written.wait(5)
        with connection.cursor() as cursor:
            ends = time.monotonic() + 5
            while time.monotonic() < ends:
                cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
                if cursor.fetchone():
                    break
        done.set()

    assert [one for one in together(person, engine, let_go) if isinstance(one, Exception)] == []
    server.refresh_from_db()
    assert held() == [] and server.state == "available"


def test_a_claim_that_is_released_meanwhile_gets_no_server(monkeypatch, caplog):
    server = make.server()
    [uid] = wanting(1)
    claim = NodeClaim.objects.get()
    meanwhile(monkeypatch, lambda: claims.release(NodeClaim.objects.get(), "owner") and None)
    advance("operation", uid)
    claim.refresh_from_db()
    server.refresh_from_db()
    assert (claim.state, claim.server) == ("gone", None)
    assert (server.state, server.tenancy) == ("available", 1)
    assert "fault of our own" not in caplog.text


def test_without_the_guard_a_released_claim_gets_a_server(monkeypatch):
    server = make.server()
    [uid] = wanting(1)
    meanwhile(monkeypatch, lambda: claims.release(NodeClaim.objects.get(), "owner") and None)
    monkeypatch.setattr(selecting, "_bind", bind_without_asking(Meeting(1)))
    advance("operation", uid)
    server.refresh_from_db()
    assert server.state == "held", "a server is held, and nobody will ever let it go"
    assert not Operation.objects.filter(state="active").exists()


@pytest.mark.parametrize("again", range(3))
def test_release_and_select_at_the_same_moment_leave_nothing_half_owned(again):
    servers = [make.server() for _ in range(6)]
    operations = wanting(6)
    wished = list(NodeClaim.objects.order_by("pk"))
    results = together(
        *[lambda uid=uid: advance("operation", uid) for uid in operations],
        *[lambda claim=claim: claims.release(claim, "owner") for claim in wished],
    )
    assert [one for one in results if isinstance(one, Exception)] == []
    for claim in NodeClaim.objects.all():
        live = claim.operations.filter(state="active")
        if claim.state == "gone":
            assert claim.server is None and not live.exists()
        else:
            assert claim.state == "releasing" and claim.server.state == "held"
            assert [o.kind for o in live] == ["release"]
            assert steps.steps_of("operation", live[0].uid).filter(current=True).count() == 1
    owned = {server for server, _ in held()}
    for server in servers:
        server.refresh_from_db()
        assert (server.state == "held") == (server.pk in owned)
