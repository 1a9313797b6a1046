"""Live fragments of network: segments and ports, as open pages show them."""

from __future__ import annotations

from gpucloud.live import Fragment

FRAGMENTS: list[Fragment] = []
