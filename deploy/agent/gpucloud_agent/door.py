"""The agent's way out: JSON over HTTPS to the console's door, through the proxy it was given."""

from __future__ import annotations

import base64
import http.client
import json
import random
import ssl
import sys
import time
from typing import Any, Callable
from urllib.parse import unquote, urlsplit

REQUEST_SECONDS = 20.0
FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0
PATIENCE_SECONDS = 3600.0
MAX_ANSWER = 1 << 20
TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}


class GaveUp(Exception):
    """The door refused us for good: asking again cannot help."""


class Unreachable(Exception):
    """The door did not answer, this time."""


def say(text: str) -> None:
    """One line for the console of the machine."""
    print(f"gpucloud-agent: {text}", file=sys.stderr, flush=True)


class Door:
    """One conversation with `/agent/v1/`. Never prints the key or the token."""

    def __init__(
        self,
        url: str,
        ca: str,
        proxy: str = "",
        sleep: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError(f"the door {url!r} is not an https address")
        self._host, self._port = parts.hostname, parts.port or 443
        self._prefix = parts.path.rstrip("/")
        # Only the CA that came with the plan is trusted, not the ramdisk's own store.
        self._tls = ssl.create_default_context(cadata=ca)
        self._proxy = urlsplit(proxy) if proxy else None
        self._sleep = sleep
        self._patience = patience
        self._token = ""

    def hello(self, key: str, system_uuid: str, macs: list[str], serial: str) -> None:
        """Trade the one-time key for the token of this operation."""
        body = {"key": key, "system_uuid": system_uuid, "macs": macs, "serial": serial}
        self._token = str(self._insist("POST", "/agent/v1/hello", body)["token"])

    def plan(self) -> dict[str, Any]:
        return self._insist("GET", "/agent/v1/plan")

    def progress(self, percent: int, message: str, drive: str | None = None) -> None:
        """Tell how far we are. A lost report is no loss, so it is sent once."""
        body = {"percent": percent, "message": message, "drive": drive}
        try:
            self._once("POST", "/agent/v1/progress", body)
        except Unreachable as error:
            say(f"progress not delivered: {error}")

    def result(self, ok: bool, error: str, report: dict[str, Any]) -> None:
        body = {"ok": ok, "error": error, "report": report}
        self._insist("POST", "/agent/v1/result", body)

    def _insist(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask until the door answers: waits grow, with some noise so that a rack does not march."""
        wait, spent = FIRST_WAIT, 0.0
        while True:
            try:
                return self._once(verb, path, body)
            except Unreachable as error:
                if spent >= self._patience:
                    raise GaveUp(
                        f"{verb} {path}: {error}, after {spent:.0f} s of trying"
                    ) from error
                pause = wait * random.uniform(0.75, 1.25)
                say(f"{verb} {path}: {error}; trying again in {pause:.1f} s")
                self._sleep(pause)
                wait, spent = min(wait * 2, LONGEST_WAIT), spent + pause

    def _once(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            connection.request(verb, self._prefix + path, payload, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if status in TRY_AGAIN:
            raise Unreachable(f"the door answered {status}")
        if not 200 <= status < 300:
            raise GaveUp(f"{verb} {path}: the door answered {status}")
        return _object(text, f"{verb} {path}")

    def _connection(self) -> http.client.HTTPSConnection:
        if self._proxy is None or not self._proxy.hostname:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=REQUEST_SECONDS, context=self._tls
            )
        # The proxy is the only way out of a ramdisk's network: no_proxy is not looked at.
        connection = http.client.HTTPSConnection(
            self._proxy.hostname,
            self._proxy.port or 3128,
            timeout=REQUEST_SECONDS,
            context=self._tls,
        )
        headers = {}
        if self._proxy.username:
            login = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
            headers["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        connection.set_tunnel(self._host, self._port, headers)
        return connection


def _object(text: bytes, what: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Unreachable("the answer is not JSON") from error
    if not isinstance(found, dict):
        raise GaveUp(f"{what}: the answer is not a JSON object")
    return found
