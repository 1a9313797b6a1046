"""The door of machines: agents' calls and boot media, over TLS with a CA of our own."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from gpucloud.engine.beat import start_beat
from gpucloud.engine.heartbeat import start_heartbeat
from gpucloud.engine.offload import until_stopped
from provisioning.door.certificates import server_context
from provisioning.door.server import serve


class Command(BaseCommand):
    help = "Serve the door of agents and boot media until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bind", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=0, help="0: that of the door's URL")

    def handle(self, *args: Any, **options: Any) -> None:
        start_beat()
        start_heartbeat()
        url = urlsplit(settings.DOORS.get("door", settings.AGENT_URL))
        port = options["port"] or url.port or 443
        asyncio.run(until_stopped(serve(options["bind"], port, server_context())))
