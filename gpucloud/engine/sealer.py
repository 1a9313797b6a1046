"""Sealing: history rows get a gapless position and a hash chain after their commit, in batches.

Rows are sealed in the order of their ids as far as they are committed. On PostgreSQL a row with a
lower id may commit later than one with a higher id: it is then sealed later, at a higher position,
and never passed over, because what is unsealed is found by its missing position and not from a
remembered id onward.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db import IntegrityError, transaction

from gpucloud.canonical import canonical
from gpucloud.models import Event

log = logging.getLogger(__name__)
# Before the first row; a chain that begins otherwise has lost its beginning.
GENESIS = "0" * 64
BATCH = 200
READ_AT_ONCE = 1000


def seal_batch(most: int = BATCH) -> int:
    """Seal the oldest unsealed rows; return how many. One that loses a race seals nothing."""
    # Looked at outside the transaction: an idle sealer must not take SQLite's write lock.
    if not Event.objects.filter(position=None).exists():
        return 0
    try:
        with transaction.atomic():
            return _seal(most)
    except IntegrityError as error:
        # Two leaders for a moment: positions are unique, so the slower one's batch is undone.
        log.warning("another sealer was faster: %s", error)
        return 0


def _seal(most: int) -> int:
    last = Event.objects.exclude(position=None).order_by("-position").first()
    position, before = (last.position or 0, last.hash) if last else (0, GENESIS)
    rows = Event.objects.filter(position=None).select_related("tenant").order_by("id")[:most]
    count = 0
    for event in rows:
        position += 1
        found = hash_of(event, position, before)
        done = Event.objects.filter(pk=event.pk, position=None).update(
            position=position, previous_hash=before, hash=found
        )
        if not done:
            raise IntegrityError(f"row {event.pk} was sealed meanwhile")
        before = found
        count += 1
    return count


def hash_of(event: Event, position: int, previous_hash: str) -> str:
    """SHA-256 over the canonical JSON of what a row says, its place and the hash before it."""
    return hashlib.sha256(canonical(content_of(event, position, previous_hash))).hexdigest()


def content_of(event: Event, position: int, previous_hash: str) -> dict[str, Any]:
    """The row as it is hashed and exported."""
    return {
        "position": position,
        "previous_hash": previous_hash,
        "uid": str(event.uid),
        "at": event.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "actor": event.actor,
        "kind": event.kind,
        "object_uid": str(event.object_uid),
        "object_name": event.object_name,
        "tenant": str(event.tenant.uid) if event.tenant else None,
        "verb": event.verb,
        "message": event.message,
        "code": event.code,
        "data": event.data,
    }


@dataclass(frozen=True)
class Broken:
    """The first row at which the chain does not hold, and why."""

    position: int
    uid: str
    why: str


@dataclass(frozen=True)
class Verdict:
    rows: int
    last_hash: str
    broken: Broken | None


def verify() -> Verdict:
    """Walk the whole chain; stop at the first row that does not follow from the one before."""
    expected, before = 1, GENESIS
    for event in _sealed():
        position = event.position or 0
        if why := _fault(event, position, expected, before):
            return Verdict(expected - 1, before, Broken(position, str(event.uid), why))
        expected, before = expected + 1, event.hash
    return Verdict(expected - 1, before, None)


def _fault(event: Event, position: int, expected: int, before: str) -> str:
    if position != expected:
        return f"rows are missing before it: position {expected} was expected"
    if event.previous_hash != before:
        return "it does not follow from the row before"
    if event.hash != hash_of(event, position, before):
        return "its content is not what was sealed"
    return ""


def _sealed() -> Iterator[Event]:
    last = 0
    rows = Event.objects.select_related("tenant").order_by("position")
    while chunk := list(rows.filter(position__gt=last)[:READ_AT_ONCE]):
        yield from chunk
        last = chunk[-1].position or 0
