"""Tenants: make one, change its quota and its name for people."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F

from gpucloud import history, names
from gpucloud.problems import Invalid, NotAllowed
from tenants.models import Tenant

QUOTA = ("servers", "gpus")


def create(actor: str, name: str, **fields: Any) -> Tenant:
    """Make a tenant of {display_name, project_namespace, quota}."""
    errors = _problems(fields)
    for field, value in (("name", name), ("project_namespace", fields.get("project_namespace"))):
        try:
            if value or field == "name":
                names.check(str(value))
        except ValidationError as error:
            errors[field] = list(error.messages)
    if Tenant.objects.filter(name=name).exists():
        raise Invalid({"name": [f"There is a tenant called {name} already."]})
    namespace = fields.get("project_namespace") or f"p-{name}"
    if taken := next((t for t in Tenant.objects.all() if t.namespace == namespace), None):
        errors.setdefault("project_namespace", [f"{namespace} is tenant {taken}'s."])
    if errors:
        raise Invalid(errors)
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(name=name, **fields)
            history.record(tenant, "create", actor, f"Tenant {tenant} was made.", tenant=tenant)
    except IntegrityError as error:
        raise Invalid({"name": [f"There is a tenant called {name} already."]}) from error
    return tenant


def update(tenant: Tenant, actor: str, **fields: Any) -> Tenant:
    """Change display name and quota; a quota below what is held stops only what comes."""
    if tenant.builtin:
        raise NotAllowed(f"{tenant} is built in and stays as it is.")
    if errors := _problems(fields):
        raise Invalid(errors)
    with transaction.atomic():
        Tenant.objects.filter(pk=tenant.pk).update(**fields, rev=F("rev") + 1)
        tenant.refresh_from_db()
        changed = ", ".join(sorted(fields))
        history.record(
            tenant, "change", actor, f"Tenant {tenant}: {changed} changed.", tenant=tenant
        )
    return tenant


def _problems(fields: dict[str, Any]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    for key, value in fields.get("quota", {}).items():
        if key not in QUOTA:
            errors[f"quota.{key}"] = [f"Unknown key. Known are: {', '.join(QUOTA)}."]
        elif type(value) is not int or not 0 <= value < 2**31:
            errors[f"quota.{key}"] = ["Give a whole number, or leave the key out for no limit."]
    return errors
