"""One BMC as the fleet sweep reads it: a cached session, at most two GETs a round, little parsing.

sushy costs 29 ms of CPU for one look at a system, this costs one; inspection and actions stay with
the redfish driver.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from gpucloud.wire import plain_fingerprint
from inventory.drivers.address import Address
from inventory.drivers.redfish_facts import power_of

GETS_PER_ROUND = 2
LARGEST_ANSWER = 256 << 10
TIMEOUT = aiohttp.ClientTimeout(total=12, sock_connect=4, sock_read=8)
GOODBYE = aiohttp.ClientTimeout(total=2)
SESSIONS = "/redfish/v1/SessionService/Sessions"
NO_SESSIONS = (404, 405, 501)
# A refused login is tried again this much later: five in a row lock the account on many BMCs.
LOGIN_PAUSES = (60.0, 300.0, 900.0)
HEALTH_LENGTH = 16
HEADERS = {"OData-Version": "4.0", "Accept": "application/json", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Target:
    """One BMC to read; a changed field makes a new reader with a login of its own."""

    server: int
    address: str
    certificate: str
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    basic: bool = False


@dataclass(frozen=True)
class Reading:
    """What one round found. `problem` says why power is unknown; `at` is when it was read."""

    server: int
    at: datetime
    power: str = "unknown"
    health: str = ""
    problem: str = ""
    code: str = ""


class Trouble(Exception):
    """The BMC could not be read this round."""

    def __init__(self, code: str, sentence: str, again: bool = False) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.again = code, sentence, again


class Reader:
    """Reads one BMC, round after round. Never more than one request at a time."""

    def __init__(self, target: Target, http: aiohttp.ClientSession) -> None:
        self.target = target
        self._http = http
        self._address = Address.parse(target.address)
        self._system = self._address.system
        self._tls = _pin(target, self._address)
        self._headers: dict[str, str] | None = None
        self._session = ""
        self._refused = 0
        self._quiet_until = 0.0
        self._last: Reading | None = None

    async def read(self, now: float) -> Reading:
        """Look once; `now` is monotonic time. Never raises but when cancelled."""
        if now < self._quiet_until and self._last is not None:
            return self._last
        began = datetime.now(UTC)
        try:
            system = await self._look()
            self._refused = 0
            at = datetime.now(UTC)
            power = power_of(system)
            problem = "" if power != "unknown" else "The BMC does not say whether it is on or off."
            self._last = Reading(
                self.target.server, at, power, _health(system), problem, "BMC_ERROR" * bool(problem)
            )
        except Trouble as trouble:
            if trouble.code == "BMC_LOGIN":
                pause = LOGIN_PAUSES[min(self._refused, len(LOGIN_PAUSES) - 1)]
                self._quiet_until, self._refused = now + pause, self._refused + 1
            # The time of the attempt's start: what somebody else read meanwhile is newer.
            self._last = Reading(
                self.target.server, began, problem=trouble.sentence, code=trouble.code
            )
        return self._last

    async def close(self) -> None:
        """End the session: a BMC has few of them."""
        if self._session and self._headers:
            try:
                async with self._http.delete(
                    self._session, headers=self._headers, ssl=self._tls, timeout=GOODBYE
                ):
                    pass
            except (aiohttp.ClientError, TimeoutError, OSError):
                return

    async def _look(self) -> dict[str, Any]:
        left = GETS_PER_ROUND
        while True:
            if self._headers is None:
                await self._log_in()
            left -= 1
            try:
                if not self._system:
                    self._system = _only_system(await self._get("/redfish/v1/Systems"))
                    continue
                return await self._get(self._system)
            except Trouble as trouble:
                if not trouble.again or left <= 0:
                    raise

    async def _get(self, path: str) -> dict[str, Any]:
        url = self._own(path)
        if not url:
            raise Trouble("BMC_ERROR", "The BMC's links lead to another address.")
        status, answer = await self._send("GET", url)
        if status in (401, 403):
            # An ended session; a password that was changed shows at the next login.
            basic = "Authorization" in (self._headers or {})
            self._headers, self._session = None, ""
            raise Trouble("BMC_LOGIN" if basic else "BMC_ERROR", _REFUSED, again=not basic)
        if status >= 500:
            raise Trouble("BMC_ERROR", f"The BMC answered with {status}.", again=True)
        if status != 200:
            raise Trouble("BMC_ERROR", f"The BMC answered with {status}.")
        return answer

    async def _log_in(self) -> None:
        basic = aiohttp.encode_basic_auth(self.target.username, self.target.password)
        if self.target.basic:
            self._headers = {"Authorization": basic}
            return
        login = {"UserName": self.target.username, "Password": self.target.password}
        status, _ = await self._send("POST", self._address.root + SESSIONS, login)
        if status in NO_SESSIONS:
            self._headers = {"Authorization": basic}
            return
        if status in (401, 403):
            raise Trouble("BMC_LOGIN", _REFUSED)
        if status >= 300 or not self._headers:
            self._headers = None
            raise Trouble("BMC_ERROR", f"The BMC answered a login with {status}.")

    async def _send(
        self, method: str, url: str, body: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        headers = {**HEADERS, **(self._headers or {})}
        try:
            async with self._http.request(
                method,
                url,
                json=body,
                headers=headers,
                ssl=self._tls,
                timeout=TIMEOUT,
                allow_redirects=False,
            ) as answer:
                if method == "POST" and (token := answer.headers.get("X-Auth-Token")):
                    self._headers = {"X-Auth-Token": token}
                    self._session = self._own(answer.headers.get("Location", ""))
                if answer.status != 200 or method == "POST":
                    return answer.status, {}
                return answer.status, _parse(await _bounded(answer))
        except aiohttp.ServerFingerprintMismatch:
            raise Trouble(
                "BMC_CERTIFICATE", "The BMC shows another certificate than the one pinned."
            ) from None
        except TimeoutError:
            raise Trouble("BMC_TIMEOUT", "The BMC answers too late.") from None
        except (aiohttp.ClientConnectorError, ConnectionRefusedError):
            raise Trouble("BMC_UNREACHABLE", "The BMC does not answer.") from None
        except (aiohttp.ClientError, OSError, ValueError):
            # Also a kept-alive connection that the BMC closed meanwhile: worth a second try.
            raise Trouble(
                "BMC_UNREACHABLE", "The BMC broke the connection off.", again=method == "GET"
            ) from None

    def _own(self, link: str) -> str:
        """A link as URL; nothing when it leaves this BMC, because the token would go along."""
        url = urljoin(self._address.root, link)
        here = urlsplit(url)[:2] == urlsplit(self._address.root)[:2]
        return url if link and here else ""


_REFUSED = "The BMC refused the user name or password."


def _pin(target: Target, address: Address) -> aiohttp.Fingerprint | bool:
    """How to check the BMC's certificate: by its pin, which enrolment takes at first use."""
    if not target.certificate or not address.root.startswith("https:"):
        return False
    if not (pin := plain_fingerprint(target.certificate)):
        raise ValueError("the pinned certificate is no SHA-256")
    return aiohttp.Fingerprint(bytes.fromhex(pin))


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    text = b""
    async for chunk in answer.content.iter_chunked(64 << 10):
        text += chunk
        if len(text) > LARGEST_ANSWER:
            answer.close()
            raise Trouble("BMC_ERROR", "The BMC's answer is far too large.")
    return text


def _parse(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Trouble("BMC_ERROR", "The BMC's answer is no JSON object.")
    return found


def _health(system: dict[str, Any]) -> str:
    status = system.get("Status")
    told = status.get("Health") if isinstance(status, dict) else None
    return told[:HEALTH_LENGTH] if isinstance(told, str) else ""


def _only_system(collection: dict[str, Any]) -> str:
    members = collection.get("Members")
    paths = [m.get("@odata.id") for m in members if isinstance(m, dict)] if members else []
    # DGX and HGX machines list their GPU baseboard as a system beside the computer.
    found = [path for path in paths if isinstance(path, str) and "/HGX" not in path]
    if len(found) != 1:
        raise Trouble(
            "BMC_UNSUPPORTED", f"The BMC has {len(found)} systems; its address must name one."
        )
    return found[0]
