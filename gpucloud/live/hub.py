"""The hub: one per process; follows Redis, re-reads and renders once per topic and view class, fans
out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from django.db import close_old_connections
from django.template.loader import render_to_string
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from gpucloud.live.fragments import Topic, ViewClass, registry
from gpucloud.live.publish import CHANNEL
from gpucloud.models import User

log = logging.getLogger(__name__)
T = TypeVar("T")

# Every topic is read again this often whatever Redis said: a lost name costs half a minute, and a
# console without Redis still moves.
LOOK_AGAIN: Final = 30.0
LOOK_AGAIN_ALONE: Final = 2.0
AT_A_TIME: Final = 25
THREADS: Final = 4
# An overview of many objects gathers their changes this long before it is read again.
OVERVIEW_WAIT: Final = 0.4
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="live")


async def in_thread(work: Callable[[], T]) -> T:
    """Run database work in the hub's small pool, with connections that are still good."""

    def run() -> T:
        close_old_connections()
        try:
            return work()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_pool, run)


class Mailbox:
    """What one socket has yet to be sent: the latest text per topic, so a slow reader skips, never
    lags.
    """

    def __init__(self, user: User, view: ViewClass) -> None:
        self.user, self.view = user, view
        self.waiting: dict[str, str] = {}
        self.filled = asyncio.Event()

    def put(self, topic: str, text: str) -> None:
        # Taken out first: the newest goes to the end, in the order in which things happened.
        self.waiting.pop(topic, None)
        self.waiting[topic] = text
        self.filled.set()

    async def take(self) -> list[str]:
        await self.filled.wait()
        self.filled.clear()
        texts, self.waiting = list(self.waiting.values()), {}
        return texts


class Watch:
    """One topic: its sockets by view class, and the single task that reads, renders and
    hands out.
    """

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.boxes: dict[ViewClass, set[Mailbox]] = {}
        self.sent: dict[ViewClass, str] = {}
        self.fresh: dict[ViewClass, list[tuple[Mailbox, asyncio.Future[bool]]]] = {}
        self.read_at = 0.0
        self.again = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def nudge(self) -> None:
        """Have the topic read again; a burst of calls while it is read costs one more read, not
        many.
        """
        self.again = True
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self._run())

    def soon(self) -> None:
        """Nudge after a moment in which further calls add nothing."""
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(OVERVIEW_WAIT, self._ring)

    def _ring(self) -> None:
        self.timer = None
        if not self.empty:
            self.nudge()

    def join(self, box: Mailbox) -> asyncio.Future[bool]:
        """Wait for a read that begins after now; true when the reader may see the object."""
        seen: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.fresh.setdefault(box.view, []).append((box, seen))
        self.nudge()
        return seen

    def leave(self, box: Mailbox) -> None:
        boxes = self.boxes.get(box.view, set())
        boxes.discard(box)
        if not boxes:
            self.boxes.pop(box.view, None)
            self.sent.pop(box.view, None)

    @property
    def empty(self) -> bool:
        return not self.boxes and not self.fresh

    async def _run(self) -> None:
        while self.again:
            self.again = False
            self.read_at = time.monotonic()
            joining, self.fresh = self.fresh, {}
            for view in {*self.boxes, *joining}:
                await self._refresh(view, joining.get(view, []))

    async def _refresh(
        self, view: ViewClass, joining: list[tuple[Mailbox, asyncio.Future[bool]]]
    ) -> None:
        boxes = self.boxes.get(view, set())
        reader = next((box.user for box in boxes), None) or joining[0][0].user
        try:
            text = await in_thread(lambda: self._render(reader, view))
        except Exception:
            # A broken template or a database that is away must not end the topic's task.
            log.exception("live topic %s could not be rendered", self.topic.text)
            for _, seen in joining:
                _settle(seen, False)
            return
        if text is None:
            for _, seen in joining:
                _settle(seen, False)
            return
        if text != self.sent.get(view):
            for box in boxes:
                box.put(self.topic.text, text)
        for box, seen in joining:
            if _settle(seen, True):
                self.boxes.setdefault(view, set()).add(box)
                box.put(self.topic.text, text)
        if view in self.boxes:
            self.sent[view] = text

    def _render(self, reader: User, view: ViewClass) -> str | None:
        fragment, uid = self.topic.fragment, self.topic.uid
        assert uid is not None
        obj = fragment.load(reader, uid)
        return None if obj is None else fragment.render(obj, view)


def _settle(seen: asyncio.Future[bool], value: bool) -> bool:
    """Answer a waiting socket; false when it left meanwhile."""
    if seen.done():
        return False
    seen.set_result(value)
    return True


