"""Fill the demo's database at its first start; a later start changes nothing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from provisioning.demo import seed


class Command(BaseCommand):
    help = "Make the demo's accounts, servers, network and templates where they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        seed(settings.GPUCLOUD_DATA)
