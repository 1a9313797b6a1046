"""Label and field selectors, parsed from the strings that clients send."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gpucloud.kubeapi.errors import Obj, bad_request

Match = Callable[[Obj], bool]

_SET = re.compile(r"^\s*([^\s!=<>(),]+)\s+(in|notin)\s+\(([^()]*)\)\s*$")
_COMPARE = re.compile(r"^\s*([^\s!=<>(),]+)\s*(==|=|!=|>|<)\s*([^\s!=<>(),]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s!=<>(),]+)\s*$")
_KEY = re.compile(r"^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")


def labels(selector: str) -> Match:
    """True for objects whose labels meet every requirement of the selector."""
    tests = [_label_test(part) for part in _split(selector)]
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def _split(selector: str) -> list[str]:
    """The requirements between commas, leaving the commas within brackets alone."""
    parts = re.split(r",(?![^()]*\))", selector)
    return [part for part in parts if part.strip()]


def _label_test(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        _check_key(key)
        if operator == "in":
            return lambda held: key in held and held[key] in values
        return lambda held: key not in held or held[key] not in values
    if found := _COMPARE.match(part):
        key, operator, value = found.groups()
        _check_key(key)
        return _comparison(key, operator, value)
    if found := _EXISTS.match(part):
        absent, key = found.groups()
        _check_key(key)
        return lambda held: (key in held) != bool(absent)
    raise bad_request(f"unable to parse requirement: {part.strip()!r}")


def _comparison(key: str, operator: str, value: str) -> Callable[[Mapping[str, str]], bool]:
    if operator in ("=", "=="):
        return lambda held: held.get(key) == value
    if operator == "!=":
        return lambda held: held.get(key) != value
    if not re.fullmatch(r"-?\d+", value):
        raise bad_request(f"for 'Gt', 'Lt' operators, the value must be an integer: {value!r}")
    bound = int(value)

    def test(held: Mapping[str, str]) -> bool:
        if not re.fullmatch(r"-?\d+", held.get(key, "")):
            return False
        number = int(held[key])
        return number > bound if operator == ">" else number < bound

    return test


def _check_key(key: str) -> None:
    if not _KEY.match(key):
        raise bad_request(f"unable to parse requirement: invalid label key {key!r}")


def fields(selector: str, selectable: frozenset[str]) -> Match:
    """True for objects whose fields equal (or differ from) what the selector says."""
    tests = [_field_test(part, selectable) for part in selector.split(",") if part.strip()]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(part: str, selectable: frozenset[str]) -> Match:
    found = re.match(r"^\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
    if not found:
        raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
    path, operator, value = found.groups()
    if path not in selectable:
        raise bad_request(f"field label not supported: {path}")
    keys = path.split(".")
    return lambda obj: (_text(_dig(obj, keys)) == value) == (operator != "!=")


def _dig(obj: Any, keys: list[str]) -> Any:
    for key in keys:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
