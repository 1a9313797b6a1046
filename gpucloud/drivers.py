"""What every driver kind shares:

Progress, DriverError, Config dataclasses, loading by key, and the call budget.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Self, get_type_hints

from gpucloud.text import plain


@dataclass(frozen=True)
class Progress:
    """What a driver saw when it last looked.

    `detail` is a sentence for the timeline, `ref` the engine's own id of the thing made, `wait`
    the seconds until the
    next look, `percent` 0-100 where the engine tells one, `evidence` JSON-safe facts kept with
    the step.
    """

    done: bool
    detail: str
    ref: str = ""
    wait: float = 2.0
    percent: int | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What an engine says may hold anything; a step must be able to keep it.
        for name in ("detail", "ref", "evidence"):
            object.__setattr__(self, name, plain(getattr(self, name)))


class DriverError(Exception):
    """The one error a driver raises; anything else is a bug and is shown as one.

    `message` is for operators: host and verb in it, never a credential. `code` is a key of
    gpucloud.reasons.
    `permanent` decides on retry. `hint` is the next safe action in words.
    """

    def __init__(
        self,
        message: str,
        code: str,
        permanent: bool = False,
        hint: str = "",
        wait: float | None = None,
    ) -> None:
        self.message, self.hint = plain(message), plain(hint)
        super().__init__(self.message)
        self.code = code
        self.permanent = permanent
        self.wait = wait

    def __str__(self) -> str:
        return self.message


class ConfigError(ValueError):
    """A driver's settings are wrong: `errors` maps the field's name to a sentence."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in errors.items()))
        self.errors = dict(errors)


def setting(
    default: Any = dataclasses.MISSING,
    *,
    label: str,
    help: str = "",
    secret: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of a driver's Config:

    forms, validation and masking come from it. No default means required.
    """
    meta = {"label": label, "help": help, "secret": secret, "choices": choices}
    if isinstance(default, (dict, list)):
        made = default
        return field(default_factory=lambda: type(made)(made), metadata=meta)
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Config:
    """Parent of every driver's Config:

    a frozen dataclass of `setting`s, made only by `from_dict`.
    """

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the Config; raise ConfigError on unknown names, missing ones and values of the
        wrong type.
        """
        known = {f.name: f for f in dataclasses.fields(cls)}
        hints = get_type_hints(cls)
        errors = {
            name: f"Unknown setting. Known are {', '.join(known) or 'none'}."
            for name in values
            if name not in known
        }
        kept: dict[str, Any] = {}
        for name, one in known.items():
            required = (
                one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
            )
            if name not in values or (values[name] in ("", None) and not required):
                if required:
                    errors[name] = "This setting is required."
                continue
            value, problem = _coerce(values[name], hints[name])
            if not problem and required and value == "":
                problem = "This setting is required."
            choices = one.metadata.get("choices") or ()
            if not problem and choices and value not in choices:
                problem = f"Choose one of {', '.join(choices)}."
            if problem:
                errors[name] = problem
            else:
                kept[name] = value
        if errors:
            raise ConfigError(errors)
        return cls(**kept)

    @classmethod
    def secret_names(cls) -> tuple[str, ...]:
        """Names of the fields that are write-only and stored encrypted."""
        return tuple(f.name for f in dataclasses.fields(cls) if f.metadata.get("secret"))


def _coerce(value: Any, hint: Any) -> tuple[Any, str]:
    """Turn a form's or a JSON document's value into the field's type, or say in words why not."""
    if hint is bool:
        if isinstance(value, bool):
            return value, ""
        if str(value).lower() in ("true", "on", "1", "yes"):
            return True, ""
        if str(value).lower() in ("false", "off", "0", "no"):
            return False, ""
        return None, "Say true or false."
    if hint in (int, float):
        try:
            return hint(value), ""
        except (TypeError, ValueError):
            return None, "Give a number."
    if hint is str:
        return (value, "") if isinstance(value, str) else (None, "Give text.")
    if not isinstance(value, (dict, list, tuple)):
        return None, "Give a list or an object."
    return value, ""


@cache
def driver_class(concern: str, key: str) -> type[Any]:
    """Return the class that settings.DRIVERS names for a concern (provider, bmc, fabric,
    control_plane) and key.
    """
    from django.conf import settings

    kinds = settings.DRIVERS[concern]
    if key not in kinds:
        raise DriverError(
            f"There is no {concern} driver called {key!r}. Known are {', '.join(kinds)}.",
            code="DRIVER_UNKNOWN",
            permanent=True,
        )
    module, _, name = kinds[key].rpartition(".")
    found: type[Any] = getattr(import_module(module), name)
    return found


def load(concern: str, key: str, values: Mapping[str, Any], secrets: Mapping[str, Any]) -> Any:
    """Build the driver instance for a row:

    its class made with Config.from_dict(values plus secrets).
    """
    kind = driver_class(concern, key)
    try:
        return kind(kind.Config.from_dict({**values, **secrets}))
    except ConfigError as error:
        raise DriverError(
            f"The settings of the {key} driver are not usable: {error}",
            code="DRIVER_CONFIG",
            permanent=True,
            hint="Correct the settings, then retry.",
        ) from error


_budget = threading.local()


@contextmanager
def call_budget(seconds: float) -> Iterator[None]:
    """Give the driver calls of this thread a monotonic deadline;

    transports ask `budget_left` before each write.
    """
    before = getattr(_budget, "until", None)
    _budget.until = time.monotonic() + seconds
    try:
        yield
    finally:
        _budget.until = before


def budget_left() -> float:
    """Seconds left of the running call's budget; infinity outside of one."""
    until = getattr(_budget, "until", None)
    return float("inf") if until is None else until - time.monotonic()


def check_budget(verb: str) -> None:
    """Refuse a write whose lease may have run out meanwhile;

    every transport calls this before each write.
    """
    if budget_left() <= 0:
        raise DriverError(
            f"{verb} was not sent: this attempt used up its time, and somebody else "
            "may own the object by now.",
            code="BUDGET_SPENT",
            hint="Nothing to do: the next attempt reads first and goes on.",
        )
