"""Reading the few kinds that kubectl sends as protobuf whatever a server prefers.

Answers are always JSON, which every client accepts. A body is the mark `k8s\\0` and an envelope
with type and raw object; the fields are those of the published .proto files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gpucloud.kubeapi.errors import Obj, bad_request, unsupported_media_type

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MARK = b"k8s\x00"

# Field number → name and type. A type is string, bool, int, bytes, time or another message;
# `[x]` is a list of x, `{x}` a map from string to x.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Envelope": {1: ("type", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"),
        5: ("uid", "string"), 6: ("resourceVersion", "string"), 7: ("generation", "int"),
        8: ("creationTimestamp", "time"), 9: ("deletionTimestamp", "time"),
        10: ("deletionGracePeriodSeconds", "int"), 11: ("labels", "{string}"),
        12: ("annotations", "{string}"), 13: ("ownerReferences", "[OwnerReference]"),
        14: ("finalizers", "[string]"),
    },
    "OwnerReference": {
        1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"),
        5: ("apiVersion", "string"), 6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "Secret": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "{bytes}"), 3: ("type", "string"),
        4: ("stringData", "{string}"), 5: ("immutable", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "{string}"), 3: ("binaryData", "{bytes}"),
        4: ("immutable", "bool"),
    },
    "Reference": {
        1: ("kind", "string"), 2: ("namespace", "string"), 3: ("name", "string"),
    },
    "LocalReference": {1: ("name", "string")},
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"), 2: ("secrets", "[Reference]"),
        3: ("imagePullSecrets", "[LocalReference]"), 4: ("automountServiceAccountToken", "bool"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"), 2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"), 4: ("propagationPolicy", "string"),
        5: ("dryRun", "[string]"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "Access")},
    "Access": {1: ("resourceAttributes", "Asked"), 2: ("nonResourceAttributes", "AskedPath")},
    "Asked": {
        1: ("namespace", "string"), 2: ("verb", "string"), 3: ("group", "string"),
        4: ("version", "string"), 5: ("resource", "string"), 6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "AskedPath": {1: ("path", "string"), 2: ("verb", "string")},
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "Rules")},
    "Rules": {1: ("namespace", "string")},
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
}  # fmt: skip


def read(body: bytes) -> Obj:
    """The object in JSON's shape; 415 for kinds that are not known here."""
    if not body.startswith(_MARK):
        raise bad_request("the body is not in the Kubernetes protobuf encoding")
    try:
        envelope = _message("Envelope", body[len(_MARK) :])
        kind = envelope["type"]["kind"]
        if kind not in _MESSAGES:
            raise unsupported_media_type(["application/json", "application/yaml"])
        return dict(envelope["type"]) | _message(kind, envelope.get("raw", b""))
    except (IndexError, KeyError, ValueError) as error:
        raise bad_request(f"the protobuf body could not be read: {error!r}") from None


def _message(name: str, data: bytes) -> Obj:
    known = _MESSAGES[name]
    read: Obj = {}
    for number, value in _fields(data):
        if number not in known:
            continue
        field, kind = known[number]
        if kind.startswith("["):
            read.setdefault(field, []).append(_value(kind[1:-1], value))
        elif kind.startswith("{"):
            pair = dict(_fields(value))
            held = _value(kind[1:-1], pair.get(2, b""))
            read.setdefault(field, {})[pair[1].decode()] = held
        elif held := _value(kind, value):
            read[field] = held
    return read


def _value(kind: str, value: Any) -> Any:
    if kind == "string":
        return value.decode()
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if kind == "raw":
        return value
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    if kind == "time":
        seconds = dict(_fields(value)).get(1)
        if seconds is None:
            return None
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _message(kind, value)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and raw value of each field: an int, or the bytes of what has a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("a field is longer than its message")
            yield tag >> 3, data[at : at + size]
            at += size
        elif tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
        else:
            raise ValueError(f"wire type {tag & 7}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
