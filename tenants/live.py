"""Live fragments of tenants: clusters and pools, as open pages show them."""

from __future__ import annotations

from gpucloud.live import Fragment

FRAGMENTS: list[Fragment] = []
