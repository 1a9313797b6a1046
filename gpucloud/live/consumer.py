"""The socket of a page: who is it, what may they follow, then text as it comes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib import auth
from django.http.request import split_domain_port, validate_host

from gpucloud.live.fragments import Topic, ViewClass
from gpucloud.live.hub import Hub, Mailbox, in_thread
from gpucloud.models import User

MOST_TOPICS: Final = 250
RECHECK: Final = 30.0
SIGNED_OUT: Final = 4401
NOTHING_TO_SHOW: Final = 4404
# "Service restart": the page's extension connects again, and subscribes with the new rights.
COME_AGAIN: Final = 1012


def person(session_key: str) -> tuple[User, ViewClass] | None:
    """The signed-in person behind a session, read anew; None when it ended or the account
    is off.
    """
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = auth.get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]
    if not isinstance(user, User) or not user.is_active:
        return None
    return user, ViewClass.of(user)


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """`/live/?t=claim:<uid>&t=list:claim`. Sends a snapshot of each topic, then every change."""

    recheck = RECHECK

    def __init__(self) -> None:
        super().__init__()
        self.box: Mailbox | None = None
        self.work: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Leave the hub however the socket ends; a cancelled task never sees a disconnect."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            for task in self.work:
                task.cancel()
            if self.box is not None:
                Hub.current().leave(self.box)

    async def connect(self) -> None:
        self.session_key = self.scope.get("cookies", {}).get(settings.SESSION_COOKIE_NAME, "")
        found = await in_thread(lambda: person(self.session_key)) if self.session_key else None
        # Accepted first, because a refused handshake tells the page nothing and it would try for
        # ever.
        await self.accept()
        if found is None:
            await self.close(SIGNED_OUT)
            return
        self.box = Mailbox(*found)
        asked = parse_qs(self.scope["query_string"].decode("ascii", "replace")).get("t", [])
        await self._subscribe(list(dict.fromkeys(asked))[:MOST_TOPICS])

    async def _subscribe(self, asked: list[str]) -> None:
        """Join what exists and may be seen; unknown, malformed and foreign topics are refused
        alike.
        """
        assert self.box is not None
        topics = [topic for text in asked if (topic := Topic.parse(text)) is not None]
        allowed = {topic.text for topic in await Hub.current().join(self.box, topics)}
        for text in asked:
            if text not in allowed:
                await self.send(text_data="<!-- refused: no such topic, or not yours -->")
        if not allowed:
            await self.close(NOTHING_TO_SHOW)
            return
        loop = asyncio.get_running_loop()
        self.work = [loop.create_task(self._send()), loop.create_task(self._check())]

    async def _send(self) -> None:
        assert self.box is not None
        while True:
            for text in await self.box.take():
                await self.send(text_data=text)

    async def _check(self) -> None:
        """A session that ended, or rights that changed, end the socket within half a minute."""
        assert self.box is not None
        while True:
            await asyncio.sleep(self.recheck)
            found = await in_thread(lambda: person(self.session_key))
            if found is None:
                await self.close(SIGNED_OUT)
                return
            if found[1] != self.box.view or found[0].pk != self.box.user.pk:
                await self.close(COME_AGAIN)
                return

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Pages only listen; whatever is sent is ignored."""


def same_origin(inner: Any) -> Any:
    """Let only our own pages connect: cookies ignore ports, so the port is compared as well."""

    async def guarded(scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin", "")
        known = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
        ours = known and urlsplit(origin).netloc == host
        if ours or (origin and origin == settings.PUBLIC_URL.rstrip("/").lower()):
            return await inner(scope, receive, send)
        return await nowhere(scope, receive, send)

    return guarded


async def nowhere(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Any other socket address: refused without a stack trace."""
    await send({"type": "websocket.close"})
