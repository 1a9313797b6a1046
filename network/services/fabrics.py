"""Fabrics: the test of their connection."""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Now

from gpucloud.drivers import DriverError
from network.models import Fabric
from network.services.segments import driver_of


def check(fabric: Fabric) -> list[str]:
    """Test the fabric's connection now and keep what was found."""
    try:
        problems = driver_of(fabric).check()
    except DriverError as error:
        problems = [error.message]
    Fabric.objects.filter(pk=fabric.pk).update(
        checked=Now(), problem=" ".join(problems), rev=F("rev") + 1
    )
    return problems
