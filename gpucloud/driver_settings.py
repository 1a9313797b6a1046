"""A driver's settings as people give them: checked before they are stored, secrets apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from gpucloud.drivers import ConfigError, driver_class
from gpucloud.problems import Invalid


def require_kind(concern: str, key: str, field: str = "driver") -> None:
    """Invalid unless settings.DRIVERS has this driver."""
    kinds = settings.DRIVERS[concern]
    if key not in kinds:
        raise Invalid({field: [f"There is no such driver. Known are: {', '.join(kinds)}."]})


def clean(
    concern: str,
    key: str,
    values: Mapping[str, Any],
    offered: Mapping[str, Any],
    *,
    field: str = "driver",
    at: str = "config",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (settings to store, secrets for the vault), or raise Invalid at `<at>.<name>`.

    `offered` is what the row itself will add when the driver is built: address, kubeconfig …
    """
    require_kind(concern, key, field)
    kind = driver_class(concern, key)
    names = set(kind.Config.__dataclass_fields__)
    added = {name: value for name, value in offered.items() if name in names and value}
    try:
        kind.Config.from_dict({**added, **values})
    except ConfigError as error:
        raise Invalid({f"{at}.{name}": [text] for name, text in error.errors.items()}) from error
    return split(concern, key, values, at=at)


def split(
    concern: str, key: str, values: Mapping[str, Any], *, at: str = "config"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(settings to store, secrets for the vault); Invalid on names that the driver lacks."""
    kind = driver_class(concern, key)
    known = kind.Config.__dataclass_fields__
    if unknown := set(values) - set(known):
        text = f"Unknown setting. Known are: {', '.join(known) or 'none'}."
        raise Invalid({f"{at}.{name}": [text] for name in sorted(unknown)})
    secret = set(kind.Config.secret_names())
    return (
        {name: value for name, value in values.items() if name not in secret},
        {name: value for name, value in values.items() if name in secret and value},
    )


def shown(concern: str, key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings as they may be shown: never a secret, even if one was stored by mistake."""
    if key not in settings.DRIVERS[concern]:
        return {}
    secret = set(driver_class(concern, key).Config.secret_names())
    return {name: value for name, value in values.items() if name not in secret}
