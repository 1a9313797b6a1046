"""`manage.py prepare`: migrate and seed in one process; loading Django takes most of the time."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Bring the database up to date and fill in what the demo starts with."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False)
        call_command("seed_demo")
