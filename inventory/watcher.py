"""Watching BareMetalHosts: mirrors them into servers, wakes operations, repairs addresses."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial

from django.db.models import Q

from gpucloud.engine.offload import in_database
from gpucloud.vaultcache import VaultCache
from inventory import mirror
from inventory.drivers.bmh import API
from inventory.drivers.kube import path_of
from inventory.models import KubernetesConnection, Server
from inventory.watching.client import Api, ApiTrouble, Obj
from inventory.watching.runner import Subject

log = logging.getLogger(__name__)
# Against somebody who strips the annotations again and again: each repair waits longer.
FIRST_WAIT, LONGEST_WAIT, FORGET_AFTER = 0.5, 120.0, 600.0

_kubeconfigs = VaultCache("connection", "kubeconfig")


def host_subjects() -> Iterable[Subject]:
    """The namespaces of each connection in which servers have their hosts."""
    kubeconfigs = _kubeconfigs.all()
    placed = Server.objects.exclude(state=Server.State.RETIRED).filter(
        ~Q(engine_id=""), connection__isnull=False
    )
    wanted = {
        (pk, engine_id.partition("/")[0])
        for pk, engine_id in placed.values_list("connection", "engine_id")
    }
    rows = KubernetesConnection.objects.in_bulk([pk for pk, _ in wanted])
    for pk, namespace in sorted(wanted):
        if kubeconfig := kubeconfigs.get(rows[pk].uid):
            yield Subject(
                f"hosts of {rows[pk].name}/{namespace}",
                path_of(API, "baremetalhosts", namespace),
                str(kubeconfig),
                partial(HostHandler, pk, namespace),
            )


class HostHandler:
    """Keeps one namespace's hosts. Object gone is never read as wiped: only the mirror is told."""

    def __init__(self, connection: int, namespace: str, api: Api) -> None:
        self._connection, self._namespace, self._api = connection, namespace, api
        self._repairs: dict[str, tuple[float, float]] = {}
        self._owed: set[str] = set()
        self._troubled: bool | None = None

    async def listed(self, objects: list[Obj]) -> None:
        found = await in_database(mirror.mirror_all, self._connection, self._namespace, objects)
        for repair in found:
            await self._put_back(repair)

    async def seen(self, kind: str, obj: Obj) -> None:
        if kind == "DELETED":
            engine_id = f"{self._namespace}/{obj['metadata']['name']}"
            await in_database(mirror.gone, self._connection, engine_id)
            return
        if repair := await in_database(mirror.mirror, self._connection, obj):
            await self._put_back(repair)

    async def alive(self) -> None:
        if self._troubled is not False:
            await in_database(mirror.note_connection, self._connection, "")
            self._troubled = False
        await in_database(mirror.confirm, self._connection, self._namespace)
        owed, self._owed = self._owed, set()
        for name in owed:
            await self._look_again(name)

    async def trouble(self, problem: str) -> None:
        self._troubled = True
        log.warning("hosts in %s: %s", self._namespace, problem)
        await in_database(mirror.note_connection, self._connection, problem)

    async def _look_again(self, name: str) -> None:
        try:
            await self.seen("MODIFIED", await self._api.get(self._path(name)))
        except ApiTrouble as trouble:
            if trouble.status != 404:
                raise

    async def _put_back(self, repair: mirror.Repair) -> None:
        """One merge patch on the very version that was read; a conflict means a newer event."""
        now = time.monotonic()
        last, wait = self._repairs.get(repair.name, (float("-inf"), 0.0))
        if now - last < wait:
            self._owed.add(repair.name)
            return
        if now - last > FORGET_AFTER:
            wait = 0.0
        self._repairs[repair.name] = (now, min(max(wait * 2, FIRST_WAIT), LONGEST_WAIT))
        body = {"metadata": {"resourceVersion": repair.version, "annotations": repair.annotations}}
        try:
            await self._api.merge(self._path(repair.name), body)
        except ApiTrouble as trouble:
            if trouble.status != 409:
                self._owed.add(repair.name)
                log.warning("the address of %s was not put back: %s", repair.name, trouble)
            return
        await in_database(mirror.note_repair, repair, self._connection)

    def _path(self, name: str) -> str:
        return path_of(API, "baremetalhosts", self._namespace, name)
