"""Live fragments of network: the lanes of a fabric and one segment, as open pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from gpucloud.live import Fragment, ViewClass
from gpucloud.models import User
from network import showing
from network.models import Fabric, Segment


def _reader(view: ViewClass) -> showing.Reader:
    if view.sees_all:
        return showing.Reader(None)
    return showing.Reader(frozenset(tenant for tenant, _ in view.tenants))


def _fabric(user: User, uid: UUID) -> Fabric | None:
    """A fabric for whoever sees a segment on it."""
    wanted = showing.Reader.of(user).segments().values("fabric")
    return Fabric.objects.filter(uid=uid, pk__in=wanted).select_related("site").first()


def _segment(user: User, uid: UUID) -> Segment | None:
    return showing.Reader.of(user).segments().filter(uid=uid).first()


def _lanes(fabric: Fabric, view: ViewClass) -> Mapping[str, Any]:
    return showing.fabric_panel(fabric, _reader(view))


def _page(segment: Segment, view: ViewClass) -> Mapping[str, Any]:
    return showing.segment_page(segment, _reader(view))


FRAGMENTS: list[Fragment] = [
    Fragment(
        "fabric",
        ("network/_lanes.html", "network/_ports.html"),
        _fabric,
        _lanes,
        name="fabric-lanes",
        follows=("segment", "server", "claim"),
    ),
    Fragment(
        "segment",
        tuple(
            f"network/_{part}.html"
            for part in ("head", "members", "addresses", "clusters", "history")
        ),
        _segment,
        _page,
        follows=("server", "cluster"),
    ),
]
