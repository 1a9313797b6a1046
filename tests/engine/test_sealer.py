"""Sealed history: gapless positions, a hash chain, and rows that cannot be taken back."""

from __future__ import annotations

import io
import json
import threading
import uuid

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from gpucloud.canonical import canonical
from gpucloud.engine import sealer
from gpucloud.models import Event

OBJECT = uuid.uuid4()


def tell(message="it happened", **fields):
    defaults = {"actor": "test", "kind": "server", "object_uid": OBJECT, "object_name": "one"}
    return Event.objects.create(verb="note", message=message, **defaults | fields)


def positions():
    return list(Event.objects.order_by("id").values_list("position", flat=True))


@pytest.mark.django_db
def test_rows_are_sealed_gapless_in_the_order_they_came():
    for n in range(5):
        tell(f"row {n}", data={"n": n, "ä": [1.5, None]})
    assert sealer.seal_batch(3) == 3
    tell("later")
    assert sealer.seal_batch(100) == 3
    assert sealer.seal_batch() == 0
    assert positions() == [1, 2, 3, 4, 5, 6]
    verdict = sealer.verify()
    assert (verdict.rows, verdict.broken) == (6, None)


@pytest.mark.django_db
def test_each_row_carries_the_hash_of_the_one_before():
    tell(), tell()
    sealer.seal_batch()
    first, second = Event.objects.order_by("position")
    assert first.previous_hash == sealer.GENESIS
    assert second.previous_hash == first.hash


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"message": "it did not happen"},
        {"actor": "somebody else"},
        {"position": None},
        {"position": 77, "previous_hash": "a" * 64, "hash": "b" * 64},
    ],
)
def test_a_sealed_row_cannot_be_changed(change):
    event = tell()
    sealer.seal_batch()
    with pytest.raises(DatabaseError), transaction.atomic():
        Event.objects.filter(pk=event.pk).update(**change)


@pytest.mark.django_db
def test_an_unsealed_row_can_only_be_sealed():
    event = tell()
    seal = {"position": 1, "previous_hash": "a" * 64, "hash": "b" * 64}
    for change in ({"message": "x"}, {"data": {"x": 1}}, {"position": 1}, {**seal, "code": "X"}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Event.objects.filter(pk=event.pk).update(**change)
    assert Event.objects.filter(pk=event.pk).update(**seal) == 1


@pytest.mark.django_db
def test_no_row_can_be_removed():
    event = tell()
    with pytest.raises(DatabaseError), transaction.atomic():
        Event.objects.filter(pk=event.pk).delete()


def _behind_the_back(sql, *values):
    """Change the table as somebody with the database's own powers would."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE gpucloud_event DISABLE TRIGGER event_append_only")
        else:
            cursor.execute("DROP TRIGGER event_append_only_update")
            cursor.execute("DROP TRIGGER event_append_only_delete")
        cursor.execute(sql, values)


@pytest.mark.django_db
def test_verify_history_names_the_first_row_that_was_changed():
    rows = [tell(f"row {n}") for n in range(4)]
    sealer.seal_batch()
    _behind_the_back(
        "UPDATE gpucloud_event SET message = 'forged' WHERE position IN (%s, %s)", 3, 4
    )
    with pytest.raises(CommandError, match=rf"position 3 \(event {rows[2].uid}\)"):
        call_command("verify_history")


@pytest.mark.django_db
def test_verify_history_notices_a_row_that_is_missing():
    for n in range(4):
        tell(f"row {n}")
    sealer.seal_batch()
    _behind_the_back("DELETE FROM gpucloud_event WHERE position = %s", 2)
    with pytest.raises(CommandError, match="position 2 was expected"):
        call_command("verify_history")


@pytest.mark.django_db
def test_verify_history_says_what_holds_and_what_waits():
    tell()
    sealer.seal_batch()
    tell()
    out = io.StringIO()
    call_command("verify_history", stdout=out)
    assert "1 rows hold" in out.getvalue()
    assert "1 rows are not sealed yet" in out.getvalue()


@pytest.mark.races
@pytest.mark.django_db(transaction=True)
def test_a_row_that_commits_late_with_a_lower_id_is_not_passed_over():
    inserted, commit = threading.Event(), threading.Event()

    def slowly():
        with transaction.atomic():
            tell("slow")
            inserted.set()
            commit.wait(10)
        connection.close()

    slow = threading.Thread(target=slowly)
    slow.start()
    inserted.wait(10)
    fast = tell("fast")
    assert sealer.seal_batch() == 1
    commit.set()
    slow.join()
    assert sealer.seal_batch() == 1
    late = Event.objects.get(message="slow")
    fast.refresh_from_db()
    assert late.pk < fast.pk
    assert (fast.position, late.position) == (1, 2)
    assert sealer.verify().broken is None


@pytest.mark.races
@pytest.mark.django_db(transaction=True)
def test_sealers_at_the_same_time_leave_one_unbroken_chain():
    for n in range(120):
        tell(f"row {n}")

    def work():
        for _ in range(60):
            sealer.seal_batch(7)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while sealer.seal_batch():
        pass
    assert sealer.verify().rows == 120
    assert sealer.verify().broken is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "é"]}, '{"a":[true,null,"é"],"b":1}'),
        # The example of RFC 8785 section 3.2.2.
        (
            {"numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]},
            '{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}',
        ),
        ([0.0, -0.0, 1.0, 1e21, 1e20, 123456.789e3, 1e-6, 1.5e-7, -2.5], None),
        ('\u20ac$\x0f\nA\'B"\\\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'),
    ],
)
def test_canonical_json_is_that_of_rfc_8785(value, text):
    if text is None:
        text = "[0,0,1,1e+21,100000000000000000000,123456789,0.000001,1.5e-7,-2.5]"
    assert canonical(value).decode() == text
    assert json.loads(canonical(value)) == value
