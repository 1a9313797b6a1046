"""The console's icons: a closed list of our own 16 px drawings, inlined where they are used.

Inline rather than a sprite, so that a fragment that arrives over the socket, the error page and the
sign-in page need nothing else on the page.
"""

from __future__ import annotations

from typing import Final

ICONS: Final[dict[str, str]] = {
    "activity": '<path d="M1.75 8.5h2.75l2-5 3 9 2-4h2.75"/>',
    "audit": '<path d="M5.75 4h8M5.75 8h8M5.75 12h8M2.5 4v.01M2.5 8v.01M2.5 12v.01"/>',
    "calendar": '<rect x="2.5" y="3.25" width="11" height="10.25" rx="1"/>'
    '<path d="M2.5 6.5h11M5.5 1.9v2.6M10.5 1.9v2.6"/>',
    "check": '<path d="M3 8.5l3.25 3.25L13 4.75"/>',
    "claim": '<path d="M2 5.25a1 1 0 0 1 1-1h10a1 1 0 0 1 1 1v1.2a1.6 1.6 0 0 0 0 3.1v1.2a1 1 0 0 1'
    '-1 1H3a1 1 0 0 1-1-1v-1.2a1.6 1.6 0 0 0 0-3.1z"/><path d="M9.5 6v.01M9.5 8v.01M9.5 10v.01"/>',
    "clock": '<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.25 1.75"/>',
    "close": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "cluster": '<path d="M8 1.75 13.5 4.9v6.2L8 14.25 2.5 11.1V4.9z"/>'
    '<path d="M8 14V8m0 0L2.8 5.1M8 8l5.2-2.9"/>',
    "console": '<rect x="2" y="3" width="12" height="10" rx="1"/>'
    '<path d="M4.75 6.25 6.75 8l-2 1.75M8.5 10h3"/>',
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1.25"/>'
    '<path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2"/>',
    "cpu": '<rect x="4" y="4" width="8" height="8" rx="1"/><path d="M6.5 6.5h3v3h-3zM6 1.75V4M10 '
    '1.75V4M6 12v2.25M10 12v2.25M1.75 6H4M1.75 10H4M12 6h2.25M12 10h2.25"/>',
    "dash": '<path d="M4 8h8"/>',
    "disk": '<path d="M2 9.5 4 3.5h8l2 6v3a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1zM2 9.5h12"/>'
    '<path d="M11.25 11.5h.01M8.75 11.5h.01"/>',
    "download": '<path d="M8 2v7.75M4.75 6.75 8 10l3.25-3.25M2.5 13.5h11"/>',
    "edit": '<path d="M10.5 2.75l2.75 2.75L5.5 13.25l-3.25.5.5-3.25zM8.75 4.5l2.75 2.75"/>',
    "file": '<path d="M4 1.75h5l3.25 3.25v9.25H4z"/><path d="M9 1.75V5h3.25"/>',
    "filter": '<path d="M2.5 4h11M4.5 8h7M6.5 12h3"/>',
    "gpu": '<rect x="1.75" y="4" width="12.5" height="7" rx="1"/>'
    '<circle cx="5.4" cy="7.5" r="1.6"/><circle cx="10.6" cy="7.5" r="1.6"/>'
    '<path d="M4 11v2M6.5 11v2"/>',
    "image": '<circle cx="8" cy="8" r="6"/><circle cx="8" cy="8" r="1.75"/><path d="M8 4.25A3.75 '
    '3.75 0 0 1 11.75 8"/>',
    "info": '<circle cx="8" cy="8" r="6"/><path d="M8 7.25v3.5M8 5.1v.01"/>',
    "key": '<circle cx="5" cy="11" r="2.75"/>'
    '<path d="M7 9l6.25-6.25M10.75 5.25l2 2M9 7l1.25 1.25"/>',
    "lock": '<rect x="3.25" y="7" width="9.5" height="6.5" rx="1"/>'
    '<path d="M5.5 7V5a2.5 2.5 0 0 1 5 0v2"/>',
    "menu": '<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>',
    "network": '<circle cx="8" cy="3.4" r="1.65"/><circle cx="3.5" cy="12.6" r="1.65"/>'
    '<circle cx="12.5" cy="12.6" r="1.65"/><path d="M8 5.1V8M3.5 10.9V8h9v2.9"/>',
    "overview": '<rect x="2" y="2" width="5" height="6" rx="1"/><rect x="9" y="2" width="5" '
    'height="3.5" rx="1"/><rect x="9" y="8" width="5" height="6" rx="1"/>'
    '<rect x="2" y="10.5" width="5" height="3.5" rx="1"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "power": '<path d="M8 1.75V7.5M4.9 4.1a5.25 5.25 0 1 0 6.2 0"/>',
    "provider": '<path d="M5.5 1.75V5M10.5 1.75V5M3.75 5h8.5v2.5a4.25 4.25 0 0 1-8.5 0z'
    'M8 11.75v2.5"/>',
    "refresh": '<path d="M12.6 5.4A5.25 5.25 0 1 0 13.25 8M13 2.25V5.5H9.75"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="M10.4 10.4 14 14"/>',
    "server": '<rect x="2" y="2.5" width="12" height="4.5" rx="1"/><rect x="2" y="9" width="12" '
    'height="4.5" rx="1"/><path d="M4.6 4.75h.01M4.6 11.25h.01M8.5 4.75h3M8.5 11.25h3"/>',
    "shield": '<path d="M8 1.75 13 3.6v4c0 3.1-2.1 5.4-5 6.65C5.1 13 3 10.7 3 7.6v-4z"/>'
    '<path d="M5.8 7.9l1.6 1.6 2.9-3.1"/>',
    "sign-out": '<path d="M6.5 2.5h-3a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h3M10 5l3 3-3 3M13 8H6"/>',
    "sort": '<path d="M5 6.5 8 3.5l3 3M5 9.5l3 3 3-3"/>',
    "standby": '<circle cx="8" cy="8" r="6"/><path d="M6.5 5.5v5M9.5 5.5v5"/>',
    "template": '<path d="M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3"/>',
    "usage": '<path d="M2.5 13.5v-4M6.2 13.5v-7M9.8 13.5V8M13.5 13.5v-11"/>',
    "user": '<circle cx="8" cy="5.25" r="2.5"/><path d="M3 13.5c.5-2.7 2.5-4 5-4s4.5 1.3 5 4"/>',
    "warn": '<path d="M8 2.25 14.25 13.25H1.75z"/><path d="M8 6.5v3M8 11.35v.01"/>',
}


def svg(name: str, label: str = "") -> str:
    """The drawing as markup; hidden from assistive technology unless it has a label."""
    voice = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    return f'<svg class="icon" viewBox="0 0 16 16" {voice}>{ICONS[name]}</svg>'
