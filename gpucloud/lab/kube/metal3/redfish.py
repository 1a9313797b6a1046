"""Ironic's Redfish client: the few calls a deployment needs, certificate unverified."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from gpucloud.lab.kube.metal3.jobs import IronicError

SCHEMES = (
    "redfish",
    "redfish-virtualmedia",
    "redfish-uefihttp",
    "idrac-redfish",
    "idrac-virtualmedia",
)


def parse_address(address: str) -> tuple[str, str]:
    """Split bmc.address into base URL and system path; raise IronicError on unknown schemes."""
    parts = urlsplit(address)
    driver, _, transport = parts.scheme.partition("+")
    if driver not in SCHEMES or not parts.netloc:
        raise IronicError(
            f"failed to parse BMC address information: Unknown BMC type {driver!r}", "conflict"
        )
    return f"{transport or 'https'}://{parts.netloc}", parts.path.rstrip("/")


class Redfish:
    """One BMC with one cached session. Raises IronicError: credentials, unreachable or power."""

    def __init__(
        self, http: aiohttp.ClientSession, address: str, username: str, password: str
    ) -> None:
        self.http = http
        self.base, self.system_path = parse_address(address)
        self.username, self.password = username, password
        self.token = ""
        self.timeout = aiohttp.ClientTimeout(total=10)

    async def power(self) -> bool:
        return str((await self.system()).get("PowerState")) in ("On", "PoweringOn")

    async def system(self) -> dict[str, Any]:
        return await self.get(self.system_path)

    async def reset(self, kind: str) -> None:
        system = await self.system()
        action = system.get("Actions", {}).get("#ComputerSystem.Reset", {})
        target = action.get("target") or f"{self.system_path}/Actions/ComputerSystem.Reset"
        await self.call("POST", target, {"ResetType": kind})

    async def boot_once(self, device: str) -> None:
        """Override the next boot only: a later start takes the machine's own order again."""
        boot = {"BootSourceOverrideTarget": device, "BootSourceOverrideEnabled": "Once"}
        await self.patch(self.system_path, {"Boot": boot})

    async def insert(self, url: str) -> None:
        """Eject what is in the CD slot, then insert: inserting twice is an error on many BMCs."""
        slot = await self.cd_slot()
        if slot.get("Inserted") and slot.get("Image") == url:
            return
        if slot.get("Inserted"):
            await self._media(slot, "EjectMedia", {})
        await self._media(
            slot, "InsertMedia", {"Image": url, "Inserted": True, "WriteProtected": True}
        )
        if not (await self.cd_slot()).get("Inserted"):
            raise IronicError(f"{self.base} accepted virtual media and inserted none", "power")

    async def eject(self) -> None:
        slot = await self.cd_slot()
        if slot.get("Inserted"):
            await self._media(slot, "EjectMedia", {})

    async def cd_slot(self) -> dict[str, Any]:
        """Return the first virtual media slot that takes a CD, of the system or its manager."""
        system = await self.system()
        collection = (system.get("VirtualMedia") or {}).get("@odata.id", "")
        if not collection:
            managers = (system.get("Links") or {}).get("ManagedBy") or []
            manager = await self.get(managers[0]["@odata.id"]) if managers else {}
            collection = (manager.get("VirtualMedia") or {}).get("@odata.id", "")
        members = (await self.get(collection)).get("Members", []) if collection else []
        for member in members:
            slot = await self.get(member["@odata.id"])
            if {"CD", "DVD"} & set(slot.get("MediaTypes") or []):
                return slot
        raise IronicError(f"{self.base} has no virtual media slot for a CD", "power")

    async def _media(self, slot: dict[str, Any], verb: str, body: dict[str, Any]) -> None:
        action = slot.get("Actions", {}).get(f"#VirtualMedia.{verb}", {})
        target = action.get("target") or f"{slot['@odata.id']}/Actions/VirtualMedia.{verb}"
        await self.call("POST", target, body)

    async def get(self, path: str) -> dict[str, Any]:
        body, _ = await self.call("GET", path)
        return body

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        _, etag = await self.call("GET", path)
        await self.call("PATCH", path, body, {"If-Match": etag} if etag else {})

    async def login(self) -> None:
        body = {"UserName": self.username, "Password": self.password}
        status, headers, _ = await self._send(
            "POST", "/redfish/v1/SessionService/Sessions", body, {}
        )
        if status in (401, 403):
            raise IronicError(
                f"Unable to log in to {self.base} as {self.username!r}: the BMC answered {status}",
                "credentials",
            )
        self.token = headers.get("X-Auth-Token", "")
        if status >= 300 or not self.token:
            raise IronicError(f"{self.base} opened no session: it answered {status}", "unreachable")

    async def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[dict[str, Any], str]:
        """Send one request with the session, logging in anew once when the BMC has forgotten it."""
        if not self.token:
            await self.login()
        for attempt in (1, 2):
            more = {"X-Auth-Token": self.token, **(headers or {})}
            status, answered, read = await self._send(method, path, body, more)
            if status == 401 and attempt == 1:
                await self.login()
                continue
            break
        if status in (401, 403):
            raise IronicError(
                f"{method} {self.base}{path} was refused with {status}", "credentials"
            )
        if status >= 400:
            raise IronicError(
                f"{method} {self.base}{path} was answered with {status}: {_message(read)}", "power"
            )
        return read, answered.get("ETag", "") or str(read.get("@odata.etag", ""))

    async def _send(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, Mapping[str, str], dict[str, Any]]:
        try:
            async with self.http.request(
                method,
                self.base + path,
                json=body,
                headers=headers,
                ssl=False,
                timeout=self.timeout,
            ) as answer:
                try:
                    read = await answer.json(content_type=None)
                except ValueError:
                    read = {}
                return answer.status, answer.headers, read if isinstance(read, dict) else {}
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            reason = str(error) or "no answer in time"
            raise IronicError(
                f"Unable to connect to {self.base}: {reason}", "unreachable"
            ) from error


def _message(body: dict[str, Any]) -> str:
    error = body.get("error") if isinstance(body.get("error"), dict) else {}
    return str((error or {}).get("message") or "no reason given")
