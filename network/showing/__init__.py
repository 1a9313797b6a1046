"""How segments are drawn, for pages and live fragments alike.

People of the platform see servers and switch ports; members of a tenant see their claims in their
own segments, and nothing of what lies beneath.
"""

from __future__ import annotations

from network.showing.lanes import fabric_panel
from network.showing.readers import Reader
from network.showing.segment import segment_page

__all__ = ["Reader", "fabric_panel", "segment_page"]
