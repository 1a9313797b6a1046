"""Durations and ages in words, to two units: "5 min 26 s", "2 d 4 h", "3 min ago"."""

from __future__ import annotations

from datetime import timedelta

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def words(value: timedelta | float | int | None, units: int = 2) -> str:
    """The two largest units; parts of a second only below ten seconds, where they still say
    something.
    """
    if value is None:
        return ""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 0:
        return "-" + words(-seconds, units)
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    return _whole(round(seconds), units)


def _whole(left: int, units: int) -> str:
    parts: list[str] = []
    for size, name in UNITS:
        if (count := left // size) or parts:
            parts.append(f"{count} {name}")
            left -= count * size
        if len(parts) == units:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def ago(seconds: float) -> str:
    """An age in one unit; the browser keeps counting from there by the same rule."""
    if -1.5 < seconds < 1.5:
        return "just now"
    word = _whole(round(abs(seconds)), 1)
    return f"{word} ago" if seconds > 0 else f"in {word}"
