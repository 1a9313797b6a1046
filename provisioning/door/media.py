"""The agent's boot media: one fixed image, its reserved area filled for each key on the fly.

The image carries the agent's code as AGENT.ZIP and the reserved area as AGENT.CFG. It serves a
ramdisk that brings its own Python and is not bootable by itself: a bootable ISO with an AGENT.CFG
of the same shape takes its place where it lies in $GPUCLOUD_DATA as agent.iso.
"""

from __future__ import annotations

import io
import json
import mmap
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from provisioning.door.certificates import ca_pem
from provisioning.door.iso import File, build

MARK = b"GPUCLOUD-AGENT-CONFIG:1\n"
CONFIG_SIZE = 4096
NAME = "agent.iso"
README = b"Boot media of gpucloud's agent: its code in AGENT.ZIP, a one-time key in AGENT.CFG.\r\n"


@dataclass(frozen=True)
class Image:
    """The fixed image and where its configuration goes."""

    content: bytes | mmap.mmap
    offset: int

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self, config: bytes, start: int, end: int) -> bytes:
        """Bytes start..end (exclusive) of the image with this configuration in its place."""
        begin, finish = self.offset, self.offset + len(config)
        out = self.content[start : min(end, begin)] if start < begin else b""
        if start < finish and end > begin:
            out += config[max(start - begin, 0) : end - begin]
        if end > finish:
            out += self.content[max(start, finish) : end]
        return out


@lru_cache(maxsize=1)
def fixed_image() -> Image:
    """The image all operations share; the same code gives the same bytes."""
    built = Path(settings.GPUCLOUD_DATA) / NAME
    if built.exists():
        with built.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        offset = content.find(MARK)
        if offset < 0 or len(content) < offset + len(MARK) + CONFIG_SIZE:
            raise ValueError(f"{built} has no reserved area for the agent's configuration")
        return Image(content, offset)
    area = MARK + b" " * CONFIG_SIZE
    files = [File("AGENT.CFG", area), File("AGENT.ZIP", _code()), File("README.TXT", README)]
    made, offsets = build("GPUCLOUD_AGENT", files)
    return Image(made, offsets["AGENT.CFG"])


def config_for(key: str) -> bytes:
    """The reserved area for one boot key: mark, then JSON padded with spaces."""
    text = json.dumps({"door": settings.AGENT_URL, "key": key, "ca": ca_pem()}).encode()
    if len(text) > CONFIG_SIZE:
        raise ValueError("the agent's configuration does not fit into its reserved area")
    return MARK + text.ljust(CONFIG_SIZE)


def _code() -> bytes:
    folder = Path(settings.BASE_DIR) / "deploy" / "agent"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.glob("gpucloud_agent/**/*.py")):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return out.getvalue()
