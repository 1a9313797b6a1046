"""A stub of a Kubernetes API with knobs: what a follower may meet, on purpose."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import ssl

from aiohttp import web

from gpucloud.lab.tls import device_context

TOKEN = "let-me-in"


class StubApi:
    """Collections by path, what it was asked, and ways to make it fail."""

    def __init__(self, folder):
        self.folder = folder
        self.version = 100
        self.oldest = 0
        self.objects = {}
        self.history = []
        self.lists, self.watches, self.patches = [], [], []
        self.refuse_patches = 0
        self.down = False
        self._changed = asyncio.Event()
        self._streams = set()

    async def start(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        pem = self.folder / "api.pem"
        context = device_context(pem, "api")
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        text = pem.read_text()
        authority = text[text.index("-----BEGIN CERTIFICATE") :].encode()
        ssl.PEM_cert_to_DER_cert(authority.decode())
        self.kubeconfig = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [
                    {
                        "name": "c",
                        "cluster": {
                            "server": f"https://127.0.0.1:{port}",
                            "certificate-authority-data": base64.b64encode(authority).decode(),
                        },
                    }
                ],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
            }
        )

    async def stop(self):
        self.cut()
        await self._runner.cleanup()

    # -- what a test does to it

    def put(self, path, obj):
        """Write an object, as somebody at the API would."""
        name = obj["metadata"]["name"]
        held = self.objects.setdefault(path, {})
        self.version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._tell("MODIFIED" if name in held else "ADDED", path, obj)
        held[name] = obj
        return obj

    def remove(self, path, name):
        self.version += 1
        self._tell("DELETED", path, self.objects[path].pop(name))

    def cut(self):
        for stream in list(self._streams):
            stream.cancel()

    def forget(self):
        self.oldest = self.version

    # -- what it answers

    def _tell(self, kind, path, obj):
        self.history.append((self.version, kind, path, obj))
        self._changed.set()
        self._changed = asyncio.Event()

    async def _answer(self, request):
        if self.down:
            return web.Response(status=503)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "who are you?"}, status=401)
        if request.method == "PATCH":
            return await self._patch(request)
        if request.query.get("watch") == "true":
            return await self._watch(request)
        collection, _, name = request.path.rpartition("/")
        if name in self.objects.get(collection, {}):
            return web.json_response(self.objects[collection][name])
        self.lists.append(request.path)
        items = list(self.objects.get(request.path, {}).values())
        return web.json_response(
            {"items": items, "metadata": {"resourceVersion": str(self.version)}}
        )

    async def _patch(self, request):
        body = await request.json()
        collection, _, name = request.path.rpartition("/")
        self.patches.append((name, body, dict(request.query), request.content_type))
        if self.refuse_patches:
            self.refuse_patches -= 1
            return web.json_response({"message": "changed"}, status=409)
        obj = copy.deepcopy(self.objects[collection][name])
        if body["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            return web.json_response({"message": "changed"}, status=409)
        obj["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        return web.json_response(self.put(collection, obj))

    async def _watch(self, request):
        since = int(request.query["resourceVersion"])
        self.watches.append(since)
        answer = web.StreamResponse()
        await answer.prepare(request)
        task = asyncio.ensure_future(self._stream(answer, request.path, since))
        self._streams.add(task)
        await asyncio.gather(task, return_exceptions=True)
        self._streams.discard(task)
        return answer

    async def _stream(self, answer, path, since):
        if since < self.oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await self._send(answer, "ERROR", gone)
            return
        while True:
            changed = self._changed
            for version, kind, where, obj in self.history:
                if version > since and where == path:
                    await self._send(answer, kind, obj)
            since = self.version
            await changed.wait()

    async def _send(self, answer, kind, obj):
        await answer.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")
