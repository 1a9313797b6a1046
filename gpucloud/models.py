"""Shared records: User, ApiToken, Event, Secret; and the engine's Lease, Step and Heartbeat."""

from __future__ import annotations

import hashlib
import secrets as tokens
import uuid
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now

name_validator = RegexValidator(
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    "Use lower-case letters, digits and hyphens; begin and end with a letter or digit; 63 at most.",
)


class Base(models.Model):
    """Every row of ours: a permanent public uid, when it was made, and a revision that grows with
    each change.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    rev = models.PositiveBigIntegerField(default=1)

    class Meta:
        abstract = True


class User(AbstractUser):
    """A person or service account. Platform role here; tenant roles are Membership rows."""

    class PlatformRole(models.TextChoices):
        NONE = "none", "No platform role"
        ADMIN = "admin", "Platform admin"
        OPERATOR = "operator", "Operator"
        SUPPORT = "support", "Support"
        AUDITOR = "auditor", "Auditor"

    class Theme(models.TextChoices):
        AUTO = "auto", "Like the system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    platform_role = models.CharField(max_length=16, choices=PlatformRole, default=PlatformRole.NONE)
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.AUTO)
    language = models.CharField(max_length=8, default="en")
    zone = models.CharField(max_length=64, default="UTC")
    # The tenant that this request's token is bound to; not a column.
    only_tenant: int | None = None

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("username"), name="user_username_ci"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.username = self.username.lower()
        super().save(*args, **kwargs)

    @property
    def sees_all(self) -> bool:
        """Whether this person may read the objects of every tenant."""
        return self.is_active and self.platform_role != self.PlatformRole.NONE

    @property
    def runs_platform(self) -> bool:
        """Whether this person may change platform objects: servers, providers, fabrics, power."""
        return self.is_active and self.platform_role in (
            self.PlatformRole.ADMIN,
            self.PlatformRole.OPERATOR,
        )


class ApiToken(Base):
    """A bearer token, shown once;

    only its SHA-256 is kept. Bound to its owner's rights, narrowed by scopes.
    """

    PREFIX = "gpc_"
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    tenant = models.ForeignKey(
        "tenants.Tenant", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list, help_text="read, write; empty means both")
    expires = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def make(cls, owner: User, name: str, secret: str = "", **fields: Any) -> tuple[ApiToken, str]:
        """Store a new token and return it with the clear text, which nobody can read again."""
        clear = secret or cls.PREFIX + tokens.token_urlsafe(32)
        return cls.objects.create(
            owner=owner, name=name, digest=cls.digest_of(clear), **fields
        ), clear

    @staticmethod
    def digest_of(clear: str) -> str:
        return hashlib.sha256(clear.encode()).hexdigest()


class IdempotentRequest(models.Model):
    """The answer to a create that carried an Idempotency-Key, given again to the same request.

    `status` is null while the request runs. Kept for a day.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    route = models.CharField(max_length=300)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(default=dict)
    started = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key")]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"


class Event(models.Model):
    """One append-only history row, inserted in the transaction of the change;

    sealed later with position and hash.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=150)
    kind = models.CharField(max_length=32)
    object_uid = models.UUIDField()
    object_name = models.CharField(max_length=200)
    tenant = models.ForeignKey(
        "tenants.Tenant", null=True, on_delete=models.PROTECT, related_name="+"
    )
    verb = models.CharField(max_length=48)
    message = models.TextField()
    code = models.CharField(max_length=48, blank=True)
    data = models.JSONField(default=dict)
    position = models.PositiveBigIntegerField(null=True, unique=True)
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["object_uid", "id"], name="event_object"),
            models.Index(fields=["tenant", "position"], name="event_tenant"),
            models.Index(fields=["id"], condition=Q(position__isnull=True), name="event_unsealed"),
        ]

    def __str__(self) -> str:
        return f"{self.object_name}: {self.message}"


class Secret(models.Model):
    """One encrypted value: AES-256-GCM, bound to owner kind, owner uid and field so that rows
    cannot be swapped.
    """

    kind = models.CharField(max_length=32)
    owner_uid = models.UUIDField()
    field = models.CharField(max_length=64)
    key_id = models.CharField(max_length=16)
    nonce = models.BinaryField(max_length=12)
    sealed = models.BinaryField()
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "owner_uid", "field"], name="secret_place")
        ]

    def __str__(self) -> str:
        return f"{self.kind}/{self.owner_uid}/{self.field}"


class Lease(models.Model):
    """Who may act on a resource (`server:<uid>`, `fabric:<name>`, `cluster:<uid>`) until when, by
    the database's clock.
    """

    resource = models.CharField(max_length=100, unique=True)
    holder = models.CharField(max_length=100, blank=True)
    expires = models.DateTimeField()
    generation = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.resource} held by {self.holder or 'nobody'}"


class Step(Base):
    """One unit of progress of an Operation, TenantCluster or Segment (kind + owner uid, one run of
    its plan).
    """

    class State(models.TextChoices):
        TODO = "todo", "Planned"
        RUNNING = "running", "Running"
        WAITING = "waiting", "Waiting"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        SKIPPED = "skipped", "Skipped"

    LIVE = (State.TODO, State.RUNNING, State.WAITING)

    kind = models.CharField(max_length=16)
    owner_uid = models.UUIDField()
    run = models.PositiveIntegerField(default=1)
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=32)
    state = models.CharField(max_length=8, choices=State, default=State.TODO)
    current = models.BooleanField(default=False)
    sentence = models.TextField(blank=True)
    code = models.CharField(max_length=48, blank=True)
    hint = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    percent = models.PositiveSmallIntegerField(null=True)
    ref = models.TextField(blank=True)
    evidence = models.JSONField(default=dict)
    lines = models.JSONField(default=list)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    since = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    alarmed = models.BooleanField(default=False)
    nudged = models.DateTimeField(null=True)

    class Meta:
        ordering = ["run", "index"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "owner_uid", "run", "index"], name="step_place"
            ),
            models.UniqueConstraint(
                fields=["kind", "owner_uid"], condition=Q(current=True), name="step_one_current"
            ),
        ]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(current=True), name="step_due"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    @property
    def took(self) -> timedelta | None:
        return self.ended - self.started if self.started and self.ended else None


class Heartbeat(models.Model):
    """When each process last said that it lives, by the database's clock;

    pages alarm by this table.
    """

    name = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField(db_default=Now())
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.name
