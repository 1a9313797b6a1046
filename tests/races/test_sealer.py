"""Sealing while many commit: every committed row once, without a gap, rolled-back ones nowhere."""

from __future__ import annotations

import random
import threading
import time
import uuid

import pytest
from django.db import transaction

from gpucloud.engine import sealer
from gpucloud.models import Event
from tests.races.crowd import raised, together

pytestmark = pytest.mark.races
COMMITTERS, EACH = 6, 25


class Undone(Exception):
    """What makes a transaction roll back."""


def tell(message):
    return Event.objects.create(
        actor="test",
        kind="server",
        object_uid=uuid.uuid4(),
        object_name="one",
        verb="note",
        message=message,
    )


def committers():
    """Each writes rows in transactions of unequal length; every fourth is rolled back."""

    def work(seed):
        dice = random.Random(seed)
        for number in range(EACH):
            try:
                with transaction.atomic():
                    tell(f"{seed}/{number}")
                    time.sleep(dice.uniform(0, 0.01))
                    if number % 4 == 3:
                        raise Undone
            except Undone:
                continue

    return [lambda s=seed: work(s) for seed in range(COMMITTERS)]


def seal_beside(works, sealers=2):
    """Run the works with sealers beside them, then seal what came last."""
    left = [len(works)]
    mutex = threading.Lock()

    def counted(work):
        try:
            work()
        finally:
            with mutex:
                left[0] -= 1

    def seal():
        while left[0]:
            sealer.seal_batch(5)
        sealer.seal_batch(1000)

    results = together(*[lambda w=w: counted(w) for w in works], *[seal] * sealers)
    assert raised(results) == []
    sealer.seal_batch(1000)


def test_positions_have_no_gap_while_others_commit_and_roll_back():
    seal_beside(committers())
    committed = COMMITTERS * (EACH - EACH // 4)
    positions = list(Event.objects.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, committed + 1))
    verdict = sealer.verify()
    assert (verdict.rows, verdict.broken) == (committed, None)


def test_a_sealer_that_goes_on_from_the_last_id_passes_late_rows_over(monkeypatch):
    """What seems simpler: remember the last id, seal what comes after. A late commit is lost."""
    last = [0]

    def from_last_id(most):
        rows = list(Event.objects.filter(pk__gt=last[0]).order_by("pk")[:most])
        position = Event.objects.exclude(position=None).count()
        for number, event in enumerate(rows, position + 1):
            Event.objects.filter(pk=event.pk).update(
                position=number, previous_hash="a" * 64, hash="b" * 64
            )
            last[0] = event.pk
        return len(rows)

    monkeypatch.setattr(sealer, "_seal", from_last_id)
    inserted, sealed = threading.Event(), threading.Event()

    def slow():
        with transaction.atomic():
            tell("slow")
            inserted.set()
            sealed.wait(10)

    def fast():
        inserted.wait(10)
        tell("fast")
        sealer.seal_batch()
        sealed.set()

    assert raised(together(slow, fast)) == []
    sealer.seal_batch()
    assert Event.objects.get(message="slow").position is None
