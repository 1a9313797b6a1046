"""What a live page can show of an object, and the class of readers that get the same text."""

from __future__ import annotations

import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation

from gpucloud.models import User

LIST: Final = "list"


@dataclass(frozen=True)
class ViewClass:
    """Readers of one class get the same text: role × memberships × language × zone."""

    role: str
    tenants: frozenset[tuple[int, str]]
    language: str
    zone: str

    @classmethod
    def of(cls, user: User) -> ViewClass:
        # tenants.Membership points here with related_name "memberships"; this module imports no
        # app.
        rows: Any = getattr(user, "memberships")  # noqa: B009
        return cls(
            role=str(user.platform_role),
            tenants=frozenset(rows.values_list("tenant_id", "role")),
            language=user.language,
            zone=user.zone,
        )

    @property
    def sees_all(self) -> bool:
        """Platform roles see evidence, racks and switch ports; tenants see yes and no."""
        return self.role != User.PlatformRole.NONE


@dataclass(frozen=True)
class Fragment:
    """One topic of live pages.

    `kind` is the published kind it follows (gpucloud.history.KINDS). `load(user, uid)` returns the
    object through `policy.visible`, or None. `templates` are rendered in order into one message;
    each has a single root element with an id and data-rev, and holds no form, CSRF token or control
    that differs between readers of one view class. `name` is the topic's first word when it is not
    the kind: rows of a list, say, and the detail page's parts are two fragments of one kind.
    `follows` are other kinds of which every change has it read again, whatever their uid: for an
    overview that shows many objects at once.
    """

    kind: str
    templates: tuple[str, ...]
    load: Callable[[User, uuid.UUID], Any | None]
    context: Callable[[Any, ViewClass], Mapping[str, Any]] = lambda obj, view: {}
    name: str = ""
    follows: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return self.name or self.kind

    def render(self, obj: Any, view: ViewClass) -> str:
        """The message for readers of this class; the object is `object` in the template."""
        with translation.override(view.language), timezone.override(_zone(view.zone)):
            context = {"object": obj, "view": view, **self.context(obj, view)}
            return "\n".join(render_to_string(name, context) for name in self.templates)


@cache
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")


def registry() -> dict[str, Fragment]:
    """Every app's FRAGMENTS by topic word; two of one name are a mistake that must not start."""
    return _gather(tuple(settings.LIVE_FRAGMENTS))


@cache
def _gather(modules: tuple[str, ...]) -> dict[str, Fragment]:
    found: dict[str, Fragment] = {}
    for module in modules:
        for fragment in import_module(module).FRAGMENTS:
            if fragment.topic in found or fragment.topic == LIST:
                raise ValueError(f"{module}: the live topic {fragment.topic} exists already")
            found[fragment.topic] = fragment
    return found


@dataclass(frozen=True)
class Topic:
    """`claim:<uid>` shows one object; `list:claim` tells that rows not shown came or went."""

    name: str
    uid: uuid.UUID | None
    text: str

    @classmethod
    def parse(cls, text: str) -> Topic | None:
        word, _, rest = text.partition(":")
        if word == LIST:
            return cls(rest, None, text) if rest in registry() else None
        if word not in registry():
            return None
        try:
            return cls(word, uuid.UUID(rest), text)
        except ValueError:
            return None

    @property
    def fragment(self) -> Fragment:
        return registry()[self.name]
