"""Live fragments of provisioning: claims and their timelines, as open pages show them."""

from __future__ import annotations

from gpucloud.live import Fragment

FRAGMENTS: list[Fragment] = []
