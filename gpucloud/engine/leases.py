"""Leases: one holder per resource at a time, by compare-and-set with the database's clock."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from gpucloud.engine.clock import later
from gpucloud.models import Lease

LEASE_SECONDS = 40.0
MARGIN_SECONDS = 10.0
# The longest that one request sent just before the budget ended may still act.
REQUEST_SECONDS = 10.0
BUDGET_SECONDS = LEASE_SECONDS - MARGIN_SECONDS
ORDER = ("server", "fabric", "cluster", "process")

_process = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class LeaseLost(Exception):
    """The lease was not held any more when a result was to be recorded:

    somebody else owns the object.
    """


@dataclass(frozen=True)
class Held:
    """Leases in hand: their holder's name and each one's generation, to condition writes on."""

    holder: str
    generations: dict[str, int]

    def confirm(self) -> None:
        """Raise LeaseLost unless every lease is still ours;

        call inside the transaction that records a result.
        """
        for resource, generation in self.generations.items():
            rows = Lease.objects.filter(
                resource=resource, holder=self.holder, generation=generation, expires__gt=Now()
            )
            if not rows.update(holder=self.holder):
                raise LeaseLost(resource)


def _take(resource: str, holder: str, seconds: float) -> int | None:
    rows = Lease.objects.filter(resource=resource)
    # A successor of a holder that died waits one request time-out beyond the lease.
    grace = timedelta(seconds=REQUEST_SECONDS)
    free = Q(holder="") | Q(holder=holder) | Q(expires__lt=Now() - grace)
    if rows.filter(free).update(
        holder=holder, expires=later(seconds), generation=F("generation") + 1
    ):
        return rows.values_list("generation", flat=True).get()
    if rows.exists():
        return None
    try:
        with transaction.atomic():
            Lease.objects.create(
                resource=resource, holder=holder, expires=later(seconds), generation=1
            )
    except IntegrityError:
        return None
    return 1


def order(resources: Iterable[str]) -> list[str]:
    """Resources in the one order in which leases are taken:

    server, fabric, cluster; then by name.
    """
    return sorted(set(resources), key=lambda name: (ORDER.index(name.split(":")[0]), name))


@contextmanager
def holding(resources: Iterable[str], seconds: float = LEASE_SECONDS) -> Iterator[Held | None]:
    """Hold all of these leases for the block, or yield None when one belongs to somebody else."""
    holder = f"{_process}:{threading.get_ident()}:{uuid.uuid4().hex[:6]}"
    taken: dict[str, int] = {}
    try:
        for resource in order(resources):
            generation = _take(resource, holder, seconds)
            if generation is None:
                break
            taken[resource] = generation
        complete = len(taken) == len(set(resources))
        yield Held(holder, taken) if complete else None
    finally:
        if taken:
            Lease.objects.filter(resource__in=taken, holder=holder).update(holder="", expires=Now())


def lead(name: str, seconds: float = 15.0) -> bool:
    """Become or stay the leader of a singleton process; False while another one leads."""
    return _take(f"process:{name}", _process, seconds) is not None


def resign(name: str) -> None:
    """Give up leadership at a clean stop, so that the next one need not wait."""
    Lease.objects.filter(resource=f"process:{name}", holder=_process).update(
        holder="", expires=Now()
    )
