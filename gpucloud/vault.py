"""Secrets at rest: put, get and drop values of the Secret table, encrypted with a key kept outside
the database.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from gpucloud.models import Secret


class VaultError(Exception):
    """A stored secret cannot be read with the key at hand."""


def _key() -> tuple[bytes, str]:
    key = base64.b64decode(settings.ENCRYPTION_KEY)
    if len(key) != 32:
        raise VaultError("The encryption key must be 32 bytes in base64.")
    return key, hashlib.sha256(b"gpucloud key id" + key).hexdigest()[:16]


def _place(kind: str, owner: UUID, field: str) -> bytes:
    return f"gpucloud_secret|{kind}|{owner}|{field}".encode()


def put(kind: str, owner: UUID, field: str, value: Any) -> None:
    """Encrypt a JSON-safe value and store it at its place, replacing what was there."""
    key, key_id = _key()
    nonce = os.urandom(12)
    sealed = AESGCM(key).encrypt(nonce, json.dumps(value).encode(), _place(kind, owner, field))
    Secret.objects.update_or_create(
        kind=kind,
        owner_uid=owner,
        field=field,
        defaults={"key_id": key_id, "nonce": nonce, "sealed": sealed},
    )


def get(kind: str, owner: UUID, field: str, default: Any = None) -> Any:
    """Return the value at this place, or the default;

    VaultError when it was sealed with another key or moved.
    """
    row = Secret.objects.filter(kind=kind, owner_uid=owner, field=field).first()
    if row is None:
        return default
    key, key_id = _key()
    if row.key_id != key_id:
        raise VaultError(f"{row} was sealed with key {row.key_id}, and we hold {key_id}.")
    try:
        clear = AESGCM(key).decrypt(bytes(row.nonce), bytes(row.sealed), _place(kind, owner, field))
    except InvalidTag as error:
        raise VaultError(f"{row} does not belong to this place or was changed.") from error
    return json.loads(clear)


def drop(kind: str, owner: UUID, field: str = "") -> None:
    """Forget one value, or all of an owner's."""
    rows = Secret.objects.filter(kind=kind, owner_uid=owner)
    (rows.filter(field=field) if field else rows).delete()
