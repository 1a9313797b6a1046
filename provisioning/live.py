"""Live fragments of provisioning: claims and operations, as open pages show them."""

from __future__ import annotations

import uuid
from typing import Any

from gpucloud.live import Fragment, ViewClass
from gpucloud.models import User
from provisioning.models import NodeClaim
from provisioning.showing import claims
from provisioning.showing.page import context

CLAIM_PARTS = (
    "title",
    "lede",
    "trouble",
    "strip",
    "timeline",
    "facts",
    "network",
    "events",
    "selection",
    "follow",
)


def _claim(user: User, uid: uuid.UUID) -> NodeClaim | None:
    return claims.claims(user).filter(uid=uid).first()


def _row(claim: NodeClaim, view: ViewClass) -> dict[str, Any]:
    claims.summarise([claim])
    return {}


FRAGMENTS: list[Fragment] = [
    Fragment(
        "claim",
        tuple(f"provisioning/claim/_{part}.html" for part in CLAIM_PARTS),
        _claim,
        context,
    ),
    Fragment("claim", ("provisioning/claim/_row.html",), _claim, _row, name="claim-row"),
]
