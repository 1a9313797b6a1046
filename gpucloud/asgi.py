"""The ASGI door: HTTP goes to Django, /live/ to the consumer, after the origin was checked."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpucloud.settings")
pages = get_asgi_application()

# Only after Django is set up: the consumer and the fragments import models.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import CookieMiddleware  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from gpucloud.engine.beat import start_beat  # noqa: E402
from gpucloud.engine.heartbeat import start_heartbeat  # noqa: E402
from gpucloud.live.consumer import LiveConsumer, nowhere, same_origin  # noqa: E402
from gpucloud.live.fragments import registry  # noqa: E402

# A topic named twice must stop the start, not the first page.
registry()
sockets = CookieMiddleware(
    URLRouter([path("live/", LiveConsumer.as_asgi()), re_path(r"", nowhere)])  # type: ignore[arg-type]
)
application = ProtocolTypeRouter({"http": pages, "websocket": same_origin(sockets)})
start_beat()
start_heartbeat()
