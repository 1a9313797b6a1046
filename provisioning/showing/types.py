"""Node types with what there is of them: total, claimed, available, out, as meters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpucloud import ui
from provisioning.models import NodeType
from provisioning.services.node_types import capacities


@dataclass(frozen=True)
class Capacity:
    """One type's numbers; the meter is drawn to the scale of the largest beside it."""

    total: int
    claimed: int
    available: int
    waiting: int
    out: int
    most: int = 0

    @property
    def meter(self) -> ui.Meter:
        parts = [
            ui.Part("claimed", self.claimed, "claimed"),
            ui.Part("available", self.available, "available"),
            ui.Part("out", self.out, "out of service"),
        ]
        return ui.Meter(parts, self.most)


def measure(types: Iterable[NodeType]) -> list[NodeType]:
    """Give each type its `capacity`, in few queries."""
    found: Sequence[NodeType] = list(types)
    numbers = capacities(found)
    most = max((one["total"] for one in numbers.values()), default=0)
    for one in found:
        one.capacity = Capacity(**numbers[one.pk], most=most)  # type: ignore[attr-defined]
    return list(found)


def hardware(node_type: NodeType) -> str:
    """What the type promises, in a word."""
    sku = node_type.sku
    if not sku.get("gpu_count"):
        return ""
    return f"{sku['gpu_count']}× {sku.get('gpu_model') or 'GPU'}"
