"""A machine described by a folder: machine.json says what there is, files stand for the drives."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from gpucloud_agent.hardware import Drive, Machine, OnProgress, VerbFailed

SLICE_SECONDS = 0.25


class FakeHardware:
    """Obeys machine.json: per verb `ok`, `fail`, `nothing` (claims success) or `unsupported`."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def machine(self) -> Machine:
        known = self._read_description()
        return Machine(known["uuid"], known["serial"], known["macs"], known.get("gpus", []))

    def drives(self) -> list[Drive]:
        names = ("name", "serial", "model", "capacity_bytes", "protocol")
        return [Drive(*(one[key] for key in names)) for one in self._read_description()["drives"]]

    def supports(self, drive: Drive, method: str) -> bool:
        return self._verb(drive, method) != "unsupported"

    def erase(self, drive: Drive, method: str, on_progress: OnProgress) -> str:
        started, seconds = time.monotonic(), float(self._entry(drive).get("seconds", 0))
        while (spent := time.monotonic() - started) < seconds:
            on_progress(spent / seconds)
            time.sleep(min(SLICE_SECONDS, seconds - spent))
        verb = self._verb(drive, method)
        if verb == "ok":
            self._blank(self._path(drive))
            return f"{method}: completed, status 0x0"
        if verb == "nothing":
            return f"{method}: completed, status 0x0"
        raise VerbFailed(f"{method}: {verb}, status 0x6")

    def readable_bytes(self, drive: Drive) -> int:
        return self._path(drive).stat().st_size

    def read(self, drive: Drive, offset: int, length: int) -> bytes:
        with self._path(drive).open("rb") as disk:
            disk.seek(offset)
            return disk.read(length)

    def power_off(self) -> None:
        (self._folder / "poweroff").touch()

    def _read_description(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._folder / "machine.json").read_text())
        return found

    def _entry(self, drive: Drive) -> dict[str, Any]:
        for one in self._read_description()["drives"]:
            if one["name"] == drive.name:
                return dict(one)
        raise VerbFailed(f"{drive.name}: no such device")

    def _verb(self, drive: Drive, method: str) -> str:
        return str(self._entry(drive).get("verbs", {}).get(method, "unsupported"))

    def _path(self, drive: Drive) -> Path:
        return self._folder / str(self._entry(drive)["path"])

    @staticmethod
    def _blank(path: Path) -> None:
        with path.open("r+b") as disk:
            disk.write(bytes(path.stat().st_size))
            disk.flush()
            os.fsync(disk.fileno())
