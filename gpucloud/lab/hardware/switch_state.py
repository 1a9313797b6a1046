"""The lab's switch: what each port carries, and the NVUE revisions that change it.

Two trees are kept apart, because a driver must be able to tell them apart: `applied` is the
configuration the switch accepted, the ports are what the silicon does. Faults make them differ.
"""

from __future__ import annotations

import copy
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

Tree = dict[str, Any]
BRIDGE = "br_default"
QUARANTINE = 4000
KEPT_REVISIONS = 200
FINAL = {"applied", "invalid", "ays_fail"}


class Acts(Protocol):
    """Where the switch writes down what really changed."""

    def write(self, actor: str, object: str, verb: str, before: Any, after: Any) -> object: ...


@dataclass(frozen=True)
class Port:
    """One socket of the switch at first start: what is plugged in, and how it is configured."""

    owner: str
    access: int | None = None
    trunk: bool = False


class Refused(Exception):
    """A request the switch answers with an error status and a sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def ports_of_rack(rack: Mapping[str, Any], switch: str) -> dict[str, Port]:
    """The cabling of one switch as rack.json has it: servers parked, shared endpoints trunked."""
    parked = int(rack["vlans"]["provisioning"])
    ports = {
        nic["port"]: Port(f"{server['name']}/{nic['name']}", access=parked)
        for server in rack["servers"]
        for nic in server["nics"]
        if nic["switch"] == switch
    }
    for endpoint in rack["shared_endpoints"]:
        if endpoint["switch"] == switch:
            ports[endpoint["port"]] = Port(endpoint["name"], trunk=True)
    return ports


def merge(tree: Tree, patch: Mapping[str, Any]) -> Tree:
    """A JSON merge patch, which is how NVUE reads a PATCH body: null unsets."""
    merged = dict(tree)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def compose(first: Tree, then: Mapping[str, Any]) -> Tree:
    """Two merge patches as one: unlike merge(), an unset stays in it."""
    composed = dict(first)
    for key, value in then.items():
        below = composed.get(key)
        if isinstance(value, Mapping):
            composed[key] = compose(below if isinstance(below, dict) else {}, value)
        else:
            composed[key] = value
    return composed


def _bridge_of(interface: Any) -> Tree:
    try:
        leaf = interface["bridge"]["domain"][BRIDGE]
    except (KeyError, TypeError):
        return {}
    return leaf if isinstance(leaf, dict) else {}


def _wanted(interface: Any) -> Tree:
    """What one port should carry, from its configuration."""
    leaf = _bridge_of(interface)
    if isinstance(leaf.get("access"), int):
        return {"access": leaf["access"], "untagged": None, "vlans": []}
    vlans = sorted(int(v) for v in _dict(leaf.get("vlan")))
    untagged = leaf.get("untagged") if isinstance(leaf.get("untagged"), int) else None
    return {"access": None, "untagged": untagged, "vlans": vlans}


def _shown(carried: Tree) -> Any:
    """A port as the act log shows it: the VLAN, or for a trunk its parts."""
    if carried["access"] is not None:
        return carried["access"]
    if carried["untagged"] is None and not carried["vlans"]:
        return None
    return {"untagged": carried["untagged"], "vlans": carried["vlans"]}


class Switch:
    """One switch: its ports, its VLANs and its revisions, kept on disk at every change."""

    def __init__(
        self,
        name: str,
        ports: Mapping[str, Port],
        state_dir: Path,
        acts: Acts,
        faults_of_port: Callable[[str], Mapping[str, Any]],
        quarantine: int = QUARANTINE,
    ) -> None:
        self.name = name
        self.ports = dict(ports)
        self.quarantine = quarantine
        self._acts = acts
        self._faults = faults_of_port
        self._file = Path(state_dir) / f"switch-{name}.json"
        self._state: Tree = self._load()

    # What the machines ask.

    def access_vlan(self, port: str) -> int | None:
        """The VLAN in which untagged frames of this port travel; None for a bare trunk."""
        if port not in self.ports:
            return None
        carried = self._state["ports"][port]
        if carried["access"] is not None:
            return int(carried["access"])
        if carried["untagged"] is not None:
            return int(carried["untagged"])
        return None if self.ports[port].trunk or carried["vlans"] else self.quarantine

    def carries(self, port: str, vlan: int) -> bool:
        """Whether frames of this VLAN reach the port, tagged or untagged."""
        if port not in self.ports:
            return False
        return vlan in self._state["ports"][port]["vlans"] or self.access_vlan(port) == vlan

    # What NVUE asks.

    def create_revision(self) -> str:
        stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H.%M.%S")
        revision = f"changeset/cumulus/{stamp}_{secrets.token_hex(3).upper()}"
        self._state["revisions"][revision] = {
            "state": "pending",
            "base": self._state["applied_count"],
            "patch": {},
            "transition": {"issue": {}, "progress": ""},
        }
        self._forget_old_revisions()
        self._save()
        return revision

    def revision(self, name: str) -> Tree:
        if name not in self._state["revisions"]:
            raise Refused(404, f"Revision {name} does not exist.")
        return copy.deepcopy(self._state["revisions"][name])

    def revisions(self) -> Tree:
        return copy.deepcopy(self._state["revisions"])

    def patch(self, name: str, body: Mapping[str, Any]) -> Tree:
        """Add a root patch to a pending revision; answers the patched part of the tree."""
        if self.revision(name)["state"] != "pending":
            raise Refused(400, f"Revision {name} is not pending.")
        self._check(body)
        known = self._state["revisions"][name]
        known["patch"] = compose(known["patch"], body)
        self._save()
        return self.tree(name)

    def start_apply(self, name: str, agreed: bool) -> Tree:
        """Begin to apply; finish_apply() decides. A repeated request changes nothing."""
        known = self._state["revisions"].get(name)
        if known is None:
            raise Refused(404, f"Revision {name} does not exist.")
        if known["state"] in ("applied", "apply"):
            return self.revision(name)
        if not agreed:
            self._settle(known, "ays_fail", "client_timeout", "Agree to apply the changes.")
        else:
            known["state"] = "apply"
            known["transition"] = {"issue": {}, "progress": "Applying"}
        self._save()
        return self.revision(name)

    def finish_apply(self, name: str) -> None:
        """Check the revision against what was applied meanwhile, then make it so or refuse it."""
        known = self._state["revisions"].get(name)
        if known is None or known["state"] != "apply":
            return
        tree = merge(self._state["applied"], known["patch"])
        changes = known["patch"].get("interface", {})
        touched = [p for p in self.ports if changes is None or p in changes]
        issue = self._issue(known, tree, touched)
        if issue:
            self._settle(known, "invalid", *issue)
        else:
            self._state["applied_count"] += 1
            self._state["applied"] = tree
            for port in touched:
                self._state["changed"][port] = self._state["applied_count"]
                self._program(port, _wanted(tree.get("interface", {}).get(port)))
            self._settle(known, "applied")
        self._save()

    def finish_interrupted(self) -> None:
        """After a restart: decide the revisions that were being applied when we died."""
        for name, known in list(self._state["revisions"].items()):
            if known["state"] == "apply":
                self.finish_apply(name)

    def save_applied(self) -> None:
        self._state["startup"] = copy.deepcopy(self._state["applied"])
        self._save()

    def tree(self, name: str) -> Tree:
        """The whole tree of a revision: `applied`, `startup`, `operational` or an id."""
        if name == "operational":
            return self._operational()
        if name in ("applied", "startup"):
            return copy.deepcopy(self._state[name])
        return merge(copy.deepcopy(self._state["applied"]), self.revision(name)["patch"])

    # Inside.

    def _issue(self, known: Tree, tree: Tree, touched: list[str]) -> tuple[str, str] | None:
        for port in touched:
            if self._state["changed"].get(port, 0) > known["base"]:
                return "conflict", f"{port} was changed by another revision after this one began."
            if self._faults(port).get("switch_refuses"):
                return "refused", f"The configuration of {port} is not accepted."
        vlans = {int(v) for v in _dict(_bridge_domain(tree).get("vlan"))}
        for port, interface in _dict(tree.get("interface")).items():
            access = _bridge_of(interface).get("access")
            if isinstance(access, int) and access not in vlans:
                return "invalid_vlan", f"{port}: access VLAN {access} is not in {BRIDGE}."
        return None

    def _settle(self, known: Tree, state: str, code: str = "", message: str = "") -> None:
        known["state"] = state
        issue = {"00000": {"code": code, "message": message, "severity": "error"}} if code else {}
        known["transition"] = {"issue": issue, "progress": message}

    def _program(self, port: str, carried: Tree) -> None:
        """Change what the silicon does, and only then write the act."""
        faults = self._faults(port)
        if faults.get("switch_ignores"):
            return
        if faults.get("wrong_vlan"):
            carried = {"access": int(faults["wrong_vlan"]), "untagged": None, "vlans": []}
        before = self._state["ports"][port]
        if carried == before:
            return
        self._state["ports"][port] = carried
        self._write_vlan(port, _shown(before), _shown(carried))

    def _write_vlan(self, port: str, before: Any, after: Any) -> None:
        self._acts.write(f"switch:{self.name}", self.ports[port].owner, "vlan", before, after)

    def _check(self, body: Mapping[str, Any]) -> None:
        interfaces = body.get("interface") or {}
        vlans = _bridge_domain(body).get("vlan") or {}
        if not isinstance(interfaces, dict) or not isinstance(vlans, dict):
            raise Refused(400, "interface and vlan are objects.")
        for port, interface in interfaces.items():
            if port not in self.ports and not port.startswith("swp"):
                raise Refused(400, f"'{port}' is not an interface of this switch.")
            leaf = _bridge_of(interface)
            vlans = {**vlans, **_dict(leaf.get("vlan"))}
            for key in ("access", "untagged"):
                _check_vlan(leaf.get(key))
        for vlan in vlans:
            _check_vlan(vlan)

    def _operational(self) -> Tree:
        tree: Tree = copy.deepcopy(self._state["applied"])
        members: dict[str, Tree] = {}
        for port in self.ports:
            carried = self._state["ports"][port]
            leaf: Tree = {"vlan": {str(v): {} for v in carried["vlans"]}}
            if carried["access"] is None and (carried["vlans"] or self.ports[port].trunk):
                leaf["untagged"] = carried["untagged"]
            else:
                leaf["access"] = self.access_vlan(port)
            tree.setdefault("interface", {})[port] = {
                "type": "swp",
                "link": {"state": {"up": {}}},
                "bridge": {"domain": {BRIDGE: {k: v for k, v in leaf.items() if v is not None}}},
            }
            for vlan in {self.access_vlan(port), *carried["vlans"]} - {None}:
                members.setdefault(str(vlan), {})[port] = {}
        vlans = _bridge_domain(tree).setdefault("vlan", {})
        for vlan, ports in members.items():
            vlans[vlan] = {**vlans.get(vlan, {}), "port": ports}
        return tree

    def _load(self) -> Tree:
        try:
            known: Tree = json.loads(self._file.read_text())
        except FileNotFoundError:
            return self._first_start()
        # A rack that grew since brings ports this file does not know; they start as new ones do.
        for port, first in self.ports.items():
            known["ports"].setdefault(port, _first(first))
        return known

    def _first_start(self) -> Tree:
        vlans = {"1", str(self.quarantine)}
        interfaces: Tree = {}
        for port, first in self.ports.items():
            leaf: Tree = {"access": first.access} if first.access is not None else {}
            vlans |= {str(first.access)} if first.access is not None else set()
            interfaces[port] = {"type": "swp", "bridge": {"domain": {BRIDGE: leaf}}}
        applied = {
            "bridge": {"domain": {BRIDGE: {"vlan": {v: {} for v in sorted(vlans, key=int)}}}},
            "interface": interfaces,
        }
        self._state = {
            "applied": applied,
            "startup": copy.deepcopy(applied),
            "applied_count": 0,
            "changed": {},
            "ports": {port: _first(first) for port, first in self.ports.items()},
            "revisions": {},
        }
        self._save()
        for port in self.ports:
            self._write_vlan(port, None, _shown(self._state["ports"][port]))
        return self._state

    def _forget_old_revisions(self) -> None:
        known = self._state["revisions"]
        over = len(known) - KEPT_REVISIONS
        for name in [n for n, r in known.items() if r["state"] in FINAL][: max(over, 0)]:
            del known[name]

    def _save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(self._state))
        os.replace(beside, self._file)


def _dict(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _first(port: Port) -> Tree:
    return {"access": port.access, "untagged": None, "vlans": []}


def _bridge_domain(tree: Mapping[str, Any]) -> Tree:
    try:
        domain = tree["bridge"]["domain"][BRIDGE]
    except (KeyError, TypeError):
        return {}
    return domain if isinstance(domain, dict) else {}


def _check_vlan(vlan: Any) -> None:
    if vlan is None:
        return
    if not str(vlan).isdecimal() or not 1 <= int(vlan) <= 4094:
        raise Refused(400, f"'{vlan}' is not a VLAN id (1 to 4094).")
