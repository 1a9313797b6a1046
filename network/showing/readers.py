"""Who reads: everything, or the segments of some tenants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from gpucloud.policy import sees_platform
from network.models import Segment


@dataclass(frozen=True)
class Reader:
    """Who reads: everything, or the segments of these tenants."""

    tenants: frozenset[int] | None

    @classmethod
    def of(cls, user: Any) -> Reader:
        if sees_platform(user):
            return cls(None)
        return cls(frozenset(user.memberships.values_list("tenant_id", flat=True)))

    @property
    def staff(self) -> bool:
        return self.tenants is None

    def segments(self) -> QuerySet[Segment]:
        rows = Segment.objects.exclude(state=Segment.State.GONE).select_related("fabric", "tenant")
        return rows if self.tenants is None else rows.filter(tenant__in=self.tenants)
