"""The way to one BMC: sushy's Connector and login with our rules.

sushy's own Connector repeats writes after time-outs, overwrites after 412, follows any link and
waits for ten minutes; this one does none of that. Every answer is bounded and checked before sushy
parses it, because sushy trips over bodies that real BMCs send.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from sushy import auth, connector, exceptions  # type: ignore[import-untyped]

from gpucloud.drivers import DriverError
from gpucloud.wire import open_session
from inventory.drivers.address import Address
from inventory.drivers.redfish_errors import (
    SHOWN_CHARACTERS,
    Json,
    parse_object,
    tidy_error,
    transport_error,
)

MAX_REDIRECTS = 3
NO_SESSIONS = {404, 405, 501}


@dataclass(frozen=True)
class Login:
    """All that names one session; the cache's key."""

    address: Address
    username: str
    password: str
    certificate: str
    basic: bool
    connect_timeout: float
    read_timeout: float

    @property
    def key(self) -> str:
        # Only a hash is kept, so that a password never sits in a dictionary's keys.
        return sha256(repr(astuple(self)).encode()).hexdigest()


class BmcConnector(connector.Connector):  # type: ignore[misc]
    """GETs are sent twice at most, writes once, and nothing is sent but to this BMC."""

    def __init__(self, login: Login, certificate: str) -> None:
        super().__init__(login.address.root + "/", verify=not certificate)
        self._session = open_session(login.connect_timeout, login.read_timeout, certificate)
        self._session.headers["Connection"] = "close"
        self._host = login.address.host

    def _op(
        self,
        method: str,
        path: str = "",
        data: Any = None,
        headers: Json | None = None,
        blocking: bool = False,
        timeout: Any = None,
        server_side_retries_left: int | None = None,
        allow_reauth: bool = True,
        **extra: Any,
    ) -> requests.Response:
        """One request. A 202 is only an acceptance, so `blocking` is not honoured."""
        url = self._own(urljoin(self._url, path))
        sent = {"OData-Version": "4.0", "Accept-Encoding": "identity", **(headers or {})}
        answer = self._send(method, url, data, sent)
        if method == "GET" and answer.status_code == 406:
            answer = self._send(method, url, data, {**sent, "Accept-Encoding": None})
        if method == "GET" and answer.status_code >= 500:
            answer = self._send(method, url, data, sent)
        if answer.status_code in (401, 403) and allow_reauth and self._may_log_in_again(url):
            # Nothing was done yet, so this is safe for writes too.
            self._auth.refresh_session()
            return self._op(method, path, data, headers, allow_reauth=False)
        exceptions.raise_for_response(method, url, answer)
        return answer

    def patch(
        self,
        path: str = "",
        data: Any = None,
        headers: Json | None = None,
        etag: str | None = None,
        blocking: bool = False,
        timeout: Any = None,
        **extra: Any,
    ) -> requests.Response:
        """PATCH under the ETag that was read; never without it once the BMC has said 412."""
        sent = dict(headers or {})
        tag = _clean_etag(etag or sent.pop("If-Match", None) or "")
        if tag:
            sent["If-Match"] = tag
        try:
            return self._op("PATCH", path, data, sent)
        except exceptions.HTTPError as error:
            if error.status_code != 412 or not tag.startswith("W/"):
                raise
        return self._op("PATCH", path, data, {**sent, "If-Match": tag.removeprefix("W/")})

    def _send(self, method: str, url: str, data: Any, headers: Json) -> requests.Response:
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = self._session.request(
                    method, url, json=data, headers=headers, allow_redirects=False
                )
            except requests.exceptions.RequestException as error:
                raise transport_error(self._host, method, error) from error
            if answer.status_code not in (301, 302, 303, 307, 308):
                self._tidy(method, url, answer)
                return answer
            if method != "GET":
                break
            url = self._own(urljoin(url, answer.headers.get("Location", "")))
        raise DriverError(
            f"{self._host}: {method} {urlsplit(url).path} is redirected, which is not followed.",
            code="BMC_ERROR",
            permanent=True,
            hint="Use the address at which the BMC itself answers.",
        )

    def _own(self, url: str) -> str:
        """Refuse to leave the BMC: the token would go along."""
        if urlsplit(url)[:2] != urlsplit(self._url)[:2]:
            raise DriverError(
                f"{self._host} points to another address, {urlsplit(url).netloc}.",
                code="BMC_ERROR",
                permanent=True,
                hint="Look at the BMC: its links must stay on it.",
            )
        return url

    def _may_log_in_again(self, url: str) -> bool:
        return bool(self._auth and self._auth.can_refresh_session()) and "Sessions" not in url

    def _tidy(self, method: str, url: str, answer: requests.Response) -> None:
        """Make an error body what sushy expects, and refuse an answer that is no JSON object."""
        body = parse_object(answer)
        if answer.status_code >= 400:
            answer._content = json.dumps(tidy_error(body)).encode()
        elif method == "GET" and body is None:
            shown = answer.text[:SHOWN_CHARACTERS].strip()
            raise DriverError(
                f"{self._host}: GET {urlsplit(url).path} answered no JSON object: {shown!r}.",
                code="BMC_ERROR",
            )


class BmcAuth(auth.SessionAuth):  # type: ignore[misc]
    """A session; Basic only where it is asked for, or where the BMC has no sessions at all.

    sushy falls back to Basic after any failure, so one wrong password counts twice at the BMC.
    """

    def __init__(self, login: Login) -> None:
        super().__init__(login.username, login.password)
        self._basic = login.basic

    def _do_authenticate(self) -> None:
        if not self._basic:
            try:
                super()._do_authenticate()
                where: str | None = self._session_resource_id
                self._session_resource_id: str | None = urlsplit(where).path if where else None
                return
            except exceptions.HTTPError as error:
                if error.status_code not in NO_SESSIONS:
                    raise
        self._connector.set_http_basic_auth(self._username, self._password)

    def can_refresh_session(self) -> bool:
        return self._session_key is not None


def _clean_etag(tag: str) -> str:
    """An ETag as one strong or weak value: BMCs double its quotes, add -gzip, or send none."""
    tag = tag.strip().replace('""', '"').replace('-gzip"', '"')
    return "" if tag in ('"', '""', "W/") else tag
