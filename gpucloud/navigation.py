"""The side bar's sections: what exists, who sees it, which one is current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Section:
    """One entry. `staff` hides it from people without a platform role; pages check for
    themselves.
    """

    label: str
    path: str
    icon: str
    staff: bool = False


GROUPS: Final[tuple[tuple[str, tuple[Section, ...]], ...]] = (
    ("", (Section("Overview", "/", "overview"),)),
    (
        "Fleet",
        (
            Section("Servers", "/servers/", "server", staff=True),
            Section("Node types", "/node-types/", "gpu"),
            Section("Providers", "/providers/", "provider", staff=True),
            Section("Images", "/images/", "image"),
        ),
    ),
    (
        "Tenants",
        (
            Section("Clusters", "/clusters/", "cluster"),
            Section("Claims", "/claims/", "claim"),
            Section("Templates", "/templates/", "template"),
            Section("Tenants", "/tenants/", "user"),
        ),
    ),
    ("Network", (Section("Segments", "/networks/", "network"),)),
    ("Records", (Section("Activity", "/activity/", "activity"),)),
)

ROLES: Final[dict[str, str]] = {
    "admin": "Platform admin",
    "operator": "Operator",
    "support": "Support",
    "auditor": "Auditor",
}


def is_staff(user: Any) -> bool:
    return getattr(user, "platform_role", "none") not in ("none", "", None)


def groups_for(user: Any, path: str) -> list[dict[str, Any]]:
    """The groups with at least one section for this person; the section of `path` is current."""
    staff = is_staff(user)
    shown = []
    for title, sections in GROUPS:
        links = [
            {"section": section, "current": _holds(section.path, path)}
            for section in sections
            if staff or not section.staff
        ]
        if links:
            shown.append({"title": title, "links": links})
    return shown


def _holds(section: str, path: str) -> bool:
    return path == "/" if section == "/" else path.startswith(section)


def who(user: Any) -> dict[str, str]:
    """Name, initial and role in words: the platform role, else the first membership's tenant."""
    name = user.get_username() if user.is_authenticated else "nobody"
    return {"name": name, "initial": name[:1].upper(), "role": _role(user)}


def _role(user: Any) -> str:
    if is_staff(user):
        return ROLES.get(str(user.platform_role), str(user.platform_role))
    memberships = getattr(user, "memberships", None)
    if memberships is None:
        return ""
    rows = [
        f"{row.role.capitalize()}, {row.tenant.name}"
        for row in memberships.select_related("tenant")[:2]
    ]
    return rows[0] + ("" if len(rows) < 2 else " and others") if rows else "No tenant yet"
