"""Disk bytes: a file of 1 MiB stands for each drive, and only its bytes say what is on it.

Layout: boot header at 0, the OS's own files (kubelet credentials) at 32 KiB, config drive at
64 KiB, the image's bytes from 128 KiB on, tenancy markers in every 4 KiB block from 512 KiB on.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucloud.lab.hardware.rack import Drive

KIB = 1024
SIZE = 1024 * KIB
BLOCK = 4 * KIB
OS_FILES_AT = 32 * KIB
CONFIG_DRIVE_AT = 64 * KIB
IMAGE_AT = 128 * KIB
MARKERS_AT = 512 * KIB
MARK = b"TENANCY "

Json = dict[str, Any]


# A file's time stamp moves in ticks of some milliseconds: two writes in one tick look like one.
SETTLED_NS = 50_000_000


@dataclass(frozen=True)
class Findings:
    """What is on a drive."""

    image: str | None
    marker: str | None
    is_blank: bool


class Disk:
    """One drive's bytes."""

    def __init__(self, drive: Drive, path: Path) -> None:
        self.drive = drive
        self.path = path
        self._seen: tuple[int, Findings] | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.stat().st_size != SIZE:
            with path.open("ab") as file:
                file.truncate(SIZE)

    def boot_header(self) -> Json | None:
        """The header firmware looks for; None when nothing intact is there."""
        header = self._read_json(0, BLOCK)
        return header if header and header.get("sha256") else None

    def write_boot_header(self, header: Json) -> None:
        self._write_json(0, BLOCK, header)

    def config_drive(self) -> Json:
        return self._read_json(CONFIG_DRIVE_AT, IMAGE_AT - CONFIG_DRIVE_AT) or {}

    def write_config_drive(self, content: Json) -> None:
        self._write_json(CONFIG_DRIVE_AT, IMAGE_AT - CONFIG_DRIVE_AT, content)

    def os_files(self) -> Json:
        """What the installed OS remembers across reboots."""
        return self._read_json(OS_FILES_AT, CONFIG_DRIVE_AT - OS_FILES_AT) or {}

    def write_os_files(self, content: Json) -> None:
        self._write_json(OS_FILES_AT, CONFIG_DRIVE_AT - OS_FILES_AT, content)

    def erase_metadata(self) -> None:
        """Destroy what makes the disk bootable and readable; customer data stays where it is."""
        self._write(0, bytes(IMAGE_AT))

    def write_image(self, image: bytes, start: int, end: int) -> None:
        """Write image bytes [start, end), cut where the file that stands for the drive ends."""
        end = min(end, SIZE - IMAGE_AT)
        if start < end:
            self._write(IMAGE_AT + start, image[start:end])

    def write_markers(self, instance_id: str) -> None:
        line = MARK + instance_id.encode() + b"\n"
        with self.path.open("r+b") as file:
            for position in range(MARKERS_AT, SIZE, BLOCK):
                file.seek(position)
                file.write(line)

    def marker(self) -> str | None:
        """The instance id of a tenancy marker still on the drive, from any block."""
        with self.path.open("rb") as file:
            file.seek(MARKERS_AT)
            content = file.read()
        for position in range(0, len(content), BLOCK):
            if content.startswith(MARK, position):
                line = content[position + len(MARK) : position + BLOCK].partition(b"\n")[0]
                return line.decode(errors="replace")
        return None

    def is_blank(self) -> bool:
        return not any(self.path.read_bytes())

    def stamp(self) -> int:
        """Changes with the bytes, see SETTLED_NS."""
        return self.path.stat().st_mtime_ns

    def findings(self) -> Findings:
        """Look at the whole drive; remembered until its bytes change."""
        stamp = self.stamp()
        if self._seen is not None and self._seen[0] == stamp:
            return self._seen[1]
        header = self.boot_header()
        image = str(header["sha256"]) if header else None
        found = Findings(image, self.marker(), self.is_blank())
        if is_settled(stamp):
            self._seen = stamp, found
        return found

    def _read_json(self, position: int, size: int) -> Json | None:
        with self.path.open("rb") as file:
            file.seek(position)
            text = file.read(size).rstrip(b"\0")
        try:
            value = json.loads(text)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _write_json(self, position: int, size: int, value: Json) -> None:
        text = json.dumps(value).encode()
        if len(text) > size:
            raise ValueError(f"{len(text)} bytes do not fit into the {size} reserved on the disk")
        self._write(position, text.ljust(size, b"\0"))

    def _write(self, position: int, content: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(position)
            file.write(content)


def is_settled(stamp: int) -> bool:
    """Whether a later write would show in the stamp."""
    return time.time_ns() - stamp > SETTLED_NS
