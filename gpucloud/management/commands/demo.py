"""`manage.py demo`: everything on one machine, in the foreground, under one supervisor."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Run the whole of gpucloud with its simulated data centre on this machine."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        # The supervisor needs no Django; replacing this process gives its memory back.
        os.execv(sys.executable, (sys.executable, "-m", "gpucloud.supervisor"))
