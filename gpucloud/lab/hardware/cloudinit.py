"""What cloud-init understands of a config drive: address, host name, node labels, join command."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

JOIN = re.compile(r"https://(?P<vip>[^/\s\"']+)(?P<path>/node/join\?[^\s\"']+)")
LABELS = re.compile(r"--node-labels=(?P<labels>[^\s\"']+)")


@dataclass(frozen=True)
class Wishes:
    """The parts of user data that this OS acts on."""

    hostname: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    vip: str = ""
    token: str = ""


def read_user_data(text: str) -> Wishes:
    """Read a cloud-config; anything unreadable counts as absent, as cloud-init does it."""
    if not text.startswith("#cloud-config"):
        return Wishes()
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:
        return Wishes()
    if not isinstance(config, dict):
        return Wishes()
    vip, token = _join_of(config.get("runcmd"))
    hostname = str(config.get("hostname") or config.get("fqdn") or "")
    return Wishes(hostname, _labels_of(config.get("write_files")), vip, token)


def address_of(network_data: Any, macs: list[str]) -> str | None:
    """The first IPv4 address, without prefix, that belongs to one of this machine's NICs."""
    if not isinstance(network_data, dict):
        return None
    own = {mac.lower() for mac in macs}
    links = {
        str(link.get("id")): link
        for link in network_data.get("links") or []
        if isinstance(link, dict)
    }

    def is_ours(link_id: str, depth: int = 0) -> bool:
        link = links.get(link_id)
        if link is None or depth > 3:
            return False
        mac = str(link.get("ethernet_mac_address") or link.get("vlan_mac_address") or "").lower()
        below = [str(link.get("vlan_link") or ""), *map(str, link.get("bond_links") or [])]
        return mac in own or any(is_ours(name, depth + 1) for name in below if name)

    for network in network_data.get("networks") or []:
        if not isinstance(network, dict) or not str(network.get("type", "")).startswith("ipv4"):
            continue
        address = str(network.get("ip_address") or "").partition("/")[0]
        if address and is_ours(str(network.get("link"))):
            return address
    return None


def _labels_of(files: Any) -> dict[str, str]:
    labels: dict[str, str] = {}
    for entry in files if isinstance(files, list) else []:
        if not isinstance(entry, dict) or entry.get("path") != "/etc/default/kubelet":
            continue
        for match in LABELS.finditer(str(entry.get("content") or "")):
            pairs = (pair.partition("=") for pair in match["labels"].split(",") if pair)
            labels |= {key: value for key, _, value in pairs}
    return labels


def _join_of(commands: Any) -> tuple[str, str]:
    for command in commands if isinstance(commands, list) else []:
        text = " ".join(map(str, command)) if isinstance(command, list) else str(command)
        match = JOIN.search(text)
        if match:
            token = parse_qs(urlsplit(match["path"]).query).get("token", [""])[0]
            return match["vip"], token
    return "", ""
