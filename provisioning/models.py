"""How a wish becomes a machine:

providers, node types, images, claims, operations, and their one-time keys.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q

from gpucloud.models import Base, name_validator
from inventory.models import Server


class NodeProvider(Base):
    """Where nodes come from: one driver, one configuration."""

    name = models.CharField(max_length=40, unique=True, validators=[name_validator])
    display_name = models.CharField(max_length=100, blank=True)
    driver = models.CharField(max_length=16)
    config = models.JSONField(default=dict, blank=True)
    connection = models.ForeignKey(
        "inventory.KubernetesConnection",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
    )
    properties = models.JSONField(default=dict, blank=True)
    checked = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/providers/{self.name}/"


class OSImage(Base):
    """What is written to disk: URL, checksum, format."""

    class Format(models.TextChoices):
        RAW = "raw", "raw"
        QCOW2 = "qcow2", "qcow2"

    class ChecksumType(models.TextChoices):
        SHA256 = "sha256", "SHA-256"
        SHA512 = "sha512", "SHA-512"

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    display_name = models.CharField(max_length=100, blank=True)
    url = models.URLField(max_length=500)
    checksum = models.CharField(max_length=128)
    checksum_type = models.CharField(
        max_length=6, choices=ChecksumType, default=ChecksumType.SHA256
    )
    format = models.CharField(max_length=8, choices=Format, default=Format.QCOW2)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/images/{self.name}/"


class NodeType(Base):
    """An orderable shape of one provider; `name` is the short one, the full one is
    `<provider>.<type>`.

    `selector` is a map of labels a server must carry. `sku` is {"gpu_model": …, "gpu_count":
    n}. `nic_plan` lists the NIC roles a claim moves onto the tenant's segment. `post_seconds`
    is the longest POST of this hardware.
    """

    provider = models.ForeignKey(NodeProvider, on_delete=models.PROTECT, related_name="node_types")
    name = models.CharField(max_length=40, validators=[name_validator])
    full_name = models.CharField(max_length=81, unique=True, editable=False)
    display_name = models.CharField(max_length=100, blank=True)
    selector = models.JSONField(default=dict, blank=True)
    resources = models.JSONField(default=dict, blank=True)
    properties = models.JSONField(default=dict, blank=True)
    cost = models.PositiveIntegerField(default=0)
    sku = models.JSONField(default=dict, blank=True)
    nic_plan = models.JSONField(default=list, blank=True)
    post_seconds = models.PositiveIntegerField(default=600)
    wipe_policy = models.CharField(max_length=8, default="verified")
    image = models.ForeignKey(
        OSImage, null=True, blank=True, on_delete=models.PROTECT, related_name="node_types"
    )

    class Meta:
        ordering = ["full_name"]
        constraints = [models.UniqueConstraint(fields=["provider", "name"], name="node_type_name")]

    def __str__(self) -> str:
        return self.full_name

    def get_absolute_url(self) -> str:
        return f"/node-types/{self.full_name}/"

    def save(self, *args: object, **kwargs: object) -> None:
        self.full_name = f"{self.provider.name}.{self.name}"
        super().save(*args, **kwargs)  # type: ignore[arg-type]


class NodeClaimQuerySet(models.QuerySet["NodeClaim"]):
    def live(self) -> Self:
        """Claims that hold, or may come to hold, a server:

        all but `gone` (a failed one still holds).
        """
        return self.exclude(state=NodeClaim.State.GONE)


class NodeClaim(Base):
    """One request for one node; bound to at most one server; live until gone."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        PROVISIONING = "provisioning", "Provisioning"
        READY = "ready", "Ready"
        FAILED = "failed", "Failed"
        RELEASING = "releasing", "Releasing"
        GONE = "gone", "Gone"

    class Purpose(models.TextChoices):
        POOL = "pool", "Pool"
        DIRECT = "direct", "Direct"
        STANDBY = "standby", "Standby"

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, related_name="claims")
    name = models.CharField(max_length=63, validators=[name_validator])
    purpose = models.CharField(max_length=8, choices=Purpose, default=Purpose.DIRECT)
    state = models.CharField(max_length=12, choices=State, default=State.PENDING)
    state_since = models.DateTimeField(auto_now_add=True)
    code = models.CharField(max_length=48, blank=True)
    problem = models.TextField(blank=True)
    cluster = models.ForeignKey(
        "tenants.TenantCluster",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="claims",
    )
    pool = models.ForeignKey(
        "tenants.NodePool", null=True, blank=True, on_delete=models.SET_NULL, related_name="claims"
    )
    pool_name = models.CharField(max_length=40, blank=True)
    node_type = models.ForeignKey(NodeType, on_delete=models.PROTECT, related_name="claims")
    image = models.ForeignKey(
        OSImage, null=True, blank=True, on_delete=models.PROTECT, related_name="claims"
    )
    server = models.ForeignKey(
        Server, null=True, blank=True, on_delete=models.PROTECT, related_name="claims"
    )
    tenancy = models.PositiveIntegerField(null=True, blank=True)
    selection = models.JSONField(default=dict, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    taints = models.JSONField(default=list, blank=True)
    node_name = models.CharField(max_length=63, blank=True)
    tenant_address = models.GenericIPAddressField(null=True, blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    asked_by = models.CharField(max_length=150, blank=True)
    release_wanted = models.BooleanField(default=False)
    ready_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    objects = NodeClaimQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=~Q(state="gone"), name="claim_live_name"
            ),
            models.UniqueConstraint(
                fields=["server"],
                condition=~Q(state="gone") & Q(server__isnull=False),
                name="claim_one_per_server",
            ),
        ]
        indexes = [models.Index(fields=["state", "node_type"], name="claim_state")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/claims/{self.tenant.name}/{self.name}/"


class Operation(Base):
    """A running plan on one server, optionally for a claim;

    its steps are Step rows of kind `operation`.
    """

    class Kind(models.TextChoices):
        CLAIM = "claim", "Provisioning"
        RELEASE = "release", "Release"
        INSPECT = "inspect", "Inspection"
        WIPE = "wipe", "Wipe"

    class State(models.TextChoices):
        ACTIVE = "active", "Active"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    kind = models.CharField(max_length=8, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.ACTIVE)
    claim = models.ForeignKey(
        NodeClaim, null=True, blank=True, on_delete=models.CASCADE, related_name="operations"
    )
    server = models.ForeignKey(
        Server, null=True, blank=True, on_delete=models.PROTECT, related_name="operations"
    )
    actor = models.CharField(max_length=150, blank=True)
    code = models.CharField(max_length=48, blank=True)
    problem = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # A failed operation holds no server: its claim does, and a retry makes the same
            # operation active again.
            models.UniqueConstraint(
                fields=["server"],
                condition=Q(state="active") & Q(server__isnull=False),
                name="operation_one_active_per_server",
            ),
            models.UniqueConstraint(
                fields=["claim"],
                condition=Q(state="active") & Q(claim__isnull=False),
                name="operation_one_per_claim",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.claim or self.server}"


class BootstrapToken(Base):
    """The public half of a claim's join token:

    which one, for how long. The secret half is in user data only.
    """

    claim = models.OneToOneField(
        NodeClaim, on_delete=models.CASCADE, related_name="bootstrap_token"
    )
    token_id = models.CharField(max_length=16)
    expires = models.DateTimeField()
    revoked = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.token_id


class AgentRun(Base):
    """One boot of our agent for one operation:

    its one-time key (as digest), its session, and what it reported.
    """

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="agent_runs")
    verb = models.CharField(max_length=8)
    key_digest = models.CharField(max_length=64, unique=True)
    token_digest = models.CharField(max_length=64, blank=True)
    hello_at = models.DateTimeField(null=True, blank=True)
    hello = models.JSONField(default=dict, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    percent = models.PositiveSmallIntegerField(null=True, blank=True)
    message = models.TextField(blank=True)
    result_at = models.DateTimeField(null=True, blank=True)
    ok = models.BooleanField(null=True)
    error = models.TextField(blank=True)
    report = models.JSONField(default=dict, blank=True)
    closed = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["operation"], condition=Q(closed=False), name="agent_run_one_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} agent of {self.operation}"
