"""Where the lab's processes find their data, doors and speed, and how they show that they live."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

BEAT_SECONDS = 2.0


def data_dir() -> Path:
    value = os.environ.get("GPUCLOUD_DATA")
    if not value:
        raise SystemExit("GPUCLOUD_DATA is not set: the lab does not guess where its data lives")
    return Path(value).resolve()


def lab_dir() -> Path:
    return data_dir() / "lab"


def speed() -> float:
    """What every simulated duration is divided by; 1 is real time."""
    value = float(os.environ.get("LAB_SPEED") or 20)
    if value <= 0:
        raise SystemExit("LAB_SPEED must be greater than 0")
    return value


def doors() -> dict[str, str]:
    path = data_dir() / "doors.json"
    if not path.exists():
        raise SystemExit(f"{path} is missing; run python -m gpucloud.lab.setup first")
    found: dict[str, str] = read_json(path)
    return found


def port_of(url: str) -> int:
    port = urlsplit(url).port
    if port is None:
        raise SystemExit(f"the door {url} names no port")
    return port


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def write_atomically(path: Path, content: bytes | str, mode: int = 0o644) -> None:
    """Replace a file in one step, so that a killed process leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    draft.replace(path)


def write_json(path: Path, value: object, mode: int = 0o644) -> None:
    write_atomically(path, json.dumps(value, indent=1) + "\n", mode)


def write_pid(name: str) -> None:
    """Name this process in `run/`, unless the supervisor has already done so."""
    path = data_dir() / "run" / f"{name}.pid"
    own = str(os.getpid())
    if not path.exists() or path.read_text().split()[:1] != [own]:
        write_atomically(path, own + "\n")


async def beat(name: str) -> None:
    """Touch the beat file for ever; the supervisor judges the process by it alone."""
    path = data_dir() / "run" / f"{name}.beat"
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        path.touch()
        await asyncio.sleep(BEAT_SECONDS)