class ListWatch:
    """Readers of one list: each is told how many rows it does not show came or changed since it
    loaded.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.readers: dict[Mailbox, tuple[frozenset[uuid.UUID], set[uuid.UUID]]] = {}

    def add(self, box: Mailbox, shown: frozenset[uuid.UUID]) -> None:
        self.readers[box] = (shown, set())

    async def heard(self, uid: uuid.UUID) -> None:
        """One row of this kind changed: count it for those who do not show it and may see it."""
        waiting: dict[ViewClass, list[Mailbox]] = {}
        for box, (shown, counted) in self.readers.items():
            if uid not in shown and uid not in counted:
                waiting.setdefault(box.view, []).append(box)
        for boxes in waiting.values():
            if not await in_thread(partial(self._sees, boxes[0].user, uid)):
                continue
            for box in boxes:
                if box in self.readers:
                    counted = self.readers[box][1]
                    counted.add(uid)
                    box.put(f"list:{self.name}", changes(self.name, len(counted)))

    def _sees(self, reader: User, uid: uuid.UUID) -> bool:
        return registry()[self.name].load(reader, uid) is not None


def changes(name: str, count: int) -> str:
    return render_to_string("ui/_changes.html", {"topic": name, "count": count})


class Hub:
    """All watches of this process's event loop. Lives while a socket is open."""

    def __init__(self) -> None:
        self.watches: dict[tuple[str, uuid.UUID], Watch] = {}
        self.lists: dict[str, ListWatch] = {}
        self.boxes: set[Mailbox] = set()
        self.heard = False
        self.tasks: list[asyncio.Task[None]] = []

    @classmethod
    def current(cls) -> Hub:
        loop = asyncio.get_running_loop()
        if loop not in _hubs:
            _hubs[loop] = cls()
        return _hubs[loop]

    async def join(self, box: Mailbox, topics: list[Topic]) -> list[Topic]:
        """Subscribe and fill the box with a snapshot of each; returns those the reader may see."""
        self._open(box)
        shown = frozenset(topic.uid for topic in topics if topic.uid)
        for topic in topics:
            if topic.uid is None:
                self.lists.setdefault(topic.name, ListWatch(topic.name)).add(box, shown)
        singles = [topic for topic in topics if topic.uid]
        seen = await asyncio.gather(*(self._watch(topic).join(box) for topic in singles))
        allowed = [topic for topic, yes in zip(singles, seen, strict=True) if yes]
        return allowed + [topic for topic in topics if topic.uid is None]

    def leave(self, box: Mailbox) -> None:
        for key, watch in list(self.watches.items()):
            watch.leave(box)
            if watch.empty:
                del self.watches[key]
        for name, listed in list(self.lists.items()):
            listed.readers.pop(box, None)
            if not listed.readers:
                del self.lists[name]
        self.boxes.discard(box)
        if not self.boxes:
            for task in self.tasks:
                task.cancel()
            self.tasks = []

    def _watch(self, topic: Topic) -> Watch:
        assert topic.uid is not None
        key = (topic.name, topic.uid)
        if key not in self.watches:
            self.watches[key] = Watch(topic)
        return self.watches[key]

    def _open(self, box: Mailbox) -> None:
        self.boxes.add(box)
        if not self.tasks:
            loop = asyncio.get_running_loop()
            self.tasks = [loop.create_task(self._look_again())]
            if settings.REDIS_URL:
                self.tasks.append(loop.create_task(self._follow(settings.REDIS_URL)))

    async def _follow(self, url: str) -> None:
        """Stay subscribed for ever; after each break everything is read again, as nobody kept what
        was missed.
        """
        wait = 0.2
        while True:
            try:
                async with _client(url) as client, client.pubsub() as pubsub:
                    await pubsub.subscribe(CHANNEL)
                    async for message in pubsub.listen():
                        if message["type"] == "subscribe":
                            self.heard, wait = True, 0.2
                            self._nudge_all()
                        elif message["type"] == "message":
                            self._name(message["data"])
            except (RedisError, OSError) as error:
                log.warning("live updates lost Redis, looking by themselves meanwhile: %s", error)
            self.heard = False
            await asyncio.sleep(wait)
            wait = min(wait * 2, 5.0)

    def _name(self, data: bytes | str) -> None:
        """Somebody published a name; a malformed one is not ours and is dropped."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            name: dict[str, Any] = json.loads(data)
            if name["kind"] == "*":
                self._nudge_all()
                return
            uid = uuid.UUID(name["uid"])
            for topic, fragment in registry().items():
                if name["kind"] in fragment.follows:
                    self._soon(topic)
                if fragment.kind != name["kind"]:
                    continue
                if (watch := self.watches.get((topic, uid))) is not None:
                    watch.nudge()
                if topic in self.lists:
                    self._spawn(self.lists[topic].heard(uid))

    def _soon(self, topic: str) -> None:
        """Have the overviews of this topic read again, once for a burst of changes."""
        for (name, _), watch in self.watches.items():
            if name == topic:
                watch.soon()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.append(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        if task in self.tasks:
            self.tasks.remove(task)

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            age = LOOK_AGAIN if self.heard else LOOK_AGAIN_ALONE
            limit = time.monotonic() - age
            old = [watch for watch in self.watches.values() if watch.read_at < limit]
            # A few at a time, oldest first: a change that is told must not queue behind these.
            for watch in sorted(old, key=lambda watch: watch.read_at)[:AT_A_TIME]:
                watch.nudge()

    def _nudge_all(self) -> None:
        for watch in self.watches.values():
            watch.nudge()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def _client(url: str) -> redis.asyncio.Redis:
    # No read time-out (an idle subscription is not a broken one) and no silent reconnects: a break
    # must be seen here, because what was published meanwhile is lost.
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=None,
        socket_connect_timeout=2,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
        protocol=2,
    )
