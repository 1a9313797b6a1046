"""The HTTP side of a cluster, for any web server: a Request goes in, a Response comes out."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from gpucloud.kubeapi import deletion, discovery, errors, openapi, patches, reviews, watch
from gpucloud.kubeapi.cluster import Cluster, Patch, Selection, Writer
from gpucloud.kubeapi.errors import ApiError, Obj
from gpucloud.kubeapi.kinds import Resource
from gpucloud.kubeapi.requests import (
    Accepted,
    Attributes,
    Request,
    Response,
    User,
    accepted,
    respond,
)  # fmt: skip
from gpucloud.kubeapi.store import Key
from gpucloud.kubeapi.table import partial, table
from gpucloud.kubeapi.watch import Watched

__all__ = ["Attributes", "Door", "Request", "Response", "User"]

log = logging.getLogger(__name__)

_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_PATCHES = (patches.JSON, patches.MERGE, patches.STRATEGIC, patches.APPLY)
# A real API ends watches after 30 to 60 minutes; clients must live with it.
_WATCH_SECONDS = (1800, 3600)


@dataclass(frozen=True)
class Target:
    """What a path addresses."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Door:
    """Answers requests for one cluster. `check` raises 403 for what a user may not do."""

    def __init__(self, cluster: Cluster, version: str, check: reviews.Check) -> None:
        self._cluster = cluster
        self._version = version
        self._check = check

    def answer(self, request: Request) -> Response:
        """Never raises: refusals and bugs are answered as Status."""
        try:
            return self._answer(request)
        except ApiError as refused:
            return respond(refused.code, refused.status())
        except Exception as bug:
            log.exception("%s %s", request.method, request.path)
            message = f"Internal error occurred: {type(bug).__name__}"
            return respond(500, ApiError(500, "InternalError", message).status())

    def _answer(self, request: Request) -> Response:
        parts = [part for part in request.path.split("/") if part]
        if parts[:1] == ["api"] and len(parts) > 2:
            return self._object(request, self._target("", parts[1], parts[2:]))
        if parts[:1] == ["apis"] and len(parts) > 3:
            return self._object(request, self._target(parts[1], parts[2], parts[3:]))
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        self._check(request.user, Attributes("get"), None)
        return respond(200, self._document(parts))

    def _document(self, parts: list[str]) -> Obj:
        registry = self._cluster.registry
        match parts:
            case []:
                return {"paths": ["/api", "/apis", "/livez", "/openapi", "/readyz", "/version"]}
            case ["version"]:
                return discovery.version(self._version)
            case ["api"]:
                return discovery.core_versions()
            case ["api", version]:
                return discovery.resources(registry, "", version)
            case ["apis"]:
                return discovery.groups(registry)
            case ["apis", group]:
                return discovery.group(registry, group)
            case ["apis", group, version]:
                return discovery.resources(registry, group, version)
            case ["openapi", "v2"]:
                return openapi.swagger(registry)
            case ["openapi", "v3"]:
                return openapi.index(registry)
            case ["openapi", "v3", "api", version]:
                return openapi.document(registry, "", version)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document(registry, group, version)
        raise errors.no_such_path()

    def _target(self, group: str, version: str, rest: list[str]) -> Target:
        """`namespaces/x/status` is the namespace's; `namespaces/x/pods` are the pods in it."""
        namespace = ""
        own = len(rest) < 3 or (len(rest) == 3 and rest[2] in ("status", "finalize"))
        if rest[0] == "namespaces" and not (group == "" and own):
            if len(rest) < 3:
                raise errors.no_such_path()
            namespace, rest = rest[1], rest[2:]
        resource = self._cluster.registry.at(group, version, rest[0])
        if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
            raise errors.no_such_path()
        name, subresource, *_ = [*rest[1:], "", ""]
        if resource.namespaced and name and not namespace:
            raise errors.no_such_path()
        return Target(resource, namespace, name, subresource)

    def _object(self, request: Request, at: Target) -> Response:
        body = request.read()
        verb = self._verb(request, at)
        selector = request.query.get("fieldSelector", "")
        asked = Attributes(
            verb, at.resource.id, at.namespace, at.name, at.subresource, selector,
            dry=bool(request.query.get("dryRun")),
        )  # fmt: skip
        held = body if isinstance(body, dict) else None
        self._check(request.user, asked, held)
        if at.subresource not in ("", "status"):
            return self._handled(request, at, held or {})
        if "create" in at.resource.verbs and len(at.resource.verbs) == 1:
            return respond(201, reviews.answer(at.resource, held or {}, request.user, self._check))
        if verb in ("get", "list", "watch"):
            return self._read(request, at, verb)
        return self._write(request, at, verb, body)

    def _verb(self, request: Request, at: Target) -> str:
        verbs = _ITEM_VERBS if at.name else _COLLECTION_VERBS
        verb = verbs.get("GET" if request.method == "HEAD" else request.method, "")
        if at.subresource == "status":
            if not at.resource.has_status:
                raise errors.no_such_path()
            if verb == "delete":
                verb = ""
        elif at.subresource:
            if (at.resource.id, at.subresource) not in self._cluster.handlers:
                raise errors.no_such_path()
            return "create" if request.method == "POST" else "get"
        if verb in ("get", "list") and request.flag("watch"):
            verb = "watch"
        known = verb in at.resource.verbs
        if not known or (verb == "create" and at.resource.namespaced and not at.namespace):
            raise errors.method_not_allowed()
        return verb

    def _handled(self, request: Request, at: Target, body: Obj) -> Response:
        handler = self._cluster.handlers[at.resource.id, at.subresource]
        made = handler(self._cluster, at.namespace, at.name, body, _writer(request))
        return respond(201 if request.method == "POST" else 200, made)

    # Reading

    def _read(self, request: Request, at: Target, verb: str) -> Response:
        shape = accepted(request.headers.get("Accept", ""))
        include = request.query.get("includeObject", "Metadata")
        query = request.query
        if verb == "get":
            found = self._cluster.get(at.resource, at.namespace, at.name)
            return respond(200, _one(at.resource, found, shape, include), shape.yaml)
        if verb == "watch":
            return self._watch(request, at, shape, include)
        selection = _selection(request)
        if query.get("resourceVersionMatch") and not selection.version:
            raise errors.bad_request(
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                "resourceVersion is provided"
            )
        listed = self._cluster.list(at.resource, at.namespace, selection)
        return respond(200, _many(at.resource, listed, shape, include), shape.yaml)

    def _watch(self, request: Request, at: Target, shape: Accepted, include: str) -> Response:
        query = request.query
        if request.flag("sendInitialEvents"):
            message = (
                "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature "
                "gate is enabled"
            )
            cause = ("FieldValueForbidden", message, "sendInitialEvents")
            raise errors.invalid("ListOptions.meta.k8s.io", "", [cause])
        by_field = query.get("fieldSelector", "")
        if at.name:
            by_field = f"metadata.name={at.name}"
        timeout = _number(query.get("timeoutSeconds", "")) or random.uniform(*_WATCH_SECONDS)
        wanted = watch.Watch(
            resource=at.resource,
            match=self._cluster.match(at.resource, query.get("labelSelector", ""), by_field),
            namespace=at.namespace,
            since=query.get("resourceVersion", ""),
            bookmarks=request.flag("allowWatchBookmarks"),
            timeout=timeout,
        )
        events = self._cluster.watch(wanted)
        return Response(200, stream=_lines(at.resource, events, shape, include))

    # Writing

    def _write(self, request: Request, at: Target, verb: str, body: Any) -> Response:
        writer, dry_run = _writer(request), request.dry_run
        shape = accepted(request.headers.get("Accept", ""))
        cluster, place = self._cluster, (at.resource, at.namespace)
        status = 200
        if verb == "create":
            made = cluster.create(*place, body, writer, dry_run)
            status = 201
        elif verb == "update":
            made = cluster.update(*place, at.name, body, writer, at.subresource, dry_run)
        elif verb == "patch":
            patch = _patch(request, body)
            fresh = patch.kind == patches.APPLY and not self._exists(at)
            made = cluster.patch(*place, at.name, patch, writer, at.subresource, dry_run)
            status = 201 if fresh else 200
        elif verb == "delete":
            return self._delete(request, at, body, writer)
        else:
            options = _options(request, body)
            gone = cluster.delete_collection(*place, _selection(request), writer, options)
            return respond(200, gone)
        return respond(status, _one(at.resource, made, shape, "Object"), shape.yaml)

    def _exists(self, at: Target) -> bool:
        key = Key(at.resource.id, at.namespace, at.name)
        return self._cluster.store.get(key) is not None

    def _delete(self, request: Request, at: Target, body: Any, writer: Writer) -> Response:
        options = _options(request, body)
        left, gone = self._cluster.delete(at.resource, at.namespace, at.name, writer, options)
        if not gone:
            return respond(200, left)
        details = {
            "name": at.name,
            "group": at.resource.group,
            "kind": at.resource.plural,
            "uid": left["metadata"]["uid"],
        }
        told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return respond(200, told | {"details": {k: v for k, v in details.items() if v}})


