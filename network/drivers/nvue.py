"""Cumulus switches through NVUE's REST API: one revision a switch for a change, read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from gpucloud import drivers
from gpucloud.drivers import DriverError, Progress, setting
from network.drivers import AttachSpec, Membership, PortRef, PortSeen, SegmentSpec
from network.drivers.nvue_rest import Rest, Tree, leaf_of, vlans_of

ATTEMPTS = 3
LOOKS = 3
SOON = 0.5
# The VLAN of untagged frames on a trunk; no segment may have it.
NATIVE_VLAN = 1


@dataclass(frozen=True)
class NvueConfig(drivers.Config):
    """One fabric: its leaf switches and one login for all of them."""

    switches: dict[str, str] = setting(
        label="Switches", help='Name and address of each: {"leaf-1": "https://10.0.0.2:8765"}'
    )
    username: str = setting(label="User name")
    password: str = setting(label="Password", secret=True)
    bridge: str = setting("br_default", label="Bridge domain")
    quarantine_vlan: int = setting(4000, label="Quarantine VLAN")
    save: bool = setting(True, label="Save after each change", help="Else a reboot undoes it.")
    verify: bool = setting(True, label="Verify certificates")
    certificates: dict[str, str] = setting(
        {}, label="Pinned certificates", help="SHA-256 by switch; accepted whoever signed them."
    )
    ca: str = setting("", label="CA bundle", help="Path of a file; empty: the system's.")
    connect_timeout: float = setting(5.0, label="Connect time-out in seconds")
    read_timeout: float = setting(20.0, label="Read time-out in seconds")


@dataclass
class Wish:
    """What one port shall carry: an access VLAN alone, or changes to its tagged ones."""

    access: int | None = None
    add: set[int] = field(default_factory=set)
    drop: set[int] = field(default_factory=set)

    def is_met(self, seen: PortSeen) -> bool:
        if self.access is not None:
            return seen.access == self.access and not seen.tagged
        tagged = set(seen.tagged)
        return self.add <= tagged and not self.drop & (tagged | {seen.access})

    def patch(self, leaf: Tree, quarantine: int) -> Tree:
        """The change to a port's bridge settings; unsets only what is set, as NVUE wants it."""
        tagged = vlans_of(leaf)
        if self.access is None and (self.add or tagged - self.drop):
            vlans: Tree = {str(vlan): {} for vlan in sorted(self.add - tagged)}
            vlans |= {str(vlan): None for vlan in sorted(self.drop & tagged)}
            unset: Tree = {"access": None} if "access" in leaf else {}
            return {**unset, "untagged": leaf.get("untagged", NATIVE_VLAN), "vlan": vlans}
        # A trunk without a list carries all VLANs, so one that loses its last goes to quarantine.
        gone: Tree = {key: None for key in ("untagged", "vlan") if key in leaf}
        return {**gone, "access": quarantine if self.access is None else self.access}


@dataclass(frozen=True)
class Change:
    """A change under way, as it travels in Progress.ref: the revision on each switch."""

    revisions: dict[str, str] = field(default_factory=dict)
    attempt: int = 0
    looks: int = 0

    @classmethod
    def parse(cls, ref: str) -> Change:
        try:
            attempt, looks, revisions = json.loads(ref)
            return cls({str(k): str(v) for k, v in revisions.items()}, int(attempt), int(looks))
        except (ValueError, TypeError, AttributeError):
            return cls()

    def __str__(self) -> str:
        return json.dumps([self.attempt, self.looks, self.revisions], separators=(",", ":"))


