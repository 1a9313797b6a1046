"""The network path of an agent: a CONNECT proxy that is open while the boot port allows it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

HEAD_SECONDS = 10.0
LARGEST_HEAD = 8192
LOOK_SECONDS = 0.2


class AgentProxy:
    """Forwards to the agent door only, and cuts what is open when the VLAN changes."""

    def __init__(self, door: str, is_open: Callable[[], bool]) -> None:
        parts = urlsplit(door)
        self._target = (parts.hostname or "", parts.port or 443)
        self._is_open = is_open
        self._tunnels: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Serve on a free port of 127.0.0.1 for as long as the context lasts."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LARGEST_HEAD)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in list(self._tunnels):
                task.cancel()
            await asyncio.gather(*self._tunnels, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tunnels.add(task)
            task.add_done_callback(self._tunnels.discard)
        with contextlib.suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        method, _, rest = head.partition(b" ")
        target = rest.partition(b" ")[0].decode(errors="replace")
        if method != b"CONNECT" or target != f"{self._target[0]}:{self._target[1]}":
            await _say(writer, "403 Forbidden")
            return
        if not self._is_open():
            # No answer comes from a network one is not in; a refusal here keeps agents quick.
            await _say(writer, "504 Gateway Timeout")
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            await _say(writer, "502 Bad Gateway")
            return
        try:
            await _say(writer, "200 Connection established")
            await self._forward(reader, writer, far_reader, far_writer)
        finally:
            far_writer.close()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        jobs = {
            asyncio.create_task(self._pipe(reader, far_writer)),
            asyncio.create_task(self._pipe(far_reader, writer)),
            asyncio.create_task(self._until_closed()),
        }
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(64 * 1024):
            if not self._is_open():
                return
            writer.write(data)
            await writer.drain()

    async def _until_closed(self) -> None:
        while self._is_open():
            await asyncio.sleep(LOOK_SECONDS)


async def _say(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    await writer.drain()
