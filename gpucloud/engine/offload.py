"""Asynchronous processes and the ORM: run database work in a few threads of their own."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import Error, close_old_connections

from gpucloud.engine import leases

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0

_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="orm")


async def in_database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking database work in a thread and await its result; database errors pass through."""
    call = partial(_fresh, partial(work, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_pool, call)


def _fresh(call: Callable[[], T]) -> T:
    # Without this a thread would keep a connection that the database has closed long ago.
    close_old_connections()
    try:
        return call()
    finally:
        close_old_connections()


async def until_stopped(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` until it ends or SIGTERM or SIGINT comes; then cancel it and let it tidy up."""
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def while_leading(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Keep `work` running whenever this process leads `name`, never when it does not; for ever."""
    task: asyncio.Future[None] | None = None
    try:
        while True:
            leads = await _leads(name)
            if task is not None and task.done():
                _tell_end(name, task)
                task = None
            if leads and task is None:
                log.info("%s: leading", name)
                task = asyncio.ensure_future(work())
            elif not leads and task is not None:
                log.warning("%s: no longer leading", name)
                await _cancel(task)
                task = None
            await asyncio.sleep(LOOK_SECONDS if task else 1.0)
    finally:
        if task is not None:
            await _cancel(task)
        with suppress(Error):
            await in_database(leases.resign, name)


async def _leads(name: str) -> bool:
    try:
        # Longer than two looks: one slow answer of the database must not end leadership.
        return await in_database(leases.lead, name, 3 * LOOK_SECONDS)
    except Error as error:
        log.warning("%s: the database does not answer: %s", name, error)
        return False


def _tell_end(name: str, task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s ended and is started again", name, exc_info=error)


async def _cancel(task: asyncio.Future[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
