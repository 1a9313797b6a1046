"""Everything the parts of the simulated rack share: servers, switches, clock, act log, doors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from gpucloud.lab.acts import ActLog
from gpucloud.lab.hardware.rack import Nic, facts_of
from gpucloud.lab.hardware.server import Server
from gpucloud.lab.hardware.switch import Switch, ports_of_rack
from gpucloud.lab.place import read_json


class World:
    """The rack and the laws that hold in it."""

    def __init__(self, lab: Path, doors: Mapping[str, str], speed: float) -> None:
        self.lab = lab
        self.folder = lab / "hardware"
        self.doors = dict(doors)
        self.speed = speed
        self.rack: dict[str, Any] = read_json(lab / "rack.json")
        self.credentials: dict[str, dict[str, Any]] = read_json(lab / "credentials.json")
        self.acts = ActLog(lab / "acts" / "hardware.jsonl")
        self.servers = {
            entry["name"]: Server(facts_of(entry), self.folder) for entry in self.rack["servers"]
        }
        self._owners = {
            (nic.switch, nic.port): server
            for server in self.servers.values()
            for nic in server.facts.nics
        }
        self.switches = {switch["name"]: self._switch(switch) for switch in self.rack["switches"]}
        self.provisioning_vlan = int(self.rack["vlans"]["provisioning"])
        self._http: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """The client side of all machines; they trust any certificate, as ramdisks do."""
        if self._http is None:
            connector = aiohttp.TCPConnector(ssl=False, limit=0, force_close=True)
            timeout = aiohttp.ClientTimeout(total=30, connect=5)
            self._http = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._http

    async def wait(self, seconds: float, at_least: float = 0.0) -> None:
        """Let simulated time pass; `at_least` is in seconds of wall time."""
        await asyncio.sleep(max(seconds / self.speed, at_least))

    def vlan_of(self, nic: Nic) -> int | None:
        switch = self.switches.get(nic.switch)
        return switch.access_vlan(nic.port) if switch else None

    def in_provisioning(self, nic: Nic) -> bool:
        return self.vlan_of(nic) == self.provisioning_vlan

    def reaches(self, server: Server, vlan: int, shared_endpoint: str) -> bool:
        """Whether frames travel between the server and an endpoint on the shared host."""
        return any(self.vlan_of(nic) == vlan for nic in server.facts.nics) and any(
            self.switches[endpoint["switch"]].carries(endpoint["port"], vlan)
            for endpoint in self.rack["shared_endpoints"]
            if endpoint["name"] == shared_endpoint
        )

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()
        self.acts.close()

    def _switch(self, entry: Mapping[str, Any]) -> Switch:
        name = str(entry["name"])

        def faults(port: str) -> Mapping[str, Any]:
            owner = self._owners.get((name, port))
            return owner.faults if owner else {}

        return Switch(
            name,
            ports_of_rack(self.rack, name),
            self.folder,
            self.acts,
            faults,
            int(self.rack["vlans"]["quarantine"]),
        )
