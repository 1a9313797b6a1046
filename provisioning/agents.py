"""Agent runs: an operation's one-time boot key, the session it turns into, and the agent's reports.

The engine's steps call open_run, media_url and close_run; the door calls hello, plan, progress and
result. Keys and tokens are kept as digests; the clear key is in the vault until the run closes.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Now

from gpucloud import history, vault
from gpucloud.engine.steps import look_now
from gpucloud.live.publish import publish
from inventory.models import Server
from provisioning.models import AgentRun, Operation

ACTOR = "agent"
READBACK_SAMPLES = 64
MESSAGE_LENGTH = 500
MACS_KEPT = 64
REFUSALS_KEPT = 8


class Refused(Exception):
    """The door answers this caller with `status`; the sentence holds no key and no token."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def digest_of(clear: str) -> str:
    return hashlib.sha256(clear.encode()).hexdigest()


def open_run(operation: Operation, verb: str, *, renew: bool = False) -> tuple[AgentRun, str]:
    """The operation's open run of this verb and the URL of its boot media.

    Calling again gives the same run. `renew` gives a new key: to the same run while no agent has
    said hello, else to a new run, because a key that was used boots nothing any more.
    """
    with transaction.atomic():
        # The parent row first: two workers must not both find that there is no run.
        Operation.objects.filter(pk=operation.pk).update(rev=F("rev"))
        run = AgentRun.objects.filter(operation=operation, closed=False).first()
        if run is not None and (run.verb != verb or (renew and run.hello_at is not None)):
            close_run(run)
            run = None
        if run is None:
            run = _new_run(operation, verb)
        elif renew:
            _renew(run)
    return run, media_url(run)


def _new_run(operation: Operation, verb: str) -> AgentRun:
    key = secrets.token_urlsafe(24)
    run = AgentRun.objects.create(operation=operation, verb=verb, key_digest=digest_of(key))
    vault.put("agent_run", run.uid, "key", key)
    return run


def _renew(run: AgentRun) -> None:
    key = secrets.token_urlsafe(24)
    waiting = AgentRun.objects.filter(pk=run.pk, hello_at=None, closed=False)
    if waiting.update(key_digest=digest_of(key), rev=F("rev") + 1):
        vault.put("agent_run", run.uid, "key", key)
    run.refresh_from_db()


def media_url(run: AgentRun) -> str:
    """Where the server's BMC finds the run's boot media; a secret, because the key is in it."""
    key = vault.get("agent_run", run.uid, "key")
    if key is None:
        raise LookupError(f"{run} is closed: its boot media are no longer served.")
    return f"{settings.BMC_URL.rstrip('/')}/{key}/agent.iso"


def close_run(run: AgentRun) -> None:
    """End the run: its key, media and session are refused from now on. Twice is once."""
    AgentRun.objects.filter(pk=run.pk, closed=False).update(closed=True, rev=F("rev") + 1)
    vault.drop("agent_run", run.uid)
    run.refresh_from_db()


def media_open(key: str) -> bool:
    """Whether media with this key are served: also after hello, for the ramdisk reads on."""
    return AgentRun.objects.filter(key_digest=digest_of(key), closed=False).exists()


def hello(key: str, system_uuid: str, macs: list[str], serial: str, address: str) -> str:
    """Trade the one-time key for a session token, given to the operation's own server only."""
    run = _run(key_digest=digest_of(key))
    if run is None:
        raise Refused(404, "There is no such key.")
    if run.closed or run.hello_at is not None or run.operation.state != Operation.State.ACTIVE:
        raise Refused(410, "This key was used, or its operation has ended.")
    said = {
        "system_uuid": system_uuid[:36],
        "macs": [mac[:23] for mac in macs[:MACS_KEPT]],
        "serial": serial[:100],
        "address": address[:45],
    }
    server = run.operation.server
    if server is None or not _is(server, system_uuid, macs):
        _note_stranger(run, server, said)
        raise Refused(403, "This key belongs to another machine.")
    token = "agt_" + secrets.token_urlsafe(32)
    with transaction.atomic():
        fresh = AgentRun.objects.filter(pk=run.pk, hello_at=None, closed=False)
        taken = fresh.update(
            hello_at=Now(),
            last_at=Now(),
            hello=said,
            token_digest=digest_of(token),
            message="The agent has started.",
            rev=F("rev") + 1,
        )
        if not taken:
            raise Refused(410, "This key was used, or its operation has ended.")
        history.record(
            server, "agent hello", ACTOR, f"Our agent called from {server} ({run.verb}).", data=said
        )
        look_now("operation", run.operation.uid)
    return token


