"""Real peers for the contract tests: an aiohttp application on 127.0.0.1 in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aiohttp import web


class Peer:
    """One application, served until close(); `call` runs a function in its event loop."""

    def __init__(self, app, tls=None):
        self.loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        port = self.run(self._start(tls))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    async def _start(self, tls):
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        return self._runner.addresses[0][1]

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def close(self):
        self.run(self._runner.cleanup())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def serve():
    peers = []

    def start(app, tls=None):
        peers.append(Peer(app, tls))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()
