"""OpenAPI documents: enough for kubectl's validation, dry run, apply and explain."""

from __future__ import annotations

import hashlib
import json

from gpucloud.kubeapi.errors import Obj, no_such_path
from gpucloud.kubeapi.kinds import Registry, Resource

_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def index(registry: Registry) -> Obj:
    """The v3 index; each address carries a hash, so that clients may cache what is behind it."""
    paths: Obj = {}
    for group, versions in registry.versions().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            text = json.dumps(document(registry, group, version), sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> Obj:
    found = registry.of_group(group, version)
    if not found:
        raise no_such_path()
    paths: Obj = {}
    for resource in found:
        paths |= _paths(resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": {_schema_name(r): _schema(r) for r in found}},
    }


def swagger(registry: Registry) -> Obj:
    """The v2 document, of definitions only."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": {},
        "definitions": {_schema_name(r): _schema(r) for r in registry},
    }


def _schema_name(resource: Resource) -> str:
    group = ".".join(reversed(resource.group.split("."))) or "core"
    return f"{group}.{resource.version}.{resource.kind}"


def _gvk(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema(resource: Resource) -> Obj:
    schema = dict(resource.schema or {"x-kubernetes-preserve-unknown-fields": True})
    schema["type"] = "object"
    own = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    schema["properties"] = own | (schema.get("properties") or {})
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _paths(resource: Resource) -> Obj:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    if resource.namespaced:
        base += "/namespaces/{namespace}"
    base += f"/{resource.plural}"
    collection = {"get": "list", "post": "create"}
    item = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    paths = {
        base: {m: _operation(resource, v) for m, v in collection.items() if v in resource.verbs},
        base + "/{name}": {m: _operation(resource, v) for m, v in item.items()
                           if v in resource.verbs},
    }  # fmt: skip
    return {path: operations for path, operations in paths.items() if operations}


def _operation(resource: Resource, verb: str) -> Obj:
    operation: Obj = {
        "operationId": f"{verb}{resource.kind}",
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": _gvk(resource),
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {
                    "$ref": f"#/components/schemas/{_schema_name(resource)}"}}},
            }
        },
    }  # fmt: skip
    # The patch operation names no strategic merge type: kubectl then takes the merge keys from
    # its own types, as it should, for these schemas do not hold them.
    if verb in ("create", "update", "patch", "delete"):
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string"}}
            for name in _WRITE_PARAMETERS
        ]
    return operation
