"""Switch ports: where they are wanted beside what was read there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch

from inventory import showing as servers
from inventory.models import Interface
from network.models import Attachment, Fabric, Link


def wanted_of(one: Interface) -> list[Attachment]:
    """The live attachments of an interface that were fetched with it."""
    rows: list[Attachment] = getattr(one, "wanted", [])
    return rows


def inside(link: Link, vlan: int) -> bool:
    """Whether the VLAN was read on the port, tagged or not."""
    return link.seen_vlan == vlan or vlan in link.seen_tagged


@dataclass(frozen=True)
class PortRow:
    """One cabled port: whose it is, where it is wanted, what was read, and whether that agrees."""

    link: Link
    wanted: Sequence[Attachment]
    verdict: tuple[str, str]

    @property
    def owner(self) -> Any:
        return self.link.interface.server or self.link.interface.shared_endpoint

    @property
    def at(self) -> Any:
        """When it was read: the port, or the attachment that is carried tagged on it."""
        return self.link.seen_at or next((row.observed_at for row in self.wanted), None)

    @property
    def result(self) -> tuple[str, str]:
        words = {"good": "Same", "warn": "Drift", "busy": "Moving"}
        return words.get(self.verdict[1], "–"), self.verdict[1]


def ports(fabric: Fabric) -> list[PortRow]:
    """The fabric's ports, those that are not as wanted first."""
    live = Attachment.objects.exclude(state="gone").select_related("segment__fabric")
    links = (
        Link.objects.filter(fabric=fabric)
        .exclude(interface__server__state="retired")
        .select_related("interface__server", "interface__shared_endpoint")
        .prefetch_related(Prefetch("interface__attachments", live, to_attr="wanted"))
    )
    rows = [_port(link) for link in links]
    rank = {"warn": 0, "busy": 1}
    return sorted(rows, key=lambda row: (rank.get(row.verdict[1], 2), *_natural(row.link)))


def _natural(link: Link) -> tuple[str, list[tuple[str, int]]]:
    """swp2 before swp10."""
    parts = re.findall(r"(\D*)(\d*)", link.port)
    return link.switch, [(text, int(number or 0)) for text, number in parts]


def _port(link: Link) -> PortRow:
    wanted = wanted_of(link.interface)
    verdict = servers.verdict(link, wanted)
    tagged = [row.segment.vlan for row in wanted if row.mode == Attachment.Mode.TRUNK]
    if tagged and link.seen_at:
        there = all(vlan in link.seen_tagged for vlan in tagged)
        verdict = verdict[0], "good" if there else "warn"
    elif tagged and all(row.observed for row in wanted):
        verdict = f"Tagged {', '.join(map(str, tagged))}", "good"
    return PortRow(link, wanted, verdict)
