"""Check the history's hash chain and name the first row that breaks it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gpucloud.engine import sealer
from gpucloud.models import Event


class Command(BaseCommand):
    help = "Check the history's hash chain; ends with 1 and names the first broken row."

    def handle(self, *args: Any, **options: Any) -> None:
        verdict = sealer.verify()
        if broken := verdict.broken:
            raise CommandError(
                f"The history is broken at position {broken.position} (event {broken.uid}): "
                f"{broken.why}. {verdict.rows} rows before it hold."
            )
        waiting = Event.objects.filter(position=None).count()
        self.stdout.write(f"{verdict.rows} rows hold; the last hash is {verdict.last_hash}.")
        if waiting:
            self.stdout.write(f"{waiting} rows are not sealed yet.")
