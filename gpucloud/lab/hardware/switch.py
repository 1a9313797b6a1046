"""The door of the lab's switch: NVUE REST with Basic auth over one Switch."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import os
from collections.abc import Awaitable, Callable
from functools import reduce
from typing import Any

from aiohttp import web

from gpucloud.lab.hardware.switch_state import Port, Refused, Switch, Tree, ports_of_rack

__all__ = ["Port", "Switch", "build_app", "ports_of_rack"]

APPLY_SECONDS = 2.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Nvue:
    """Handlers of one switch; the Switch decides, this only speaks."""

    def __init__(self, switch: Switch, username: str, password: str, delay: float) -> None:
        self._switch = switch
        self._login = (username.encode(), password.encode())
        self._delay = delay

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._may_enter(request.headers.get("Authorization", "")):
            return _problem(401, "Authentication is required.", {"WWW-Authenticate": "Basic"})
        try:
            return await handler(request)
        except Refused as refused:
            return _problem(refused.status, refused.detail)
        except web.HTTPException as error:
            return _problem(error.status, error.reason)

    async def create_revision(self, request: web.Request) -> web.Response:
        name = self._switch.create_revision()
        return web.json_response({name: _public(self._switch.revision(name))})

    async def list_revisions(self, request: web.Request) -> web.Response:
        known = self._switch.revisions()
        return web.json_response({name: _public(revision) for name, revision in known.items()})

    async def show_revision(self, request: web.Request) -> web.Response:
        name = request.match_info["revision"]
        if name in ("applied", "startup"):
            return web.json_response({"state": "applied", "transition": {}})
        return web.json_response(_public(self._switch.revision(name)))

    async def change_revision(self, request: web.Request) -> web.Response:
        name, body = request.match_info["revision"], await _json(request)
        prompt = body.get("auto-prompt")
        agreed = isinstance(prompt, dict) and prompt.get("ays") == "ays_yes"
        if body.get("state") == "save" and name in ("applied", "startup"):
            if not agreed:
                raise Refused(400, "Saving needs auto-prompt ays_yes.")
            self._switch.save_applied()
            return web.json_response({"state": "save", "transition": {"issue": {}, "progress": ""}})
        if body.get("state") != "apply":
            raise Refused(400, "state must be 'apply', or 'save' on the applied revision.")
        was = self._switch.revision(name)["state"]
        revision = self._switch.start_apply(name, agreed)
        if revision["state"] == "apply" and was != "apply":
            loop = asyncio.get_running_loop()
            loop.call_later(self._delay, self._switch.finish_apply, name)
        return web.json_response(_public(revision))

    async def show(self, request: web.Request) -> web.Response:
        steps = _steps(request)
        node: Any = self._switch.tree(request.query.get("rev", "applied"))
        for step in steps:
            if not isinstance(node, dict) or step not in node:
                raise Refused(404, f"/{'/'.join(steps)} is not configured.")
            node = node[step]
        return web.json_response(node)

    async def change(self, request: web.Request) -> web.Response:
        if "rev" not in request.query:
            raise Refused(400, "A change needs ?rev= of a pending revision.")
        steps = _steps(request)
        body: Any = await _json(request)
        patch: Tree = reduce(lambda below, step: {step: below}, reversed(steps), body)
        node: Any = self._switch.patch(request.query["rev"], patch)
        for step in steps:
            node = node.get(step, {})
        return web.json_response(node)

    def _may_enter(self, header: str) -> bool:
        scheme, _, value = header.partition(" ")
        try:
            username, _, password = base64.b64decode(value, validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return False
        known, secret = self._login
        same = hmac.compare_digest(username, known) & hmac.compare_digest(password, secret)
        return scheme.lower() == "basic" and bool(same)


def build_app(
    switch: Switch, username: str, password: str, apply_seconds: float | None = None
) -> web.Application:
    """The switch's REST service; apply_seconds defaults to 2 s divided by LAB_SPEED."""
    speed = float(os.environ.get("LAB_SPEED", "20"))
    delay = APPLY_SECONDS / speed if apply_seconds is None else apply_seconds
    door = Nvue(switch, username, password, delay)
    app = web.Application(middlewares=[door.guard], client_max_size=1 << 20)
    root = "/nvue_v1"
    app.router.add_post(f"{root}/revision", door.create_revision)
    app.router.add_get(f"{root}/revision", door.list_revisions)
    app.router.add_get(root + "/revision/{revision}", door.show_revision)
    app.router.add_patch(root + "/revision/{revision}", door.change_revision)
    app.router.add_get(root + "/{path:.*}", door.show)
    app.router.add_patch(root + "/{path:.*}", door.change)
    app.on_startup.append(_finish_interrupted(switch))
    return app


def _finish_interrupted(switch: Switch) -> Callable[[web.Application], Awaitable[None]]:
    async def finish(app: web.Application) -> None:
        switch.finish_interrupted()

    return finish


def _public(revision: Tree) -> Tree:
    return {"state": revision["state"], "transition": revision["transition"]}


def _steps(request: web.Request) -> list[str]:
    return [step for step in request.match_info["path"].split("/") if step]


async def _json(request: web.Request) -> Tree:
    try:
        body = await request.json()
    except ValueError as error:
        raise Refused(400, "The body is not JSON.") from error
    if not isinstance(body, dict):
        raise Refused(400, "The body is not a JSON object.")
    return body


def _problem(status: int, detail: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"title": detail, "status": status, "detail": detail, "type": "about:blank"}
    return web.json_response(body, status=status, headers=headers)
