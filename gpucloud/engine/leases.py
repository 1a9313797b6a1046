"""Leases: one holder per resource at a time, by compare-and-set with the database's clock."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

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


def _place() -> str:
    """Names the set of process numbers this process sees: this boot of this kernel, this container.

    Blank where that cannot be told; nobody is then ever proved dead.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(f"{socket.gethostname()} {boot} {numbers}".encode()).hexdigest()[:12]


def _born(pid: int) -> str:
    """When a process started, in the kernel's ticks; blank when there is none of this number."""
    try:
        # Asked first: /proc may hide the processes of other users, this never does.
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The command's name stands in brackets and may hold anything, brackets and blanks too.
    return stat.rpartition(")")[2].split()[19]


def _name_process() -> str:
    born = _born(os.getpid()) if _place() else ""
    return f"{socket.gethostname()[:20]}:{_place()}:{os.getpid()}:{born}:{uuid.uuid4().hex[:8]}"


def _rename() -> None:
    """A forked child is another process than its parent: it lives and dies by itself."""
    global _process
    _process = _name_process()


_process = _name_process()
os.register_at_fork(after_in_child=_rename)


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


def _dead(holder: str) -> bool:
    """Whether the holder is a process of this very machine that provably runs no more."""
    parts = holder.split(":")
    if len(parts) < 5 or not parts[1] or parts[1] != _place() or not parts[2].isdecimal():
        return False
    try:
        return _born(int(parts[2])) != parts[3]
    except OSError:
        return False


def expire_dead() -> int:
    """End the leases of processes that died here, so that successors need not wait them out.

    What a dead process had sent last may still act: its successors still wait one request's time.
    """
    count = 0
    live = Lease.objects.filter(expires__gt=Now()).exclude(holder="")
    for resource, holder in live.values_list("resource", "holder"):
        if _dead(holder):
            mine = Lease.objects.filter(resource=resource, holder=holder, expires__gt=Now())
            count += mine.update(expires=Now())
    return count


def lead(name: str, seconds: float = 15.0) -> bool:
    """Become or stay the leader of a singleton process; False while another one leads."""
    resource = f"process:{name}"
    if _take(resource, _process, seconds) is not None:
        return True
    # Singletons send nothing to devices, so a dead one's successor need not wait at all.
    rows = Lease.objects.filter(resource=resource)
    holder = rows.values_list("holder", flat=True).first() or ""
    if not (_dead(holder) and rows.filter(holder=holder).update(holder="", expires=Now())):
        return False
    return _take(resource, _process, seconds) is not None


def resign(name: str) -> None:
    """Give up leadership at a clean stop, so that the next one need not wait."""
    Lease.objects.filter(resource=f"process:{name}", holder=_process).update(
        holder="", expires=Now()
    )
