"""doors.json: the addresses this installation listens on, picked free once and kept for ever."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

LOCALHOST = "127.0.0.1"


def data_dir() -> Path:
    """$GPUCLOUD_DATA, or var/ beside the code."""
    chosen = os.environ.get("GPUCLOUD_DATA")
    return Path(chosen) if chosen else Path(__file__).resolve().parent.parent / "var"


def read_doors(data: Path | None = None) -> dict[str, str]:
    """All doors by name; empty before the first start."""
    try:
        text = ((data or data_dir()) / "doors.json").read_text()
    except FileNotFoundError:
        return {}
    return {str(name): str(url) for name, url in json.loads(text).items()}


def door_port(url: str) -> int:
    """The port of a door's URL."""
    port = urlsplit(url).port
    if port is None:
        raise ValueError(f"the door {url!r} names no port")
    return port


def reserve_doors(data: Path, port: int) -> dict[str, str]:
    """Add the doors that are missing, let `web` follow PORT, and return them all."""
    with _locked(data):
        doors = read_doors(data)
        taken = {door_port(url) for url in doors.values()} | {port}
        if "valkey" not in doors:
            password = secrets.token_urlsafe(24)
            doors["valkey"] = f"redis://:{password}@{LOCALHOST}:{free_port(taken)}/0"
        if "door" not in doors:
            doors["door"] = f"https://{LOCALHOST}:{free_port(taken)}"
        doors["web"] = f"http://{LOCALHOST}:{port}"
        _write(data, doors)
    return doors


def free_port(taken: set[int]) -> int:
    """A port nobody listens on now and that is not in `taken`; it is added to `taken`."""
    while True:
        with socket.socket() as probe:
            probe.bind((LOCALHOST, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            taken.add(port)
            return port


def is_free(port: int) -> bool:
    """True when this port can be listened on."""
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT from our last run is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return False
    return True


@contextmanager
def _locked(data: Path) -> Iterator[None]:
    data.mkdir(parents=True, exist_ok=True)
    with (data / "doors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(data: Path, doors: dict[str, str]) -> None:
    # 0600 from the start: the Valkey password is in it.
    part = data / "doors.json.part"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(doors, out, indent=2, sort_keys=True)
        out.write("\n")
    part.chmod(0o600)
    part.replace(data / "doors.json")
