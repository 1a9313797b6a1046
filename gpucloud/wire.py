"""HTTPS for drivers: time-outs within the call budget, one certificate, a size cap, few retries."""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from gpucloud.drivers import DriverError, budget_left, check_budget

MAX_ANSWER = 8 << 20
CHUNK = 64 << 10
READS = ("GET", "HEAD")


class AnswerTooLarge(requests.exceptions.RequestException):
    """The peer sent more than any honest answer has."""


class BoundedAdapter(HTTPAdapter):
    """Sends a read at most twice, a write once, within the call budget; takes no endless answer."""

    def __init__(
        self,
        connect_timeout: float,
        read_timeout: float,
        certificate: str = "",
        max_answer: int = MAX_ANSWER,
        trusts_any: bool = False,
    ) -> None:
        self._trusts_any = trusts_any or bool(certificate)
        self._times = (connect_timeout, read_timeout)
        self._certificate = certificate
        self._max_answer = max_answer
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        if self._certificate:
            kwargs["assert_fingerprint"] = self._certificate
        if self._trusts_any:
            # Without a context of ours urllib3 reads the system's CAs, for 50 ms of CPU, at every
            # connection, only to ignore them.
            kwargs["ssl_context"] = create_urllib3_context(cert_reqs=ssl.CERT_NONE)
        super().init_poolmanager(*args, **kwargs)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        attempts = 2 if request.method in READS else 1
        while True:
            attempts -= 1
            verb = f"{request.method} {urlsplit(request.url or '').netloc}"
            check_budget(verb)
            try:
                answer = super().send(request, True, self._within_budget(), verify, cert, proxies)
                self._read(answer)
                return answer
            except requests.exceptions.SSLError:
                raise
            except (requests.exceptions.ConnectionError, requests.exceptions.Timeout):
                if attempts <= 0 or budget_left() <= 0:
                    raise

    def _within_budget(self) -> tuple[float, float]:
        left = max(budget_left(), 0.1)
        connect, read = self._times
        return min(connect, left), min(read, left)

    def _read(self, answer: requests.Response) -> None:
        """Take the body now: the read time-out alone would let a peer drip for ever."""
        until = time.monotonic() + min(2 * self._times[1], max(budget_left(), 0.1))
        body = bytearray()
        for chunk in answer.iter_content(CHUNK):
            body += chunk
            if len(body) > self._max_answer:
                answer.close()
                raise AnswerTooLarge(f"more than {self._max_answer} bytes", response=answer)
            if time.monotonic() > until:
                answer.close()
                raise requests.exceptions.ReadTimeout("the answer does not end", response=answer)
        answer._content = bytes(body)


def open_session(
    connect_timeout: float,
    read_timeout: float,
    certificate: str = "",
    verify: bool | str = True,
    max_answer: int = MAX_ANSWER,
) -> requests.Session:
    """A session that ignores the environment's proxies and netrc.

    With `certificate` (SHA-256 in hex) exactly that one is accepted, whoever signed it.
    """
    session = requests.Session()
    session.trust_env = False
    session.verify = False if certificate else verify
    adapter = BoundedAdapter(
        connect_timeout, read_timeout, certificate, max_answer, trusts_any=verify is False
    )
    session.mount("https://", adapter)
    session.mount("http://", BoundedAdapter(connect_timeout, read_timeout, "", max_answer))
    return session


def read_certificate(url: str, timeout: float) -> str:
    """SHA-256 (hex) of the certificate a peer shows now; OSError when it does not answer."""
    parts = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    address = (parts.hostname or "", parts.port or 443)
    timeout = max(min(timeout, budget_left()), 0.1)
    with (
        socket.create_connection(address, timeout) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname) as secured,
    ):
        return hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()


def plain_fingerprint(text: str) -> str:
    """A fingerprint as people write it, as 64 hex digits; '' when it is none."""
    digits = re.sub(r"[\s:]", "", text).lower()
    return digits if re.fullmatch(r"[0-9a-f]{64}", digits) else ""


def pinned(fingerprint: str, peer: str) -> str:
    """The pin of a peer, or '' where none is set; one that cannot be read is refused, not lost."""
    digits = plain_fingerprint(fingerprint)
    if fingerprint.strip() and not digits:
        raise DriverError(
            f"The certificate pinned for {peer} is no SHA-256 fingerprint.",
            code="DRIVER_CONFIG",
            permanent=True,
            hint="Write its 64 hex digits, with or without colons.",
        )
    return digits
