"""A small asynchronous client of a Kubernetes API: list, watch, merge patch."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp

from inventory.drivers.kube import MANAGER, MERGE, Kube

Obj = dict[str, Any]
LIST_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5, sock_read=30)
PAGE = 500
# A BareMetalHost with its inspection is some 100 KB; an API that sends more is not believed.
LARGEST_LINE = 8 << 20
LARGEST_ANSWER = 64 << 20


class ApiTrouble(Exception):
    """The API did not do what was asked: its status (0 when it did not answer) and its words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def expired(self) -> bool:
        """The past from which to follow is forgotten."""
        return self.status == 410


class Api:
    """One API by its kubeconfig, for one event loop. DriverError when the kubeconfig is useless."""

    def __init__(self, kubeconfig: str) -> None:
        self._conf = Kube(kubeconfig).api.configuration
        self.host = str(self._conf.host).rstrip("/")
        connector = aiohttp.TCPConnector(ssl=self._tls(), limit=8)
        jar = aiohttp.DummyCookieJar()
        self._http = aiohttp.ClientSession(connector=connector, cookie_jar=jar)

    async def close(self) -> None:
        await self._http.close()

    async def list(self, path: str) -> tuple[list[Obj], str]:
        """All objects of a collection, and the version from which to follow it."""
        items: list[Obj] = []
        query = {"limit": str(PAGE)}
        while True:
            found = await self._json("GET", path, query)
            items += found.get("items") or []
            meta = found.get("metadata") or {}
            if not meta.get("continue"):
                return items, str(meta.get("resourceVersion") or "")
            query["continue"] = str(meta["continue"])

    async def get(self, path: str) -> Obj:
        return await self._json("GET", path, {})

    async def merge(self, path: str, body: Obj) -> Obj:
        """A JSON merge patch under our own name."""
        return await self._json("PATCH", path, {"fieldManager": MANAGER}, body)

    async def watch(
        self, path: str, version: str, seconds: int
    ) -> AsyncGenerator[tuple[str, Obj], None]:
        """Events after this version as (type, object), first of all OPEN; ends after `seconds`."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        # An API that dies without a word is noticed when it does not end the watch in time.
        timeout = aiohttp.ClientTimeout(total=seconds + 15, sock_connect=5)
        async with self._request("GET", path, query, timeout=timeout) as answer:
            if answer.status != 200:
                raise _trouble(answer.status, await _read(answer))
            yield "OPEN", {}
            async for line in _lines(answer):
                event = _object(line)
                kind, obj = str(event.get("type")), event.get("object") or {}
                if kind == "ERROR":
                    raise ApiTrouble(int(obj.get("code") or 0), str(obj.get("message") or ""))
                yield kind, obj

    async def _json(
        self, method: str, path: str, query: dict[str, str], body: Obj | None = None
    ) -> Obj:
        async with self._request(method, path, query, body) as answer:
            text = await _read(answer)
            if answer.status >= 300:
                raise _trouble(answer.status, text)
            return _object(text)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Obj | None = None,
        timeout: aiohttp.ClientTimeout = LIST_TIMEOUT,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Accept": "application/json", "User-Agent": "gpucloud"}
        if body is not None:
            headers["Content-Type"] = MERGE
        # Asked each time: tokens of exec plugins and token files run out.
        token = await asyncio.to_thread(self._conf.get_api_key_with_prefix, "authorization")
        if token:
            headers["Authorization"] = token
        url = f"{self.host}{path}?{urlencode(query)}" if query else self.host + path
        data = None if body is None else json.dumps(body).encode()
        try:
            async with self._http.request(
                method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                yield answer
        except TimeoutError:
            raise ApiTrouble(0, f"The API at {self.host} does not answer in time.") from None
        except (aiohttp.ClientError, OSError) as error:
            words = f"The API at {self.host} does not answer ({type(error).__name__})."
            raise ApiTrouble(0, words) from None

    def _tls(self) -> ssl.SSLContext:
        conf = self._conf
        context = ssl.create_default_context(
            cadata=getattr(conf, "ca_cert_data", None) or None, cafile=conf.ssl_ca_cert or None
        )
        if not conf.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if conf.cert_file:
            context.load_cert_chain(conf.cert_file, conf.key_file)
        return context


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    text = bytearray()
    async for chunk in answer.content.iter_any():
        text += chunk
        if len(text) > LARGEST_ANSWER:
            raise ApiTrouble(0, "The API's answer is far too large.")
    return bytes(text)


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    # Not by aiohttp's own reader of lines, which takes 128 KB at most.
    rest = bytearray()
    async for chunk in answer.content.iter_any():
        rest += chunk
        if len(rest) > LARGEST_LINE + len(chunk):
            raise ApiTrouble(0, "The API's event is far too large.")
        if b"\n" in chunk:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if line.strip():
                    yield bytes(line)


def _object(text: bytes) -> Obj:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ApiTrouble(0, "The API's answer is no JSON object.")
    return found


def _trouble(status: int, text: bytes) -> ApiTrouble:
    try:
        said = json.loads(text).get("message")
    except (ValueError, AttributeError, RecursionError):
        said = None
    return ApiTrouble(status, str(said or f"The API answered with {status}.")[:300])
