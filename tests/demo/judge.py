"""The judge: what machines, switch and disks did against the rules; it never reads our rows."""

from __future__ import annotations

from typing import Any

from tests.demo.cloud import PROVISIONING, QUARANTINE, Cloud


class Judge:
    """Reads the act log from a line on and states what was wrong with one server's journey."""

    def __init__(self, cloud: Cloud, server: str, since: int = 0) -> None:
        self.server = server
        self.machine = f"machine:{server}"
        self.lines = [one for one in cloud.acts() if one["seq"] > since and self._mine(one)]

    def _mine(self, line: dict[str, Any]) -> bool:
        return line["object"] == self.server or line["object"].startswith(f"{self.server}/")

    def vlans(self, nic: str) -> list[int | None]:
        """The VLANs that one port was in, in order."""
        return [
            one["after"]
            for one in self.lines
            if one["verb"] == "vlan" and one["object"] == f"{self.server}/{nic}"
        ]

    def power(self) -> list[str]:
        return [one["after"] for one in self.lines if one["verb"] == "power"]

    def verbs(self, verb: str) -> list[Any]:
        return [one["after"] for one in self.lines if one["verb"] == verb]

    def moved_through_quarantine(self, nic: str, target: int) -> bool:
        """Every way into the target or out of it led through quarantine."""
        way = [PROVISIONING, *self.vlans(nic)]
        steps = list(zip(way, way[1:], strict=False))
        direct = [(a, b) for a, b in steps if a != b and QUARANTINE not in (a, b)]
        return target in way and not direct

    def moved_only_while_off(self) -> bool:
        """No port changed while the machine was on."""
        power = "off"
        for one in self.lines:
            if one["verb"] == "power":
                power = one["after"]
            elif one["verb"] == "vlan" and power == "on" and one["before"] != one["after"]:
                return False
        return True

    def violations(self) -> list[Any]:
        return self.verbs("violation")
