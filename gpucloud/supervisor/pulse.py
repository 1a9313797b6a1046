"""Signs of life: what the supervisor looks at to tell that a process lives and is ready."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Returns True when there was a sign of life since the last call.
Pulse = Callable[[], bool]


def beat_pulse(beat: Path) -> Pulse:
    """Alive when the beat file was touched since the last look.

    A change is what counts, not the age: clocks jump and laptops sleep.
    """
    seen = _mtime(beat)

    def pulse() -> bool:
        nonlocal seen
        now = _mtime(beat)
        changed = now is not None and now != seen
        seen = now
        return changed

    return pulse


def ping_pulse(redis_url: str, beat: Path) -> Pulse:
    """Alive when PING is answered; the beat file is touched on the server's behalf."""
    address = urlsplit(redis_url)
    host, port = address.hostname or "127.0.0.1", address.port or 6379
    password = unquote(address.password or "")

    def pulse() -> bool:
        request = _resp("PING")
        if password:
            request = _resp("AUTH", password) + request
        try:
            with socket.create_connection((host, port), timeout=1) as server:
                server.sendall(request)
                answer = b""
                while not answer.endswith(b"+PONG\r\n"):
                    part = server.recv(256)
                    if not part:
                        return False
                    answer += part
        except OSError:
            return False
        with suppress(OSError):
            beat.touch()
        return True

    return pulse


def accepts(port: int) -> bool:
    """True when somebody on 127.0.0.1 accepts connections at this port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def answers(port: int, path: str) -> bool:
    """True when this path is answered over HTTP with anything but a server error."""
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        web.request("GET", path)
        return web.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        web.close()


def _resp(*words: str) -> bytes:
    out = f"*{len(words)}\r\n"
    for word in words:
        out += f"${len(word.encode())}\r\n{word}\r\n"
    return out.encode()


def _mtime(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
