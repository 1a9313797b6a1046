"""A fabric in memory, with delays and faults: what the other drivers promise, without a switch."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar, Literal

from gpucloud import drivers
from gpucloud.drivers import DriverError, Progress, setting
from network.drivers import AttachSpec, Membership, PortRef, PortSeen, SegmentSpec

Fault = Literal["", "refuses", "ignores", "unreachable"]


@dataclass(frozen=True)
class FakeFabricConfig(drivers.Config):
    """Instances of the same name share one fabric, as two logins to one switch do."""

    name: str = setting("fake", label="Name of the fabric in memory")
    quarantine_vlan: int = setting(4000, label="Quarantine VLAN")
    looks: int = setting(1, label="Looks until a change is applied")


@dataclass
class FakeWorld:
    """The fabric itself. Tests set `fault` or `wrong_vlan` and read `ports` and `moves`."""

    ports: dict[PortRef, PortSeen] = field(default_factory=dict)
    vlans: set[int] = field(default_factory=set)
    moves: list[tuple[PortRef, PortSeen]] = field(default_factory=list)
    pending: dict[str, tuple[int, dict[PortRef, PortSeen]]] = field(default_factory=dict)
    vlan_looks: dict[tuple[int, bool], int] = field(default_factory=dict)
    fault: Fault = ""
    wrong_vlan: int | None = None
    numbers: count[int] = field(default_factory=lambda: count(1))
    lock: threading.RLock = field(default_factory=threading.RLock)

    def seen(self, port: PortRef) -> PortSeen:
        return self.ports.get(port, PortSeen(port, None))

    def program(self, wanted: dict[PortRef, PortSeen]) -> None:
        if self.fault == "ignores":
            return
        for port, seen in wanted.items():
            if self.wrong_vlan is not None:
                seen = PortSeen(port, self.wrong_vlan)
            if seen != self.seen(port):
                self.ports[port] = seen
                self.moves.append((port, seen))


class FakeFabric:
    """FabricDriver over a FakeWorld."""

    kind: ClassVar[str] = "fake"
    label: ClassVar[str] = "Fake fabric (in memory)"
    Config: ClassVar[type] = FakeFabricConfig
    worlds: ClassVar[dict[str, FakeWorld]] = {}

    def __init__(self, config: FakeFabricConfig) -> None:
        self._config = config
        self.world = self.worlds.setdefault(config.name, FakeWorld())
        self.world.vlans.add(config.quarantine_vlan)

    def check(self) -> list[str]:
        if self.world.fault == "unreachable":
            return ["The fake fabric does not answer. Check the switch and the way to it."]
        return []

    def ensure_segment(self, segment: SegmentSpec) -> Progress:
        return self._set_vlan(segment, present=True)

    def remove_segment(self, segment: SegmentSpec) -> Progress:
        if segment.vlan == self._config.quarantine_vlan:
            raise _refused("The quarantine segment is never removed.")
        if self.observe(segment).ports:
            raise _refused(f"Segment {segment.name} still has ports.")
        return self._set_vlan(segment, present=False)

    def attach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        wanted: dict[PortRef, PortSeen] = {}
        for port, modes in _modes(specs).items():
            if len(modes) > 1:
                raise _refused(f"{port.port} is asked for access and trunk at once.")
        for spec in specs:
            if spec.segment.vlan not in self.world.vlans:
                raise _refused(f"VLAN {spec.segment.vlan} is not on the fabric.")
            port, vlan = spec.port, spec.segment.vlan
            before = wanted.get(port, self.world.seen(port))
            if spec.mode == "access":
                wanted[port] = PortSeen(port, vlan)
            else:
                wanted[port] = PortSeen(port, None, tuple(sorted({*before.tagged, vlan})))
        return self._advance(wanted, ref)

    def detach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        wanted: dict[PortRef, PortSeen] = {}
        for spec in specs:
            before = wanted.get(spec.port, self.world.seen(spec.port))
            left = tuple(vlan for vlan in before.tagged if vlan != spec.segment.vlan)
            if spec.mode == "access" or not left:
                wanted[spec.port] = PortSeen(spec.port, self._config.quarantine_vlan)
            else:
                wanted[spec.port] = PortSeen(spec.port, None, left)
        return self._advance(wanted, ref)

    def observe(self, segment: SegmentSpec) -> Membership:
        self._reach()
        with self.world.lock:
            inside = tuple(
                seen
                for seen in self.world.ports.values()
                if segment.vlan == seen.access or segment.vlan in seen.tagged
            )
            return Membership(segment, inside, segment.vlan in self.world.vlans)

    def ports(self, ports: tuple[PortRef, ...]) -> tuple[PortSeen, ...]:
        self._reach()
        return tuple(self.world.seen(port) for port in ports)

    def _advance(self, wanted: dict[PortRef, PortSeen], ref: str) -> Progress:
        self._reach()
        with self.world.lock:
            if all(self.world.seen(port) == seen for port, seen in wanted.items()):
                ports = [
                    {**vars(p), "access": s.access, "tagged": [*s.tagged]}
                    for p, s in wanted.items()
                ]
                words = ", ".join(port.port for port in wanted)
                return Progress(True, f"Read back: {words}.", ref, evidence={"ports": ports})
            if self.world.fault == "refuses":
                raise _refused("The fake fabric refuses the change.")
            if ref not in self.world.pending:
                # A caller that keeps no ref finds its change by what it asks for.
                same = (known for known, one in self.world.pending.items() if one[1] == wanted)
                ref = next(same, "")
            if not ref:
                ref = f"change-{next(self.world.numbers)}"
                self.world.pending[ref] = (self._config.looks, wanted)
                return Progress(False, "The fake fabric applies the change.", ref, wait=0.1)
            return self._look(ref)

    def _look(self, ref: str) -> Progress:
        looks, wanted = self.world.pending[ref]
        if looks > 1:
            self.world.pending[ref] = (looks - 1, wanted)
            return Progress(False, "The fake fabric applies the change.", ref, wait=0.1)
        del self.world.pending[ref]
        self.world.program(wanted)
        if all(self.world.seen(port) == seen for port, seen in wanted.items()):
            return self._advance(wanted, ref)
        raise DriverError(
            "The fake fabric applied the change, but the ports read back differently.",
            code="PORT_MISMATCH",
            permanent=True,
            hint="Look at the switch, then retry; or quarantine the server.",
        )

    def _set_vlan(self, segment: SegmentSpec, present: bool) -> Progress:
        self._reach()
        with self.world.lock:
            key = (segment.vlan, present)
            if (segment.vlan in self.world.vlans) == present:
                self.world.vlan_looks.pop(key, None)
                verb = "is on" if present else "is gone from"
                return Progress(True, f"VLAN {segment.vlan} {verb} the fake fabric.")
            if self.world.fault == "refuses":
                raise _refused("The fake fabric refuses the change.")
            left = self.world.vlan_looks.get(key, self._config.looks) - 1
            self.world.vlan_looks[key] = left
            if left <= 0 and self.world.fault != "ignores":
                (self.world.vlans.add if present else self.world.vlans.discard)(segment.vlan)
            return Progress(False, f"The fake fabric applies VLAN {segment.vlan}.", wait=0.1)

    def _reach(self) -> None:
        if self.world.fault == "unreachable":
            raise DriverError(
                "The fake fabric does not answer.",
                code="SWITCH_UNREACHABLE",
                hint="Check the switch and the way to it.",
            )


def _modes(specs: tuple[AttachSpec, ...]) -> dict[PortRef, set[str]]:
    modes: dict[PortRef, set[str]] = {}
    for spec in specs:
        modes.setdefault(spec.port, set()).add(spec.mode)
    return modes


def _refused(message: str) -> DriverError:
    return DriverError(message, code="SWITCH_REFUSED", permanent=True, hint="Mend it, then retry.")
