"""A small, deterministic ISO 9660 image with a handful of files in its root."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

SECTOR = 2048
SYSTEM_SECTORS = 16
# One fixed moment for everything, so that the same files make the same bytes: 2026-01-01 00:00 UTC.
MOMENT = bytes((126, 1, 1, 0, 0, 0, 0))
LONG_MOMENT = b"2026010100000000\0"
NO_MOMENT = b"0" * 16 + b"\0"


@dataclass(frozen=True)
class File:
    """A file by its ISO name, e.g. README.TXT."""

    name: str
    content: bytes


def build(volume: str, files: Sequence[File]) -> tuple[bytes, dict[str, int]]:
    """The image and the byte offset of each file in it."""
    files = sorted(files, key=lambda file: file.name)
    root, table_l, table_m, first = (SYSTEM_SECTORS + n for n in (4, 2, 3, 5))
    offsets: dict[str, int] = {}
    body = b""
    for file in files:
        offsets[file.name] = first * SECTOR + len(body)
        body += _padded(file.content)
    directory = _record(b"\0", root, SECTOR, True) + _record(b"\1", root, SECTOR, True)
    for file in files:
        identifier = f"{file.name};1".encode("ascii")
        directory += _record(identifier, offsets[file.name] // SECTOR, len(file.content), False)
    if len(directory) > SECTOR:
        raise ValueError("too many files for one directory sector")
    sectors = first + len(body) // SECTOR
    image = (
        bytes(SYSTEM_SECTORS * SECTOR)
        + _primary(volume, sectors, root, table_l, table_m)
        + _padded(b"\xffCD001\x01")
        + _padded(struct.pack("<BBIH", 1, 0, root, 1) + b"\0\0")
        + _padded(struct.pack(">BBIH", 1, 0, root, 1) + b"\0\0")
        + _padded(directory)
        + body
    )
    return image, offsets


def _primary(volume: str, sectors: int, root: int, table_l: int, table_m: int) -> bytes:
    """The primary volume descriptor, field after field as ECMA-119 section 8.4 lists them."""
    parts = [
        b"\x01CD001\x01\0",
        _text("", 32),
        _text(volume, 32),
        bytes(8),
        _both32(sectors),
        bytes(32),
        _both16(1) + _both16(1) + _both16(SECTOR),
        _both32(10),
        struct.pack("<II", table_l, 0) + struct.pack(">II", table_m, 0),
        _record(b"\0", root, SECTOR, True),
        _text("", 3 * 128) + _text("GPUCLOUD", 128),
        _text("", 3 * 37),
        LONG_MOMENT + LONG_MOMENT + NO_MOMENT + LONG_MOMENT,
        b"\x01\0",
    ]
    return _padded(b"".join(parts))


def _record(identifier: bytes, sector: int, size: int, directory: bool) -> bytes:
    padding = b"" if len(identifier) % 2 else b"\0"
    length = 33 + len(identifier) + len(padding)
    return (
        bytes((length, 0))
        + _both32(sector)
        + _both32(size)
        + MOMENT
        + bytes((2 if directory else 0, 0, 0))
        + _both16(1)
        + bytes((len(identifier),))
        + identifier
        + padding
    )


def _text(value: str, size: int) -> bytes:
    return value.encode("ascii").ljust(size)


def _both32(value: int) -> bytes:
    return struct.pack("<I", value) + struct.pack(">I", value)


def _both16(value: int) -> bytes:
    return struct.pack("<H", value) + struct.pack(">H", value)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % SECTOR)
