"""Requests and responses of a Kubernetes API, whatever web server carries them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpucloud.kubeapi import protobuf
from gpucloud.kubeapi.errors import ApiError, Obj, bad_request


@dataclass(frozen=True)
class User:
    """Who asks. `key` is the authenticator's own, for its authoriser."""

    name: str
    groups: tuple[str, ...] = ()
    key: str = ""


@dataclass(frozen=True)
class Attributes:
    """What is asked, for the authoriser. A `dry` question must leave no trace."""

    verb: str
    resource: str = ""  # Resource.id; empty for paths such as /version
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    fields: str = ""
    dry: bool = False


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # must ignore case
    body: bytes
    user: User

    @property
    def media_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    @property
    def manager(self) -> str:
        """The name for managedFields: told, or the program's name."""
        agent = self.headers.get("User-Agent", "").partition("/")[0]
        return self.query.get("fieldManager") or agent or "unknown"

    @property
    def dry_run(self) -> bool:
        asked = self.query.get("dryRun", "")
        if asked not in ("", "All"):
            raise bad_request(f"dryRun: Unsupported value: {asked!r}: supported values: 'All'")
        return bool(asked)

    def read(self) -> Any:
        """The body as JSON or YAML; None when there is none."""
        if not self.body:
            return None
        if self.media_type == protobuf.MEDIA_TYPE:
            return protobuf.read(self.body)
        try:
            if "yaml" in self.media_type:
                return yaml.safe_load(self.body)
            return json.loads(self.body)
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the body could not be read: {error}") from None


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    stream: AsyncGenerator[bytes, None] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Accepted:
    """How the client wants objects: plain, as a Table, or their metadata only."""

    shape: str = ""  # "", Table, PartialObjectMetadata
    yaml: bool = False


def accepted(header: str) -> Accepted:
    """The first media type that can be served; 406 when none can."""
    if not header.strip():
        return Accepted()
    for clause in header.split(","):
        kind, *parameters = (part.strip() for part in clause.split(";"))
        said = dict(p.split("=", 1) for p in parameters if "=" in p)
        shape = said.get("as", "")
        if kind == "application/yaml" and not shape:
            return Accepted(yaml=True)
        if kind not in ("application/json", "*/*", "application/*"):
            continue
        if not shape:
            return Accepted()
        meta = (said.get("g"), said.get("v")) == ("meta.k8s.io", "v1")
        if meta and shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Accepted(shape.removesuffix("List"))
    raise ApiError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )


def respond(status: int, body: Obj, as_yaml: bool = False) -> Response:
    if as_yaml:
        return Response(status, yaml.safe_dump(body).encode(), "application/yaml")
    return Response(status, json.dumps(body, separators=(",", ":")).encode())
