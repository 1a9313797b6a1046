"""Ironic's ramdisk, booted from the network: looks up its node, does one job, reports it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import aiohttp

from gpucloud.lab.acts import now
from gpucloud.lab.hardware.disks import Disk
from gpucloud.lab.hardware.inventory import what_linux_sees
from gpucloud.lab.hardware.machine import Machine, Outcome, Phase

Json = dict[str, Any]

LOAD_SECONDS = 40.0
INSPECT_SECONDS = 30.0
CLEAN_SECONDS = 30.0
DEPLOY_SECONDS = 240.0
# Of the deploy: the download and the check are over at these percentages.
DOWNLOADED, CHECKED = 30, 40
STEP = 5
DHCP_TRIES = 4
DHCP_SECONDS = 4.0
RETRY_SECONDS = 5.0
SHORTEST_RETRY = 0.2
# While Ironic's door does not answer at all (it restarts), firmware goes on asking for this long.
PATIENCE_WALL_SECONDS = 15.0


class JobFailed(Exception):
    """The job cannot be done; the message goes to Ironic."""


async def boot_network(machine: Machine) -> Outcome:
    lease = await _dhcp(machine)
    if lease is None:
        machine.note("PXE: no answer to DHCP")
        return Outcome.NOT_BOOTABLE
    machine.loads("Pxe", f"ramdisk with the address {lease.get('ip')}")
    await machine.world.wait(LOAD_SECONDS)
    machine.runs(Phase.RAMDISK, "looking up its node")
    ramdisk = Ramdisk(machine, lease)
    await ramdisk.work()
    # The ramdisk stays up until somebody takes the power away.
    await asyncio.Event().wait()
    return Outcome.STOPPED


async def _dhcp(machine: Machine) -> Json | None:
    world, nic = machine.world, machine.server.facts.boot_nic
    loop = asyncio.get_running_loop()
    deadline, refused = loop.time() + PATIENCE_WALL_SECONDS, 0
    while refused < DHCP_TRIES:
        if not world.in_provisioning(nic):
            # Nobody answers in another VLAN, however often one asks.
            refused += 1
        else:
            try:
                url = f"{world.doors['ironic']}/dhcp"
                async with world.http.get(url, params={"mac": nic.mac}) as answer:
                    if answer.status == 200:
                        lease: Json = await answer.json()
                        return lease
                    refused += 1
            except (aiohttp.ClientError, TimeoutError, ValueError):
                if loop.time() > deadline:
                    return None
        await world.wait(DHCP_SECONDS, at_least=SHORTEST_RETRY)
    return None


class Ramdisk:
    """The running ramdisk of one boot."""

    def __init__(self, machine: Machine, lease: Json) -> None:
        self.machine = machine
        self.world = machine.world
        self.server = machine.server
        self.lease = lease
        self.node: Any = None

    async def work(self) -> None:
        found = await self._lookup()
        self.node, job = found["node"], found["job"]
        kind = str(job.get("kind"))
        self.machine.detail = kind
        jobs = {"inspect": self._inspect, "deploy": self._deploy, "clean": self._clean}
        result: Json = {"ok": True, "error": "", "inventory": {}}
        try:
            if kind not in jobs:
                raise JobFailed(f"the ramdisk knows no job {kind!r}")
            result["inventory"] = await jobs[kind](job)
        except JobFailed as failure:
            result |= {"ok": False, "error": str(failure)}
        self.machine.detail = f"{kind} {'done' if result['ok'] else 'failed'}"
        await self._insist("result", {"node": self.node, **result}, final=(400, 409))

    # Talking to Ironic.

    async def _lookup(self) -> Json:
        """Ask until a node waits for this machine."""
        facts = self.server.facts
        return await self._insist("lookup", {"mac": facts.boot_nic.mac, "uuid": facts.uuid})

    async def _insist(self, verb: str, body: Json, final: tuple[int, ...] = ()) -> Json:
        """Ask until Ironic takes it; a status in `final` says that asking again is no use."""
        while True:
            status, answer = await self._post(verb, body)
            if status in (200, 204, *final):
                return answer
            await self.world.wait(RETRY_SECONDS, at_least=SHORTEST_RETRY)

    async def _post(self, verb: str, body: Json) -> tuple[int, Json]:
        """Status and answer; status 0 when Ironic was not reached."""
        if not self.world.in_provisioning(self.server.facts.boot_nic):
            return 0, {}
        url = f"{self.world.doors['ironic']}/v1/{verb}"
        try:
            async with self.world.http.post(url, json=body) as answer:
                content: Json = await answer.json() if answer.status == 200 else {}
                return answer.status, content
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return 0, {}

    async def _heartbeat(self, stage: str, percent: int, message: str) -> None:
        self.machine.detail = f"{stage} {percent} %"
        beat = {"node": self.node, "stage": stage, "percent": percent, "message": message}
        # A lost heartbeat is not repeated: the next one says more.
        await self._post("heartbeat", beat)

    # The jobs.

    async def _inspect(self, job: Json) -> Json:
        await self._heartbeat("inspect", 0, "Collecting the inventory.")
        await self.world.wait(INSPECT_SECONDS)
        return what_linux_sees(self.server, str(self.lease.get("ip") or ""))

    async def _clean(self, job: Json) -> Json:
        """Ironic's metadata cleaning: destroys partition tables, leaves the data (no wipe)."""
        await self._heartbeat("clean", 0, "Erasing partition tables.")
        await self.world.wait(CLEAN_SECONDS)
        for disk in self.server.seen_disks():
            # A drive that refuses sanitize, format and overwrite still takes these few writes.
            if not self.server.faults.get("wipe_does_nothing"):
                disk.erase_metadata()
        return {}

    async def _deploy(self, job: Json) -> Json:
        image = job.get("image")
        if not isinstance(image, dict) or not image.get("url"):
            raise JobFailed("the deploy job names no image")
        disks = self.server.seen_disks()
        if not disks:
            raise JobFailed("no disk to install on was found")
        content = await self._download(str(image["url"]))
        digest = await self._check(content, image)
        await self._write(disks[0], content, digest, image)
        _write_config_drive(self.machine, disks[0], job)
        self.machine.has_installed()
        return {}

    async def _download(self, url: str) -> bytes:
        nic = self.server.facts.boot_nic
        content = bytearray()
        try:
            async with self.world.http.get(url) as answer:
                if answer.status != 200:
                    raise JobFailed(f"the image {url} could not be downloaded: {answer.status}")
                async for chunk in answer.content.iter_chunked(256 * 1024):
                    if not self.world.in_provisioning(nic):
                        raise JobFailed(f"the network went away while downloading {url}")
                    content += chunk
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise JobFailed(f"the image {url} could not be downloaded: {error}") from error
        for percent in range(0, DOWNLOADED, STEP):
            await self._step("deploy", percent, "Downloading the image.")
        if self.server.faults.get("corrupt_image") and content:
            content[len(content) // 2] ^= 0xFF
        return bytes(content)

    async def _check(self, content: bytes, image: Json) -> str:
        for percent in range(DOWNLOADED, CHECKED, STEP):
            await self._step("deploy", percent, "Checking the image.")
        wanted = await self._checksum(str(image.get("checksum") or ""), str(image["url"]))
        kind = str(image.get("checksumType") or "auto").lower()
        if kind == "auto" or not kind:
            kind = {32: "md5", 64: "sha256", 128: "sha512"}.get(len(wanted), "sha256")
        if kind not in ("md5", "sha256", "sha512"):
            raise JobFailed(f"the checksum type {kind!r} is not known")
        found = hashlib.new(kind, content).hexdigest()
        if found != wanted.lower():
            raise JobFailed(f"the image's {kind} is {found}, not {wanted or 'given'}")
        return hashlib.sha256(content).hexdigest()

    async def _checksum(self, value: str, image_url: str) -> str:
        """A checksum may be given as the URL of a file holding it, as Metal3 allows."""
        if not value.startswith(("http://", "https://")):
            return value.strip()
        try:
            async with self.world.http.get(value) as answer:
                text = await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise JobFailed(f"the checksum {value} could not be downloaded: {error}") from error
        name = image_url.rpartition("/")[2]
        lines = [line.split() for line in text.splitlines() if line.strip()]
        named = [words[0] for words in lines if len(words) > 1 and words[1].lstrip("*") == name]
        if named:
            return named[0]
        if len(lines) == 1:
            return lines[0][0]
        raise JobFailed(f"{value} holds no checksum of {name}")

    async def _write(self, disk: Disk, content: bytes, digest: str, image: Json) -> None:
        # The old header goes first and the new one comes last: a half-written disk never boots.
        disk.erase_metadata()
        span = 100 - CHECKED
        for percent in range(CHECKED, 100, STEP):
            await self._step("deploy", percent, f"Writing the image to {disk.drive.name}.")
            done = (percent - CHECKED) / span
            upto = (percent + STEP - CHECKED) / span
            disk.write_image(content, int(done * len(content)), int(upto * len(content)))
        known = _known_image(self.machine, str(image["url"]))
        header = {
            "sha256": digest,
            "os": known.get("os", "Linux"),
            "kernel": known.get("kernel", "unknown"),
            "written_at": now(),
        }
        disk.write_boot_header(header)
        self.machine.act("image", None, digest, part=disk.drive.name)

    async def _step(self, stage: str, percent: int, message: str) -> None:
        await self._heartbeat(stage, percent, message)
        limit = self.server.faults.get("die_in_install")
        if limit is not None and percent + STEP > limit:
            self.machine.enter(Phase.HUNG, f"the ramdisk hangs at {percent} %")
            await asyncio.Event().wait()
        await self.world.wait(DEPLOY_SECONDS * STEP / 100)


def _known_image(machine: Machine, url: str) -> Json:
    name = url.rpartition("/")[2]
    images: list[Json] = machine.world.rack["images"]
    return next((image for image in images if image["file"] == name), {})


def _write_config_drive(machine: Machine, disk: Disk, job: Json) -> None:
    content = {
        "user_data": _text(job.get("user_data")),
        "network_data": _object(job.get("network_data")),
        "meta_data": _object(job.get("meta_data")),
    }
    if machine.server.faults.get("lose_network_data"):
        content["network_data"] = None
    try:
        disk.write_config_drive(content)
    except ValueError as error:
        raise JobFailed(f"the config drive could not be written: {error}") from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _object(value: Any) -> Any:
    """Network and meta data come as an object or as JSON text."""
    if not isinstance(value, str) or not value.strip():
        return value or None
    try:
        return json.loads(value)
    except ValueError as error:
        raise JobFailed(f"network or meta data is not JSON: {error}") from error
