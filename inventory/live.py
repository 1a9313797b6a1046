"""Live fragments of inventory: servers and their parts, as open pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpucloud.live import Fragment, ViewClass
from inventory import showing
from inventory.models import Server


def _detail(server: Server, view: ViewClass) -> Mapping[str, Any]:
    return showing.detail(server)


FRAGMENTS: list[Fragment] = [
    Fragment("server", ("inventory/_server_row.html",), showing.whole, name="server-row"),
    Fragment(
        "server",
        tuple(
            f"inventory/_{part}.html"
            for part in (
                "head",
                "lede",
                "notices",
                "identity",
                "power",
                "engine",
                "operation",
                "ports",
                "hardware",
                "wipes",
                "history",
            )
        ),
        showing.whole,
        _detail,
    ),
]
