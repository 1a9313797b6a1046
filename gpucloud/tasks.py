"""The engine's one task: look at an owner's current step."""

from __future__ import annotations

from uuid import UUID

from gpucloud.celery import app
from gpucloud.engine.advance import advance


@app.task(name="gpucloud.advance")
def advance_task(kind: str, uid: str) -> None:
    advance(kind, UUID(uid))
