"""Who may see and do what: one table for pages, REST and sockets.

Rows are fetched with `visible`, so foreign and absent are alike; what a person sees but may not do
is refused by `require` with the roles that may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db import models

from gpucloud.history import KINDS
from gpucloud.models import User
from gpucloud.problems import Denied

Rows = TypeVar("Rows", bound="models.QuerySet[Any]")
Person = User | AnonymousUser


@dataclass(frozen=True)
class Rule:
    """Roles that may: of the platform, and of the tenant that the object belongs to."""

    platform: frozenset[str]
    tenant: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        mine = [f"platform {role}" for role in sorted(self.platform)]
        theirs = [f"{role} of the tenant" for role in sorted(self.tenant, reverse=True)]
        return " or ".join([*mine, *theirs])


RUNNERS = Rule(frozenset({"admin", "operator"}))
ADMINS = Rule(frozenset({"admin"}))
MEMBERS = Rule(frozenset({"admin", "operator"}), frozenset({"owner", "operator"}))
# Trying a step again loses nothing: support may, for everybody.
HELPERS = Rule(MEMBERS.platform | {"support"}, MEMBERS.tenant)

RULES: dict[str, dict[str, Rule]] = {
    "server": {
        **dict.fromkeys(("create", "change", "inspect", "power", "maintenance"), RUNNERS),
        **dict.fromkeys(("quarantine", "test connection", "retire"), RUNNERS),
        # Vouching for drives without a wipe opens the clean gate, so it is nobody's daily work.
        "declare blank": ADMINS,
    },
    "provider": dict.fromkeys(("create", "change", "check"), RUNNERS),
    "node_type": dict.fromkeys(("create", "change", "match"), RUNNERS),
    "image": dict.fromkeys(("create", "change", "delete"), RUNNERS),
    "fabric": {"check": RUNNERS},
    "segment": dict.fromkeys(("create", "observe"), RUNNERS),
    "link": dict.fromkeys(("create", "delete"), RUNNERS),
    "tenant": {
        **dict.fromkeys(("create", "change"), RUNNERS),
        **dict.fromkeys(("create cluster", "create claim"), MEMBERS),
    },
    "cluster": {
        **dict.fromkeys(("change", "delete"), MEMBERS),
        "retry": HELPERS,
        # It makes its holder admin inside the tenant's cluster.
        "kubeconfig": Rule(frozenset({"admin"}), frozenset({"owner", "operator"})),
    },
    "claim": {"release": MEMBERS, "retry": HELPERS},
}

# Kinds that everybody with an account may read: what can be ordered, and how.
OPEN = frozenset({"node_type", "image", "template"})
# Where the tenant of the other kinds stands; a kind named in neither is the platform's alone.
TENANT_PATHS = {
    "tenant": "pk",
    "cluster": "tenant",
    "claim": "tenant",
    "segment": "tenant",
    "pool": "cluster__tenant",
    "operation": "claim__tenant",
    "attachment": "segment__tenant",
    "event": "tenant",
}


def kind_of(obj: Any) -> str:
    """The kind of a row or of a model class, as history names it."""
    name = (obj if isinstance(obj, type) else type(obj)).__name__
    return KINDS.get(name, name.lower())


def only_tenant(user: Person) -> int | None:
    """The tenant to which the token of this request is bound, whatever its owner may else."""
    bound: int | None = getattr(user, "only_tenant", None)
    return bound


def sees_platform(user: Person) -> bool:
    """Whether this person may see what lies under tenants' objects: servers, ports, engines."""
    return isinstance(user, User) and user.sees_all and only_tenant(user) is None


def visible(user: Person, rows: Rows) -> Rows:
    """The rows that this person may read."""
    if not isinstance(user, User) or not user.is_active:
        return rows.none()
    kind = kind_of(rows.model)
    if kind in OPEN:
        return rows
    path = TENANT_PATHS.get(kind)
    if path is None:
        return rows if sees_platform(user) else rows.none()
    bound = only_tenant(user)
    if bound is not None:
        rows = rows.filter(**{path: bound})
    if user.sees_all:
        return rows
    return rows.filter(**{f"{path}__in": user.memberships.values("tenant")})


def tenant_of(obj: Any) -> int | None:
    """The primary key of the tenant that a row belongs to, if any."""
    if isinstance(obj, type):
        return None
    if kind_of(obj) == "tenant":
        return int(obj.pk)
    if kind_of(obj) == "pool":
        return int(obj.cluster.tenant_id)
    found: int | None = getattr(obj, "tenant_id", None)
    return found


def may(user: Person, verb: str, obj: Any) -> bool:
    """Whether the person may do this to a row, or (for "create") to a model class.

    A page that asks for many rows prefetches the user's memberships first.
    """
    if not isinstance(user, User) or not user.is_active:
        return False
    if verb == "read":
        return bool(visible(user, type(obj)._default_manager.filter(pk=obj.pk)).exists())
    rule = RULES[kind_of(obj)][verb]
    tenant = tenant_of(obj)
    bound = only_tenant(user)
    if bound is not None and tenant != bound:
        return False
    if user.platform_role in rule.platform:
        return True
    return tenant is not None and any(
        one.tenant_id == tenant and one.role in rule.tenant for one in user.memberships.all()
    )


def require(user: Person, verb: str, obj: Any) -> None:
    """Raise Denied with the roles that may, unless this person may."""
    if not may(user, verb, obj):
        rule = RULES[kind_of(obj)][verb]
        noun = kind_of(obj).replace("_", " ")
        what = verb if " " in verb else f"{verb} a {noun}"
        raise Denied(f"Your role does not allow to {what}. It takes: {rule.words}.")
