"""The door's HTTP side: /agent/v1/ for agents and /<boot key>/agent.iso for BMCs, over TLS."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web
from django.db import Error

from gpucloud.engine.offload import in_database
from provisioning import agents
from provisioning.door.limits import CALLERS, Bucket
from provisioning.door.media import config_for, fixed_image

log = logging.getLogger(__name__)
SMALL, LARGE = 16 << 10, 2 << 20
CHUNK = 256 << 10
# A BMC reads media in thousands of small ranges: whether the key is good is asked now and then.
MEDIA_SECONDS, MEDIA_KEPT = 5.0, 256
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application() -> web.Application:
    door = Door()
    app = web.Application(middlewares=[door.guard], client_max_size=LARGE)
    app.router.add_post("/agent/v1/hello", door.hello)
    app.router.add_get("/agent/v1/plan", door.plan, allow_head=False)
    app.router.add_post("/agent/v1/progress", door.progress)
    app.router.add_post("/agent/v1/result", door.result)
    app.router.add_get(r"/{key:[A-Za-z0-9_-]{16,64}}/agent.iso", door.media)
    return app


async def serve(host: str, port: int, tls: ssl.SSLContext) -> None:
    """Serve until cancelled; calls that are under way are answered first."""
    # No access log: its lines would hold boot keys.
    runner = web.AppRunner(application(), access_log=None, keepalive_timeout=15, shutdown_timeout=3)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        log.info("the door listens on %s:%s", host, port)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


class Door:
    """One door: its limits and what it remembers for a few seconds."""

    def __init__(self) -> None:
        # By address, behind which a whole rack may stand: wrong keys and tokens, and calls of
        # anybody not known yet. Known callers are counted for themselves and never locked out.
        self.guesses = Bucket(burst=60, per_second=2)
        self.strangers = Bucket(burst=100, per_second=20)
        self.known = Bucket(burst=100, per_second=20)
        self._good: OrderedDict[str, None] = OrderedDict()
        self._media: OrderedDict[str, tuple[float, bytes | None]] = OrderedDict()

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        caller = request.remote or ""
        if not self._may_pass(request, caller):
            return _problem(429, "Too many calls.")
        try:
            answer = await handler(request)
            self._remember(request)
            return answer
        except agents.Refused as refused:
            if refused.status in (401, 403, 404):
                self.guesses.take(caller)
            log.info("refused a call from %s: %s", caller, refused.message)
            return _problem(refused.status, refused.message)
        except web.HTTPException as answer:
            return _problem(answer.status, answer.reason)
        except Error as error:
            log.warning("the database does not answer: %s", type(error).__name__)
            return _problem(503, "The console cannot answer now.")
        except Exception:
            log.exception("the door met a fault of its own")
            return _problem(500, "The console met a fault of its own.")

    def _may_pass(self, request: web.Request, caller: str) -> bool:
        who = _credential(request)
        if who in self._good:
            # Media are read in small ranges by design.
            return "key" in request.match_info or self.known.take(who)
        return not self.guesses.empty(caller) and self.strangers.take(caller)

    def _remember(self, request: web.Request) -> None:
        if who := _credential(request):
            self._good[who] = None
            self._good.move_to_end(who)
            if len(self._good) > CALLERS:
                self._good.popitem(last=False)

    async def hello(self, request: web.Request) -> web.Response:
        body = await _body(request, SMALL)
        token = await in_database(
            agents.hello,
            _text(body, "key", 100),
            _text(body, "system_uuid", 100),
            _texts(body, "macs"),
            _text(body, "serial", 200),
            request.remote or "",
        )
        return web.json_response({"token": token})

    async def plan(self, request: web.Request) -> web.Response:
        return web.json_response(await in_database(agents.plan, _token(request)))

    async def progress(self, request: web.Request) -> web.Response:
        token = _token(request)
        body = await _body(request, SMALL)
        percent = body.get("percent")
        if isinstance(percent, bool) or not isinstance(percent, (int, float)):
            raise agents.Refused(400, "percent must be a number.")
        if not 0 <= percent <= 100:
            raise agents.Refused(400, "percent must be within 0 and 100.")
        drive = body.get("drive")
        message = _text(body, "message", 2000)
        await in_database(
            agents.progress,
            token,
            int(percent),
            message,
            drive if isinstance(drive, str) else None,
        )
        return web.json_response({})

    async def result(self, request: web.Request) -> web.Response:
        token = _token(request)
        body = await _body(request, LARGE)
        ok, report = body.get("ok"), body.get("report")
        if not isinstance(ok, bool) or not isinstance(report, dict):
            raise agents.Refused(400, "ok must be true or false, and report an object.")
        drives = report.get("drives", [])
        if not isinstance(drives, list) or not all(isinstance(drive, dict) for drive in drives):
            raise agents.Refused(400, "report.drives must be a list of objects.")
        error = _text(body, "error", 2000)
        await in_database(agents.result, token, ok, error, report)
        return web.json_response({})

    async def media(self, request: web.Request) -> web.StreamResponse:
        """The image with this key's configuration in it, or the one range asked for."""
        config = await self._config(request.match_info["key"])
        if config is None:
            raise agents.Refused(404, "There is no such media.")
        image = fixed_image()
        headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store"}
        wanted = _range(request.headers.get("Range", ""), image.size)
        if wanted == UNSATISFIABLE:
            headers["Content-Range"] = f"bytes */{image.size}"
            return web.Response(status=416, headers=headers)
        start, end = wanted or (0, image.size)
        if wanted:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{image.size}"
        answer = web.StreamResponse(status=206 if wanted else 200, headers=headers)
        answer.content_type = "application/octet-stream"
        answer.content_length = end - start
        # Readers hang up when they have seen enough: a BMC that is switched off, a ramdisk.
        with suppress(ConnectionError):
            await answer.prepare(request)
            if request.method != "HEAD":
                for at in range(start, end, CHUNK):
                    await answer.write(image.read(config, at, min(at + CHUNK, end)))
            await answer.write_eof()
        return answer

    async def _config(self, key: str) -> bytes | None:
        known = self._media.get(digest := agents.digest_of(key))
        if known and time.monotonic() - known[0] < MEDIA_SECONDS:
            return known[1]
        config = await in_database(_media_config, key)
        self._media[digest] = (time.monotonic(), config)
        self._media.move_to_end(digest)
        if len(self._media) > MEDIA_KEPT:
            self._media.popitem(last=False)
        return config


