"""Boot from virtual media: finds the agent's configuration on it and runs the real agent."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from gpucloud.lab.hardware.disks import Disk, Findings, is_settled
from gpucloud.lab.hardware.inventory import what_linux_sees
from gpucloud.lab.hardware.machine import Machine, Outcome, Phase
from gpucloud.lab.hardware.proxy import AgentProxy
from gpucloud.lab.place import write_atomically, write_json

LOAD_SECONDS = 40.0
WIPE_SECONDS = 120.0
MARK = b"GPUCLOUD-AGENT-CONFIG:1\n"
CONFIG_SIZE = 4096
LARGEST_MEDIA = 4 << 30
LOOK_WALL_SECONDS = 0.2
PR_SET_PDEATHSIG = 1
CODE = Path(__file__).resolve().parents[3] / "deploy" / "agent"

Json = dict[str, Any]
LIBC = ctypes.CDLL(None, use_errno=True)


async def boot_media(machine: Machine) -> Outcome:
    url = machine.server.memory.media.get("Cd")
    config = await read_media(machine, url) if url else None
    if config is None:
        machine.note("Virtual media: " + ("nothing to boot on it" if url else "none inserted"))
        return Outcome.NOT_BOOTABLE
    machine.loads("Cd", "agent")
    await machine.world.wait(LOAD_SECONDS)
    machine.runs(Phase.AGENT, "agent")
    run = AgentRun(machine, config)
    outcome = await run.until_it_ends()
    if outcome is Outcome.STOPPED:
        # An agent that ended without powering off leaves the machine on, doing nothing.
        await asyncio.Event().wait()
    return outcome


async def read_media(machine: Machine, url: str) -> Json | None:
    """The agent's configuration on the media, or None when it cannot be booted from."""
    tail = b""
    try:
        timeout = aiohttp.ClientTimeout(total=600, connect=10, sock_read=30)
        async with machine.world.http.get(url, timeout=timeout) as answer:
            if answer.status != 200:
                return None
            seen = 0
            async for chunk in answer.content.iter_chunked(1 << 20):
                seen += len(chunk)
                tail += chunk
                found = tail.find(MARK)
                if found >= 0 and len(tail) >= found + len(MARK) + CONFIG_SIZE:
                    break
                keep = found if found >= 0 else max(0, len(tail) - len(MARK) + 1)
                tail = tail[keep:]
                if seen > LARGEST_MEDIA:
                    return None
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None
    found = tail.find(MARK)
    if found < 0:
        return None
    try:
        # The padding is spaces; whatever follows the reserved area is not ours.
        config, _ = json.JSONDecoder().raw_decode(
            tail[found + len(MARK) : found + len(MARK) + CONFIG_SIZE].decode(errors="replace")
        )
    except ValueError:
        return None
    return config if isinstance(config, dict) else None


class AgentRun:
    """One run of the agent's own code, as a subprocess over a fake hardware layer."""

    def __init__(self, machine: Machine, config: Json) -> None:
        self.machine = machine
        self.config = config
        self.folder = machine.world.folder / "machines" / machine.server.name
        self._stamps: dict[str, int] = {}
        self._findings: dict[str, Findings] = {}
        self._shown: Json | None = None

    async def until_it_ends(self) -> Outcome:
        self._lay_out()
        nic = self.machine.server.facts.boot_nic
        proxy = AgentProxy(
            str(self.config.get("door", "")), lambda: self.machine.world.in_provisioning(nic)
        )
        async with proxy.listening() as port, self._process(port) as process:
            while process.returncode is None:
                self._show_hardware()
                self._look_at_disks()
                if self._wants_power_off():
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), LOOK_WALL_SECONDS)
        self._look_at_disks(finally_=True)
        if self._wants_power_off():
            return Outcome.POWER_OFF
        self.machine.detail = f"the agent ended with {process.returncode}"
        return Outcome.STOPPED

    def _lay_out(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write_atomically(self.folder / "agent.json", json.dumps(self.config), 0o600)
        self._show_hardware()
        disks = self.machine.server.all_disks()
        self._stamps = {disk.drive.name: disk.stamp() for disk in disks}
        self._findings = {disk.drive.name: disk.findings() for disk in disks}

    def _show_hardware(self) -> None:
        """Faults and pulled drives take effect at once, also while the agent runs."""
        seen = self._describe()
        if seen != self._shown:
            write_json(self.folder / "machine.json", seen)
            self._shown = seen

    def _describe(self) -> Json:
        """machine.json: what the fake hardware layer shows to the agent."""
        server = self.machine.server
        seen = what_linux_sees(server)
        fake = {disk.drive.name: self._fake(disk) for disk in server.seen_disks()}
        return {
            **{key: seen[key] for key in ("uuid", "serial", "vendor", "model", "gpus")},
            "macs": [nic["mac"] for nic in seen["nics"]],
            "drives": [{**drive, **fake[drive["name"]]} for drive in seen["drives"]],
        }

    def _fake(self, disk: Disk) -> Json:
        """How a drive behaves: where its bytes are and what its erase commands do."""
        server = self.machine.server
        result = "ok"
        if server.faults.get("wipe_does_nothing"):
            result = "nothing"
        if server.wipe_fails_on(disk.drive.name):
            result = "fail"
        is_nvme = disk.drive.protocol == "NVMe"
        verbs = ("sanitize", "format") if is_nvme else ("secure_erase",)
        return {
            "path": str(disk.path),
            "verbs": dict.fromkeys((*verbs, "overwrite"), result),
            "seconds": WIPE_SECONDS / self.machine.world.speed,
        }

    @contextlib.asynccontextmanager
    async def _process(self, proxy_port: int) -> AsyncIterator[asyncio.subprocess.Process]:
        proxy = f"http://127.0.0.1:{proxy_port}"
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": str(CODE),
            "PYTHONUNBUFFERED": "1",
            "https_proxy": proxy,
            "HTTPS_PROXY": proxy,
        }
        with (self.folder / "agent.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "gpucloud_agent",
                "--config",
                str(self.folder / "agent.json"),
                "--hardware",
                f"fake:{self.folder}",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=environment,
                preexec_fn=_die_with_the_lab,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _wants_power_off(self) -> bool:
        return (self.folder / "poweroff").exists()

    def _look_at_disks(self, finally_: bool = False) -> None:
        """Write down what really happened to the bytes, whatever the agent reports."""
        for disk in self.machine.server.all_disks():
            name, stamp = disk.drive.name, disk.stamp()
            if self._stamps[name] == stamp or not (finally_ or is_settled(stamp)):
                continue
            self._stamps[name] = stamp
            before, found = self._findings[name], disk.findings()
            self._findings[name] = found
            if found.is_blank:
                self.machine.act("disk", before.marker, "wiped", part=name)
            elif found.image not in (None, before.image):
                self.machine.act("image", before.image, found.image, part=name)
                self.machine.has_installed()


def _die_with_the_lab() -> None:
    """An agent must not go on wiping disks after the machine it runs on has vanished."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
