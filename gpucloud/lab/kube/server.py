"""A cluster behind aiohttp: authentication, streams, and the join door of its nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from aiohttp import web

from gpucloud.kubeapi.cluster import Cluster
from gpucloud.kubeapi.door import Door, Request, Response
from gpucloud.kubeapi.errors import ApiError
from gpucloud.kubeapi.requests import respond
from gpucloud.lab.kube.access import Access

MAX_BODY = 3 * 1024 * 1024  # what a real API accepts

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(cluster: Cluster, access: Access, version: str) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY)
    for path in ("/livez", "/readyz", "/healthz"):
        app.router.add_get(path, _alive)
    app.router.add_get("/node/join", _join(access))
    app.router.add_route("*", "/{path:.*}", _api(Door(cluster, version, access.check), access))
    return app


async def _alive(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


def _join(access: Access) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        """The script that makes a machine a node, in exchange for a bootstrap token."""
        try:
            bearer = access.admit_kubelet(request.query.get("token", ""))
        except ApiError as refused:
            return _plain(respond(refused.code, refused.status()))
        script = f"#!/bin/sh\n# kubelet-token: {bearer}\n"
        return web.Response(text=script, content_type="text/x-shellscript")

    return answer


def _api(door: Door, access: Access) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        try:
            user = access.user(request.headers, certificate)
        except ApiError as refused:
            return _plain(respond(refused.code, refused.status()))
        response = door.answer(
            Request(
                method=request.method,
                path=request.path,
                query=request.query,
                headers=request.headers,
                body=await request.read(),
                user=user,
            )
        )
        if response.stream is None:
            return _plain(response)
        return await _stream(request, response)

    return answer


def _plain(response: Response) -> web.Response:
    return web.Response(
        status=response.status, body=response.body, content_type=response.content_type
    )


async def _stream(request: web.Request, response: Response) -> web.StreamResponse:
    assert response.stream is not None
    sent = web.StreamResponse(headers={"Content-Type": response.content_type})
    sent.enable_chunked_encoding()
    await sent.prepare(request)
    try:
        async with aclosing(response.stream) as lines:
            async for line in lines:
                await sent.write(line)
        await sent.write_eof()
    except ConnectionError:
        pass  # a watcher went away, as they do
    return sent