def _credential(request: web.Request) -> str:
    """Digest of the boot key or token that the caller shows; empty at hello."""
    shown = request.match_info.get("key") or request.headers.get("Authorization", "")
    return agents.digest_of(shown) if shown else ""


def _media_config(key: str) -> bytes | None:
    return config_for(key) if agents.media_open(key) else None


def _problem(status: int, message: str) -> web.Response:
    headers = {"Retry-After": "5"} if status in (429, 503) else None
    return web.json_response({"error": message}, status=status, headers=headers)


def _token(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise agents.Refused(401, "There is no such session.")
    return token.strip()


async def _body(request: web.Request, most: int) -> dict[str, Any]:
    """The request's JSON object, read no further than `most` bytes."""
    if (request.content_length or 0) > most:
        raise agents.Refused(413, "The request is too large.")
    text = b""
    async for chunk in request.content.iter_chunked(CHUNK):
        text += chunk
        if len(text) > most:
            raise agents.Refused(413, "The request is too large.")
    try:
        # NUL characters and lone surrogates are JSON, and PostgreSQL keeps neither.
        body = json.loads(text, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise agents.Refused(400, "The request is not usable JSON.") from error
    if not isinstance(body, dict) or b"\\u0000" in text:
        raise agents.Refused(400, "The request is not usable JSON.")
    return body


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _text(body: dict[str, Any], name: str, most: int) -> str:
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise agents.Refused(400, f"{name} must be text of at most {most} characters.")
    return value


def _texts(body: dict[str, Any], name: str) -> list[str]:
    value = body.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise agents.Refused(400, f"{name} must be a list of texts.")
    return value


UNSATISFIABLE = (-1, -1)
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Start and end (exclusive) of the one range asked for; None for the whole image."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        length = min(int(last), size)
        return (size - length, size) if length else UNSATISFIABLE
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return None
    return (start, end) if start < size else UNSATISFIABLE
