"""The fleet sweep: reads power and health of every BMC with an address, and keeps what changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from django.db import Error, transaction
from django.db.models import F, Q

from gpucloud import history
from gpucloud.engine.clock import scaled
from gpucloud.engine.offload import in_database
from gpucloud.engine.steps import look_now
from gpucloud.live import publish
from gpucloud.vaultcache import VaultCache
from inventory.models import Bmc, Server
from inventory.reading import Reader, Reading, Target

log = logging.getLogger(__name__)
ACTOR = "fleet"
VIA = "redfish"
ROUND_SECONDS = 15.0
AT_ONCE = 32
KEEP_EVERY_SECONDS = 0.3
KEPT_AT_ONCE = 100
# An unchanged reading is written again when the one in the row is older than this.
REFRESH = timedelta(seconds=60)


def targets(credentials: VaultCache) -> list[Target]:
    """Every BMC that can be read directly."""
    known = credentials.all()
    rows = Bmc.objects.exclude(address="").exclude(server__state=Server.State.RETIRED)
    found = []
    for bmc in rows.only("server_id", "uid", "address", "certificate", "config"):
        login = known.get(bmc.uid, {})
        if login.get("username") and login.get("password"):
            basic = bmc.config.get("auth") == "basic"
            found.append(
                Target(
                    bmc.server_id,
                    bmc.address,
                    bmc.certificate,
                    login["username"],
                    login["password"],
                    basic,
                )
            )
    return found


class Sweep:
    """Round after round over the fleet: one request at a time per BMC, AT_ONCE in all."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._credentials = VaultCache("bmc", "credentials")
        self._readers: dict[int, Reader] = {}
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._found: list[Reading] = []

    async def run(self) -> None:
        keeper = asyncio.ensure_future(self._keep_for_ever())
        try:
            while True:
                began = time.monotonic()
                await self.begin_round()
                period = scaled(ROUND_SECONDS).total_seconds()
                await asyncio.sleep(max(0.2, began + period - time.monotonic()))
        finally:
            for task in (keeper, *self._busy.values()):
                task.cancel()
            await asyncio.gather(keeper, *self._busy.values(), return_exceptions=True)
            await self.close()

    async def begin_round(self) -> None:
        """Start a look at every BMC whose last look has ended."""
        try:
            wanted = await in_database(targets, self._credentials)
        except Error as error:
            log.warning("the database does not answer: %s", error)
            return
        await self._forget({target.server for target in wanted})
        for target in wanted:
            if target.server not in self._busy and (reader := await self._reader(target)):
                task = asyncio.create_task(self._look(target.server, reader))
                self._busy[target.server] = task

    async def settled(self) -> None:
        """Wait until every look under way has ended and its reading is kept."""
        await asyncio.gather(*self._busy.values())
        await self._keep()

    async def close(self) -> None:
        readers, self._readers = list(self._readers.values()), {}
        await asyncio.gather(*(reader.close() for reader in readers))

    async def _reader(self, target: Target) -> Reader | None:
        reader = self._readers.get(target.server)
        if reader is not None and reader.target == target:
            return reader
        if reader is not None:
            await reader.close()
        try:
            self._readers[target.server] = Reader(target, self._http)
        except ValueError as error:
            self._readers.pop(target.server, None)
            problem = f"The BMC's settings are not usable: {error}."
            self._found.append(
                Reading(target.server, datetime.now(UTC), problem=problem, code="DRIVER_CONFIG")
            )
        return self._readers.get(target.server)

    async def _forget(self, wanted: set[int]) -> None:
        for server in self._readers.keys() - wanted - self._busy.keys():
            await self._readers.pop(server).close()

    async def _look(self, server: int, reader: Reader) -> None:
        try:
            async with self._turn:
                reading = await reader.read(time.monotonic())
            # Not in one line with the await: _keep() puts another list in its place meanwhile.
            self._found.append(reading)
        except Exception:
            log.exception("the look at server %s met a fault of our own", server)
        finally:
            self._busy.pop(server, None)

    async def _keep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(KEEP_EVERY_SECONDS)
            await self._keep()

    async def _keep(self) -> None:
        """Write what was found; while the database is away the newest reading of each waits."""
        while self._found:
            batch, self._found = self._found[:KEPT_AT_ONCE], self._found[KEPT_AT_ONCE:]
            try:
                await in_database(keep, batch)
            except Error as error:
                log.warning("readings are not kept yet: %s", error)
                newest = {reading.server: reading for reading in (*batch, *self._found)}
                self._found = list(newest.values())
                return
            except Exception:
                log.exception("readings were not kept by a fault of our own")


async def sweep_fleet() -> None:
    """Sweep until cancelled."""
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=1, keepalive_timeout=40)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as http:
        await Sweep(http).run()


def keep(readings: Sequence[Reading]) -> None:
    """Write the readings that change what a row says, or are much newer than it."""
    rows = Server.objects.in_bulk([reading.server for reading in readings])
    news = [(row, r) for r in readings if (row := rows.get(r.server)) and _is_news(row, r)]
    if not news:
        return
    with transaction.atomic():
        for server, reading in news:
            _keep_one(server, reading)


def _is_news(server: Server, reading: Reading) -> bool:
    if server.power_at is not None and server.power_at > reading.at:
        return False
    if reading.problem:
        return (server.power, server.power_problem) != (reading.power, reading.problem)
    old = server.power_at is None or reading.at - server.power_at > REFRESH
    return old or _differs(server, reading)


def _differs(server: Server, reading: Reading) -> bool:
    """Whether people see something else by this reading."""
    if (server.power, server.power_problem) != (reading.power, reading.problem):
        return True
    return bool(reading.health) and server.health != reading.health


def _keep_one(server: Server, reading: Reading) -> None:
    fields: dict[str, Any] = {"power": reading.power, "power_problem": reading.problem}
    if not reading.problem:
        fields |= {"power_at": reading.at, "power_via": VIA}
    if reading.health:
        fields |= {"health": reading.health, "health_at": reading.at}
    seen = _differs(server, reading)
    if seen:
        fields["rev"] = F("rev") + 1
    # An action may have read the power since: what is newer stays.
    not_newer = Q(power_at=None) | Q(power_at__lte=reading.at)
    if not Server.objects.filter(not_newer, pk=server.pk).update(**fields) or not seen:
        return
    before = server.power_problem
    server.refresh_from_db()
    _tell(server, before, reading)
    publish(server)
    for uid in server.operations.filter(state="active").values_list("uid", flat=True):
        look_now("operation", uid)


def _tell(server: Server, before: str, reading: Reading) -> None:
    """History of a BMC that cannot be read any more, or can again."""
    if reading.problem and reading.problem != before:
        history.record(server, "bmc silent", ACTOR, reading.problem, code=reading.code)
    elif before and not reading.problem:
        history.record(server, "bmc back", ACTOR, f"{server}'s BMC can be read again.")