def _writer(request: Request) -> Writer:
    return Writer(request.user.name, request.manager)


def _number(text: str) -> int:
    if text and not text.isdigit():
        raise errors.bad_request(f"{text!r} is not a number")
    return int(text or 0)


def _selection(request: Request) -> Selection:
    query = request.query
    return Selection(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=_number(query.get("limit", "")),
        continue_from=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        version_match=query.get("resourceVersionMatch", ""),
    )


def _patch(request: Request, body: Any) -> Patch:
    kind = request.media_type
    if kind not in _PATCHES:
        raise errors.unsupported_media_type(list(_PATCHES))
    if kind == patches.APPLY and not request.query.get("fieldManager"):
        raise errors.bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required")
    return Patch(kind, body, request.flag("force"))


def _options(request: Request, body: Any) -> deletion.Options:
    how = request.query.get("propagationPolicy", "")
    if request.flag("orphanDependents"):
        how = "Orphan"
    return deletion.options(body if isinstance(body, dict) else {}, how, request.dry_run)


def _one(resource: Resource, obj: Obj, shape: Accepted, include: str) -> Obj:
    if shape.shape == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return table(resource, [obj], meta, include)
    return partial(obj) if shape.shape else obj


def _many(resource: Resource, listed: Obj, shape: Accepted, include: str) -> Obj:
    if shape.shape == "Table":
        return table(resource, listed["items"], listed["metadata"], include)
    if shape.shape:
        kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return listed | kind | {"items": [partial(obj) for obj in listed["items"]]}
    return listed


async def _lines(
    resource: Resource, events: AsyncGenerator[Watched, None], shape: Accepted, include: str
) -> AsyncGenerator[bytes, None]:
    async with aclosing(events) as following:
        async for event in following:
            shaped = event
            if event.type not in ("ERROR", "BOOKMARK"):
                shaped = replace(event, object=_one(resource, event.object, shape, include))
            elif event.type == "BOOKMARK" and shape.shape:
                meta = event.object["metadata"]
                body = partial(event.object)
                if shape.shape == "Table":
                    body = table(resource, [], meta, include)
                shaped = replace(event, object=body)
            line = {"type": shaped.type, "object": shaped.object}
            yield json.dumps(line, separators=(",", ":")).encode() + b"\n"
