"""Where a BMC is: every way in which people write it, in one form that can be compared."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Address:
    """Where a BMC is and, where told, which system behind it is meant."""

    root: str
    system: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Accepts https://host/redfish/v1/Systems/1, Metal3's redfish+https://…, a bare host, and
        IPv6 with or without brackets; ValueError for what is no address.
        """
        text = text.strip()
        if _bare_ipv6(text):
            text = f"[{text}]"
        parts = urlsplit(text if "://" in text else f"https://{text}")
        scheme = parts.scheme.rpartition("+")[2]
        scheme = scheme if scheme in ("http", "https") else "https"
        port = f":{parts.port}" if parts.port is not None else ""
        path = parts.path.rstrip("/")
        system = path if re.search(r"/Systems/[^/]+$", path) else ""
        return cls(f"{scheme}://{_host(parts.hostname or '')}{port}", system)

    @property
    def host(self) -> str:
        return urlsplit(self.root).netloc


def _bare_ipv6(text: str) -> bool:
    """Whether all of the text is one address: its last group is never a port."""
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _host(name: str) -> str:
    if ":" in name:
        if "%" in name:
            raise ValueError("a zone is only known to one machine")
        return f"[{ipaddress.IPv6Address(name)}]"
    if not HOST.fullmatch(name):
        raise ValueError("no host")
    return name.lower()
