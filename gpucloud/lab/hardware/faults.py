"""The faults that can be switched on per server, and what counts as a proper value of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpucloud.lab.hardware.rack import Facts


def _flag(value: Any, facts: Facts) -> bool:
    return isinstance(value, bool)


def _share(value: Any, facts: Facts) -> bool:
    return _number(value) and 0 <= value <= 1


def _seconds(value: Any, facts: Facts) -> bool:
    return _number(value) and 0 <= value <= 3600


def _percent(value: Any, facts: Facts) -> bool:
    return _number(value) and 0 <= value <= 100


def _vlan(value: Any, facts: Facts) -> bool:
    return _number(value) and isinstance(value, int) and 1 <= value <= 4094


def _drive(value: Any, facts: Facts) -> bool:
    return any(value == drive.name for drive in facts.drives)


def _drive_or_flag(value: Any, facts: Facts) -> bool:
    return _flag(value, facts) or _drive(value, facts)


def _gpus(value: Any, facts: Facts) -> bool:
    return _number(value) and isinstance(value, int) and 0 <= value <= len(facts.gpus)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


KINDS: dict[str, Callable[[Any, Facts], bool]] = {
    "delay": _seconds,
    "drop": _share,
    "error": _share,
    "refuse_login": _flag,
    "ignore_power": _flag,
    "ignore_boot": _flag,
    "ignore_media": _flag,
    "die_in_install": _percent,
    "corrupt_image": _flag,
    "lose_network_data": _flag,
    "refuse_join": _flag,
    "wipe_fails": _drive_or_flag,
    "wipe_does_nothing": _flag,
    "hide_drive": _drive,
    "wrong_vlan": _vlan,
    "switch_refuses": _flag,
    "switch_ignores": _flag,
    "hidden_gpu": _gpus,
    "no_reply": _flag,
}


def problem(values: Mapping[str, Any], facts: Facts) -> str | None:
    """A sentence about the first fault that does not exist or has a wrong value."""
    for key, value in values.items():
        if key not in KINDS:
            return f"there is no fault {key!r}; there are {', '.join(KINDS)}"
        if not KINDS[key](value, facts):
            return f"{value!r} is no value of the fault {key!r} on {facts.name}"
    return None
