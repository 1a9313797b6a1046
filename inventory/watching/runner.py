"""The watcher's core: keeps one follower per subject that the sources name, as they come and go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import Error

from gpucloud.drivers import DriverError
from gpucloud.engine.offload import in_database
from inventory.watching.client import Api
from inventory.watching.follow import Follower, Handler

log = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 2.0


@dataclass(frozen=True)
class Subject:
    """One collection of one API to follow; a changed kubeconfig or path is another subject."""

    key: str
    path: str
    kubeconfig: str = field(repr=False)
    handler: Callable[[Api], Handler] = field(repr=False, compare=False)


Source = Callable[[], Iterable[Subject]]


class Runner:
    """Asks the sources every two seconds what is to be followed now."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._tasks: dict[Subject, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        finally:
            await self._stop(list(self._tasks))

    async def look(self) -> None:
        """Start and stop followers until they are those that the sources name."""
        try:
            wanted = await in_database(self._wanted)
        except Error as error:
            log.warning("the database does not answer: %s", error)
            return
        await self._stop([subject for subject in self._tasks if subject not in wanted])
        for subject in wanted:
            if subject not in self._tasks or self._tasks[subject].done():
                log.info("following %s", subject.key)
                self._tasks[subject] = asyncio.create_task(_follow(subject), name=subject.key)

    def _wanted(self) -> set[Subject]:
        return {subject for source in self._sources for subject in source()}

    async def _stop(self, subjects: list[Subject]) -> None:
        tasks = [self._tasks.pop(subject) for subject in subjects]
        for task in tasks:
            log.info("no longer following %s", task.get_name())
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(subject: Subject) -> None:
    try:
        api = Api(subject.kubeconfig)
    except (DriverError, OSError, ValueError) as error:
        # Looked at again when the kubeconfig changes, and now and then.
        log.warning("%s cannot be followed: %s", subject.key, error)
        await asyncio.sleep(60)
        return
    try:
        await Follower(api, subject.path, subject.handler(api)).run()
    finally:
        await api.close()
