"""A fragment for these tests: a tenant's display name, and how often it was rendered."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from gpucloud.live import Fragment, ViewClass
from gpucloud.models import User
from gpucloud.policy import visible
from tenants.models import Tenant

rendered: list[str] = []


def load(user: User, uid: uuid.UUID) -> Tenant | None:
    return visible(user, Tenant.objects.all()).filter(uid=uid).first()


def context(tenant: Tenant, view: ViewClass) -> Mapping[str, Any]:
    rendered.append(tenant.display_name)
    return {}


FRAGMENTS = [Fragment("tenant", ("live_tenant.html",), load, context, name="test-tenant")]
