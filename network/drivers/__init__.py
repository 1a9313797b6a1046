"""The FabricDriver protocol and the values that cross it:

one switch controller, its segments and memberships.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from gpucloud.drivers import Progress

Mode = Literal["access", "trunk"]


@dataclass(frozen=True)
class PortRef:
    """One cabled switch port: the switch's name and the port's name on it (`leaf-1`, `swp3`)."""

    switch: str
    port: str


@dataclass(frozen=True)
class SegmentSpec:
    """One isolated network as wanted on the fabric:

    `uid` ours, `vlan` 1-4094, `role` as in design.md section 2.
    """

    uid: str
    name: str
    vlan: int
    role: str


@dataclass(frozen=True)
class AttachSpec:
    """One port's membership in one segment:

    `access` replaces every other access, `trunk` adds a tagged VLAN.
    """

    port: PortRef
    segment: SegmentSpec
    mode: Mode = "access"


@dataclass(frozen=True)
class PortSeen:
    """A port as the switch applies it now:

    its access VLAN (None: none) and the tagged VLANs it carries.
    """

    port: PortRef
    access: int | None
    tagged: tuple[int, ...] = ()


@dataclass(frozen=True)
class Membership:
    """Everybody who is in a segment, as read from the fabric at one time, with the fabric's own
    revision or id.
    """

    segment: SegmentSpec
    ports: tuple[PortSeen, ...]
    exists: bool
    revision: str = ""


class FabricDriver(Protocol):
    """Segments and memberships on one fabric. Raises DriverError only; never sleeps or loops;
    every call is idempotent.

    `attach` and `detach` return Progress: not done while the fabric still applies; done only
    after the change was read
    back from the fabric's applied state. A port that leaves a segment goes to quarantine, never
    to "all VLANs".
    The quarantine segment's VLAN is the driver's Config field `quarantine_vlan`.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    Config: ClassVar[type]

    def __init__(self, config: Any) -> None: ...

    def check(self) -> list[str]: ...

    def ensure_segment(self, segment: SegmentSpec) -> Progress: ...

    def attach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        """Apply all memberships as one change, or none.

        `ref` is the previous Progress.ref of the same change.
        """

    def detach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        """Access ports go to the quarantine VLAN, trunks lose the segment's VLAN;

        one change for all.
        """

    def observe(self, segment: SegmentSpec) -> Membership: ...

    def ports(self, ports: tuple[PortRef, ...]) -> tuple[PortSeen, ...]:
        """Read these ports as applied, in the order asked."""

    def remove_segment(self, segment: SegmentSpec) -> Progress: ...
