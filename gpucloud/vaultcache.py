"""Many secrets at once, for processes that need all of them every few seconds."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any
from uuid import UUID

from gpucloud import vault
from gpucloud.models import Secret

log = logging.getLogger(__name__)


class VaultCache:
    """The secrets of one kind and field by owner, decrypted again only when they were changed."""

    def __init__(self, kind: str, field: str) -> None:
        self._kind, self._field = kind, field
        self._known: dict[UUID, tuple[datetime, Any]] = {}

    def all(self) -> dict[UUID, Any]:
        rows = Secret.objects.filter(kind=self._kind, field=self._field)
        changed = dict(rows.values_list("owner_uid", "changed"))
        known = {uid: one for uid, one in self._known.items() if uid in changed}
        for uid, at in changed.items():
            if uid not in known or known[uid][0] != at:
                known[uid] = (at, self._read(uid))
        self._known = known
        return {uid: value for uid, (_, value) in known.items() if value is not None}

    def _read(self, uid: UUID) -> Any:
        try:
            return vault.get(self._kind, uid, self._field)
        except vault.VaultError as error:
            log.error("a secret cannot be read: %s", error)
            return None