def plan(token: str) -> dict[str, Any]:
    """What the agent is to do; refused once the operation is over: nothing is wiped late."""
    run = _session(token)
    if run.operation.state != Operation.State.ACTIVE or run.result_at is not None:
        raise Refused(410, "This operation has ended.")
    _heard(run)
    server = run.operation.server
    drives = server.drives.all() if server else []
    return {
        "operation": str(run.operation.uid),
        "verb": run.verb,
        "drives": [{"serial": drive.serial, "name": drive.name} for drive in drives],
        "readback_samples": READBACK_SAMPLES,
        "after": "wait",
    }


def progress(token: str, percent: int, message: str, drive: str | None = None) -> None:
    """Keep how far the agent is."""
    run = _session(token)
    percent = min(max(percent, 0), 100)
    # Reports of drives that are wiped side by side overtake each other.
    highest = Greatest(Coalesce(F("percent"), percent), percent)
    _heard(run, percent=highest, message=message[:MESSAGE_LENGTH])
    look_now("operation", run.operation.uid)
    publish(run.operation)


def result(token: str, ok: bool, error: str, report: dict[str, Any]) -> None:
    """Keep the agent's report as it came, for the engine to judge; a repeated one is ignored."""
    run = _session(token)
    with transaction.atomic():
        kept = AgentRun.objects.filter(pk=run.pk, result_at=None, closed=False).update(
            result_at=Now(),
            last_at=Now(),
            ok=ok,
            error=error[:MESSAGE_LENGTH],
            report=report,
            rev=F("rev") + 1,
        )
        if kept and (server := run.operation.server):
            words = "reports that it is done" if ok else f"reports a failure: {error[:200]}"
            history.record(server, "agent result", ACTOR, f"Our agent on {server} {words}.")
        look_now("operation", run.operation.uid)


def _heard(run: AgentRun, **fields: Any) -> None:
    AgentRun.objects.filter(pk=run.pk).update(last_at=Now(), rev=F("rev") + 1, **fields)


def _run(**by: str) -> AgentRun | None:
    return AgentRun.objects.select_related("operation__server").filter(**by).first()


def _session(token: str) -> AgentRun:
    run = _run(token_digest=digest_of(token)) if token else None
    if run is None:
        raise Refused(401, "There is no such session.")
    if run.closed:
        raise Refused(410, "This operation has ended.")
    return run


def _is(server: Server, system_uuid: str, macs: list[str]) -> bool:
    """Whether a caller is this server: by a MAC, or by system UUID in either byte order."""
    known = {mac.lower() for mac in server.interfaces.values_list("mac", flat=True)}
    if known & {mac.lower().replace("-", ":") for mac in macs}:
        return True
    return bool(server.system_uuid) and _uuids(system_uuid) & {server.system_uuid.lower()} != set()


def _uuids(text: str) -> set[str]:
    # BMCs and SMBIOS tables disagree on the byte order of a UUID's first three fields.
    try:
        value = uuid.UUID(text)
    except ValueError:
        return set()
    return {str(value), str(uuid.UUID(bytes_le=value.bytes))}


def _note_stranger(run: AgentRun, server: Server | None, said: dict[str, Any]) -> None:
    """History of a machine that came with another machine's key, once per machine."""
    refused = list(run.hello.get("refused", []))
    if server is None or said["system_uuid"] in refused or len(refused) >= REFUSALS_KEPT:
        return
    with transaction.atomic():
        still = AgentRun.objects.filter(pk=run.pk, rev=run.rev, hello_at=None)
        if still.update(hello={"refused": [*refused, said["system_uuid"]]}, rev=F("rev") + 1):
            history.record(
                server,
                "agent refused",
                ACTOR,
                f"A machine that is not {server} came with {server}'s boot key and was refused.",
                data=said,
            )
