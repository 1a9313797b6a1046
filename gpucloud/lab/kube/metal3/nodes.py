"""Ironic's database: one node per host with its work, in one file that survives kill -9."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Work:
    """One job under way. `stage` names what is waited for; times are wall-clock seconds."""

    id: str
    kind: str
    payload: dict[str, Any]
    stage: str = "off"
    asked: float = 0.0
    touched: float = 0.0
    percent: int = 0
    message: str = ""
    error: str = ""
    trouble: int = 0
    reported: bool = False
    inventory: dict[str, Any] = field(default_factory=dict)


@dataclass
class Node:
    """What Ironic knows of one machine; credentials are not kept, registering brings them."""

    id: str
    host: str
    mac: str
    uuid: str = ""
    work: Work | None = None


class Nodes:
    """All nodes by host key, written whole and atomically on every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_host: dict[str, Node] = {}
        if path.exists():
            for row in json.loads(path.read_text()):
                work = row.pop("work")
                self.by_host[row["host"]] = Node(**row, work=Work(**work) if work else None)

    def of(self, host: str, mac: str) -> Node:
        """Return the host's node, made when there is none yet."""
        node = self.by_host.setdefault(host, Node(id=str(uuid.uuid4()), host=host, mac=mac))
        node.mac = mac or node.mac
        return node

    def find(self, mac: str, system_uuid: str) -> Node | None:
        """Return the node a ramdisk belongs to, by its boot MAC or its system UUID."""
        for node in self.by_host.values():
            if (mac and node.mac == mac.lower()) or (
                system_uuid and node.uuid.lower() == system_uuid.lower()
            ):
                return node
        return None

    def by_id(self, node_id: str) -> Node | None:
        return next((n for n in self.by_host.values() if n.id == node_id), None)

    def drop(self, host: str) -> None:
        if self.by_host.pop(host, None):
            self.save()

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        with open(draft, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump([asdict(node) for node in self.by_host.values()], file)
        os.replace(draft, self.path)
