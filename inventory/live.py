"""Live fragments of inventory: servers and their parts, as open pages show them."""

from __future__ import annotations

from gpucloud.live import Fragment

FRAGMENTS: list[Fragment] = []
