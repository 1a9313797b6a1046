"""Live pages: writers publish names, a hub per process re-reads and renders once, sockets
get text.
"""

from __future__ import annotations

from gpucloud.live.fragments import Fragment, ViewClass
from gpucloud.live.publish import CHANNEL, publish

__all__ = ["CHANNEL", "Fragment", "ViewClass", "publish"]
