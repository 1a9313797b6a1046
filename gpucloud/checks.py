"""`manage.py check`: every driver loads, and every row's settings suit its driver."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.db import DatabaseError

from gpucloud.drivers import DriverError
from gpucloud.vault import VaultError

# Rows that carry a driver: model, and who builds the driver from a row (row -> driver).
ROWS = (
    ("inventory.Bmc", "inventory.services.bmcs.driver_of"),
    ("network.Fabric", "network.services.segments.driver_of"),
    ("provisioning.NodeProvider", "provisioning.services.providers.driver_of"),
    ("tenants.ControlPlane", "tenants.services.access.control_plane_driver"),
)


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@register()
def kinds(**_: Any) -> list[CheckMessage]:
    """Each path in DRIVERS and PLANS can be imported."""
    paths = {
        f"DRIVERS[{concern!r}][{key!r}]": path
        for concern, found in settings.DRIVERS.items()
        for key, path in found.items()
    } | {f"PLANS[{kind!r}]": path for kind, path in settings.PLANS.items()}
    wrong: list[CheckMessage] = []
    for place, path in paths.items():
        try:
            _named(path)
        except (ImportError, AttributeError) as error:
            wrong.append(
                Error(
                    f"{place} names {path}, which cannot be loaded: {error}",
                    hint="Correct the path in settings, or install what it needs.",
                    id="gpucloud.E001",
                )
            )
    return wrong


@register()
def rows(**_: Any) -> list[CheckMessage]:
    """Each row's driver can be built from its settings. No outside system is asked."""
    try:
        return list(_wrong_rows())
    except DatabaseError:
        # No database yet, or one before its migrations: that is somebody else's message.
        return []


def _wrong_rows() -> Iterator[CheckMessage]:
    for label, path in ROWS:
        build = _named(path)
        for row in apps.get_model(label)._default_manager.all():
            try:
                build(row)
            except VaultError as error:
                yield Error(
                    f"{row} ({row.driver}): {error}",
                    hint="Give back the GPUCLOUD_KEY that this database was used with.",
                    obj=row,
                    id="gpucloud.E003",
                )
            except DriverError as error:
                yield Error(
                    f"{row} ({row.driver}): {error.message}",
                    hint=error.hint or "Correct the settings on its page or by REST.",
                    obj=row,
                    id="gpucloud.E002",
                )
