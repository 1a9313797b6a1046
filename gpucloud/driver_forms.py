"""Form fields of a driver's settings, made from its Config; secrets are written, never shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from typing import Any, Final, get_type_hints

from django import forms
from django.conf import settings

from gpucloud.drivers import driver_class

PREFIX: Final = "config_"


class JsonField(forms.JSONField):
    """An object or a list as JSON; a blank one is left to the driver's default."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "id", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else json.dumps(value, indent=1) if value else ""


def kinds(concern: str) -> list[tuple[str, str]]:
    """The drivers of a concern: key and label."""
    return [
        (key, str(getattr(driver_class(concern, key), "label", key)))
        for key in settings.DRIVERS[concern]
    ]


def fields(
    concern: str,
    key: str,
    stored: Mapping[str, Any] | None = None,
    kept: Collection[str] = (),
    offered: Collection[str] = (),
) -> dict[str, forms.Field]:
    """A form field per setting, named `config_<name>`.

    `stored` are settings as they are, `kept` names of secrets that are stored, `offered` names that
    something else may give (a connection), so that blank is allowed.
    """
    config = driver_class(concern, key).Config
    hints = get_type_hints(config)
    found: dict[str, forms.Field] = {}
    for one in dataclasses.fields(config):
        needed = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        value = (stored or {}).get(one.name, None if needed else _default(one))
        required = needed and one.name not in kept and one.name not in offered
        found[PREFIX + one.name] = _field(one, hints[one.name], value, required, one.name in kept)
    return found


def _default(one: dataclasses.Field[Any]) -> Any:
    if one.default is not dataclasses.MISSING:
        return one.default
    assert one.default_factory is not dataclasses.MISSING
    return one.default_factory()


def _field(
    one: dataclasses.Field[Any], hint: Any, value: Any, required: bool, kept: bool
) -> forms.Field:
    label = one.metadata.get("label") or one.name
    common: dict[str, Any] = {"label": label, "help_text": one.metadata.get("help", "")}
    if one.metadata.get("secret"):
        note = "Stored encrypted. Blank leaves it as it is." if kept else "Stored encrypted."
        common["help_text"] = f"{common['help_text']} {note}".strip()
        attrs = {"rows": 4, "autocomplete": "off", "spellcheck": "false", "class": "id"}
        # One line hides a password; what has several lines, as a kubeconfig, needs a box.
        short = "password" in one.name or "token" in one.name
        hidden = forms.PasswordInput(attrs={"autocomplete": "new-password"})
        widget = hidden if short else forms.Textarea(attrs=attrs)
        return forms.CharField(required=required, strip=False, widget=widget, **common)
    common |= {"initial": value, "required": required}
    if choices := one.metadata.get("choices"):
        return forms.ChoiceField(choices=[(c, c) for c in choices], **common)
    if hint is bool:
        return forms.BooleanField(**{**common, "required": False})
    if hint is int:
        return forms.IntegerField(**common)
    if hint is float:
        return forms.FloatField(**common)
    if hint is str:
        return forms.CharField(**common)
    return JsonField(**common)


def given(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they were given; blank ones are left to default, or to what is stored."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in cleaned.items()
        if name.startswith(PREFIX) and value not in (None, "")
    }
