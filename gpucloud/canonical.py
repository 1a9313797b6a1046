"""Canonical JSON (RFC 8785): one text per value, so that anybody can check a hash of it."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> bytes:
    """UTF-8 without spaces, keys sorted by UTF-16 code units, numbers as ECMAScript writes them.

    Whole numbers beyond 2^53 are written digit by digit, where RFC 8785 would round them.
    """
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: str(key).encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_string(str(key))}:{_text(value[key])}" for key in keys) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, str):
        return _string(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("JSON has no such number")
    if value == 0:
        return "0"
    sign, (digits, exponent) = "-" * (value < 0), _shortest(abs(value))
    # ECMA-262 Number::toString: `point` is where the decimal point stands among the digits.
    point, count = exponent, len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"{point - 1:+d}"
    return f"{sign}{digits[0]}{'.' + digits[1:] if count > 1 else ''}e{power}"


def _shortest(value: float) -> tuple[str, int]:
    """The fewest digits that read back as this number, and the place of its decimal point."""
    mantissa, _, power = f"{value!r}".partition("e")
    whole, _, part = mantissa.partition(".")
    point = len(whole) + int(power or 0)
    digits = whole + part
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return stripped.rstrip("0"), point
