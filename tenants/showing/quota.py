"""What a tenant holds of what it may, as meters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpucloud import ui


@dataclass(frozen=True)
class Use:
    """One key of the quota."""

    label: str
    used: int
    limit: int | None

    @property
    def meter(self) -> ui.Meter | None:
        """Nothing to draw without a limit."""
        if self.limit is None:
            return None
        left = max(0, self.limit - self.used)
        parts = [ui.Part("claimed", self.used, "held", True), ui.Part("free", left, "left", True)]
        return ui.Meter(parts)

    @property
    def words(self) -> str:
        if self.limit is None:
            return f"{self.used} held, no limit"
        over = f", {self.used - self.limit} over" if self.used > self.limit else ""
        return f"{self.used} of {self.limit} held{over}"


def meters(used: dict[str, Any]) -> list[Use]:
    """From provisioning.services.claims.quota_used."""
    return [
        Use("Servers", used["servers"]["used"], used["servers"]["limit"]),
        Use("GPUs", used["gpus"]["used"], used["gpus"]["limit"]),
    ]