class Nvue:
    """FabricDriver for Cumulus Linux. After a permanent error a retry starts with an empty ref."""

    kind: ClassVar[str] = "nvue"
    label: ClassVar[str] = "NVIDIA Cumulus (NVUE)"
    Config: ClassVar[type] = NvueConfig
    # Only a hint: which revision is under way for a VLAN. Forgetting it costs one more revision.
    _vlan_changes: ClassVar[dict[tuple[str, int], str]] = {}

    def __init__(self, config: NvueConfig) -> None:
        self._config = config
        self._rests = {name: Rest(name, url, config) for name, url in config.switches.items()}

    def check(self) -> list[str]:
        problems = [] if self._rests else ["No switch is named."]
        for name, rest in self._rests.items():
            try:
                with drivers.call_budget(5.0 / len(self._rests)):
                    vlans = vlans_of(rest.get(self._bridge_path(), "applied"))
            except DriverError as error:
                problems.append(f"{error.message} {error.hint}".strip())
                continue
            if self._config.quarantine_vlan not in vlans:
                vlan = self._config.quarantine_vlan
                problems.append(f"{name}: the quarantine VLAN {vlan} is not in the bridge.")
        return problems

    def ensure_segment(self, segment: SegmentSpec) -> Progress:
        """The VLAN on the bridge of every switch."""
        if segment.vlan == NATIVE_VLAN:
            raise _refused(f"VLAN {NATIVE_VLAN} carries untagged frames and cannot be a segment.")
        return self._set_vlan(segment, present=True)

    def remove_segment(self, segment: SegmentSpec) -> Progress:
        if segment.vlan == self._config.quarantine_vlan:
            raise _refused("The quarantine segment is never removed.")
        inside = self.observe(segment).ports
        if inside:
            names = ", ".join(f"{one.port.switch} {one.port.port}" for one in inside)
            raise _refused(f"Segment {segment.name} still has ports: {names}.", "Detach them.")
        return self._set_vlan(segment, present=False)

    def attach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        return self._advance(self._wishes(specs), Change.parse(ref) if ref else Change())

    def detach(self, specs: tuple[AttachSpec, ...], ref: str = "") -> Progress:
        wishes = self._wishes(specs, leave=True)
        return self._advance(wishes, Change.parse(ref) if ref else Change())

    def observe(self, segment: SegmentSpec) -> Membership:
        inside: list[PortSeen] = []
        exists = bool(self._rests)
        for name, rest in self._rests.items():
            exists &= segment.vlan in vlans_of(rest.get(self._bridge_path(), "applied"))
            for port, interface in rest.get("/interface", "operational").items():
                seen = _seen(PortRef(name, port), leaf_of(interface, self._config.bridge))
                if segment.vlan == seen.access or segment.vlan in seen.tagged:
                    inside.append(seen)
        return Membership(segment, tuple(inside), exists)

    def ports(self, ports: tuple[PortRef, ...]) -> tuple[PortSeen, ...]:
        return tuple(_seen(port, self._leaf(port, "operational")) for port in ports)

    # One change of ports, looked at again and again until it is read back.

    def _advance(self, wishes: dict[PortRef, Wish], change: Change) -> Progress:
        issues: list[str] = []
        for name, revision in change.revisions.items():
            state, issue = self._rest(name).revision(revision)
            if state == "applying":
                return Progress(False, f"{name} applies the change.", str(change), SOON)
            if state == "refused":
                issues.append(f"{name}: {issue}")
            if state == "gone":
                change = Change()
        seen = self.ports(tuple(wishes))
        off = [one for one in seen if not wishes[one.port].is_met(one)]
        if not off:
            return self._done(seen, change)
        if issues and ("conflict" not in " ".join(issues) or change.attempt >= ATTEMPTS):
            raise _issue(issues)
        if change.revisions and not issues:
            return self._look_again(off, change)
        return self._start(wishes, change.attempt + 1)

    def _start(self, wishes: dict[PortRef, Wish], attempt: int) -> Progress:
        """Prepare every switch's revision before any is applied: all or none, as far as it goes."""
        revisions: dict[str, str] = {}
        for name in dict.fromkeys(port.switch for port in wishes):
            rest = self._rest(name)
            # The revision comes first: what it is based on is what we read next.
            revisions[name] = rest.begin()
            mine = {port: wish for port, wish in wishes.items() if port.switch == name}
            rest.patch(revisions[name], self._patch(mine, revisions[name]))
        for name, revision in revisions.items():
            self._rest(name).apply(revision)
        ref = str(Change(revisions, attempt))
        return Progress(False, f"{', '.join(revisions)} applies the change.", ref, SOON)

    def _patch(self, wishes: dict[PortRef, Wish], revision: str) -> Tree:
        interfaces: Tree = {}
        vlans: set[int] = set()
        for port, wish in wishes.items():
            leaf = self._leaf(port, revision)
            patch = wish.patch(leaf, self._config.quarantine_vlan)
            interfaces[port.port] = {"bridge": {"domain": {self._config.bridge: patch}}}
            vlans |= wish.add
            vlans |= {patch[key] for key in ("access", "untagged") if patch.get(key)}
        bridge: Tree = {"vlan": {str(vlan): {} for vlan in sorted(vlans)}}
        return {
            "bridge": {"domain": {self._config.bridge: bridge}},
            "interface": interfaces,
        }

    def _look_again(self, off: list[PortSeen], change: Change) -> Progress:
        """Applied, yet the ports differ: give the silicon a moment, then say so."""
        words = "; ".join(_words(one) for one in off)
        if change.looks + 1 < LOOKS:
            again = Change(change.revisions, change.attempt, change.looks + 1)
            return Progress(False, f"Applied; waiting for {words}.", str(again), 2 * SOON)
        raise DriverError(
            f"The switch applied the change, but reads back {words}.",
            code="PORT_MISMATCH",
            permanent=True,
            hint="Look at the switch, then retry; or quarantine the server.",
        )

    def _done(self, seen: tuple[PortSeen, ...], change: Change) -> Progress:
        if self._config.save:
            for name in change.revisions:
                self._rest(name).save()
        ports = [{**vars(one.port), "access": one.access, "tagged": [*one.tagged]} for one in seen]
        words = "; ".join(_words(one) for one in seen)
        evidence = {"ports": ports, "revisions": change.revisions}
        return Progress(True, f"Read back: {words}.", str(change), evidence=evidence)

    def _set_vlan(self, segment: SegmentSpec, present: bool) -> Progress:
        waiting = []
        for name, rest in self._rests.items():
            key = (rest.address, segment.vlan)
            state, issue = "", ""
            if key in self._vlan_changes:
                state, issue = rest.revision(self._vlan_changes[key])
            if state == "applying":
                waiting.append(name)
            elif (segment.vlan in vlans_of(rest.get(self._bridge_path(), "applied"))) == present:
                if self._vlan_changes.pop(key, None) and self._config.save:
                    rest.save()
            elif state == "refused":
                del self._vlan_changes[key]
                raise _issue([f"{name}: {issue}"])
            else:
                vlan: Tree = {"vlan": {str(segment.vlan): {} if present else None}}
                revision = rest.begin()
                rest.patch(revision, {"bridge": {"domain": {self._config.bridge: vlan}}})
                rest.apply(revision)
                self._vlan_changes[key] = revision
                waiting.append(name)
        if waiting:
            return Progress(False, f"{', '.join(waiting)} applies VLAN {segment.vlan}.", wait=SOON)
        where = ", ".join(self._rests)
        verb = "is on" if present else "is gone from"
        return Progress(True, f"VLAN {segment.vlan} {verb} {where}.", ref=str(segment.vlan))

    def _wishes(self, specs: Iterable[AttachSpec], leave: bool = False) -> dict[PortRef, Wish]:
        wishes: dict[PortRef, Wish] = {}
        for spec in specs:
            wish = wishes.setdefault(spec.port, Wish())
            if spec.mode == "access":
                wish.access = self._config.quarantine_vlan if leave else spec.segment.vlan
            else:
                (wish.drop if leave else wish.add).add(spec.segment.vlan)
        for port, wish in wishes.items():
            if wish.access is not None and (wish.add or wish.drop):
                raise _refused(f"{port.switch} {port.port} is asked for access and trunk at once.")
        return wishes

    def _leaf(self, port: PortRef, revision: str) -> Tree:
        interface = self._rest(port.switch).get(f"/interface/{port.port}", revision)
        return leaf_of(interface, self._config.bridge)

    def _rest(self, name: str) -> Rest:
        if name not in self._rests:
            raise _refused(f"This fabric has no switch called {name}.", "Correct the cable.")
        return self._rests[name]

    def _bridge_path(self) -> str:
        return f"/bridge/domain/{self._config.bridge}"


def _seen(port: PortRef, leaf: Tree) -> PortSeen:
    access = leaf.get("access")
    if isinstance(access, int):
        return PortSeen(port, access)
    return PortSeen(port, None, tuple(sorted(vlans_of(leaf))))


def _words(seen: PortSeen) -> str:
    where = f"{seen.port.switch} {seen.port.port}"
    if seen.tagged:
        return f"{where} carries VLANs {', '.join(map(str, seen.tagged))}"
    return f"{where} in VLAN {seen.access}" if seen.access else f"{where} in no VLAN"


def _refused(message: str, hint: str = "") -> DriverError:
    return DriverError(message, code="SWITCH_REFUSED", permanent=True, hint=hint)


def _issue(issues: list[str]) -> DriverError:
    text = "; ".join(issues)
    code = "SWITCH_CONFLICT" if "conflict" in text else "SWITCH_REFUSED"
    return DriverError(
        f"The change was refused. {text}",
        code=code,
        permanent=True,
        hint="Read the switch's words, mend what they name, then retry.",
    )
