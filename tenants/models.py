"""Who wants what: tenants, their members, cluster templates, tenant clusters and node pools."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from gpucloud.models import Base, User, name_validator
from network.models import Segment


class Tenant(Base):
    """A customer or team. Quota keys are servers and gpus; an absent key means no limit."""

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    display_name = models.CharField(max_length=100, blank=True)
    project_namespace = models.CharField(max_length=63, blank=True)
    quota = models.JSONField(default=dict, blank=True)
    builtin = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/tenants/{self.name}/"

    @property
    def namespace(self) -> str:
        return self.project_namespace or f"p-{self.name}"


class Membership(Base):
    class Role(models.TextChoices):
        OWNER = "owner", "Owner"
        OPERATOR = "operator", "Operator"
        VIEWER = "viewer", "Viewer"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"


class ControlPlane(Base):
    """Where tenant control planes run: one driver, one configuration."""

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    driver = models.CharField(max_length=24)
    config = models.JSONField(default=dict, blank=True)
    connection = models.ForeignKey(
        "inventory.KubernetesConnection",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
    )

    def __str__(self) -> str:
        return self.name


class ClusterTemplate(Base):
    """A versioned recipe with typed parameters;

    `body` is vcluster.yaml as data with `{"$parameter": key}` places.
    """

    name = models.CharField(max_length=63, validators=[name_validator])
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    parameters = models.JSONField(default=list)
    body = models.JSONField(default=dict)
    chart_version = models.CharField(max_length=32)
    control_plane = models.ForeignKey(
        ControlPlane, on_delete=models.PROTECT, related_name="templates"
    )
    latest = models.BooleanField(default=True)

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="template_version"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(latest=True), name="template_latest"
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return f"/templates/{self.name}/"


class TenantClusterQuerySet(models.QuerySet["TenantCluster"]):
    def live(self) -> Self:
        return self.exclude(state=TenantCluster.State.GONE)


class TenantCluster(Base):
    """One tenant's Kubernetes cluster: control plane and pools."""

    class State(models.TextChoices):
        REQUESTED = "requested", "Requested"
        NETWORK = "network", "Network"
        SCHEDULING = "scheduling", "Scheduling"
        CREATING_NAMESPACE = "creating-namespace", "Creating namespace"
        DEPLOYING = "deploying", "Deploying"
        AVAILABLE = "available", "Available"
        CONNECTED = "connected", "Connected"
        READY = "ready", "Ready"
        CHANGING = "changing", "Changing"
        FAILED = "failed", "Failed"
        DELETING = "deleting", "Deleting"
        GONE = "gone", "Gone"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="clusters")
    name = models.CharField(max_length=63, validators=[name_validator])
    state = models.CharField(max_length=20, choices=State, default=State.REQUESTED)
    state_since = models.DateTimeField(auto_now_add=True)
    code = models.CharField(max_length=48, blank=True)
    problem = models.TextField(blank=True)
    template = models.ForeignKey(ClusterTemplate, on_delete=models.PROTECT, related_name="clusters")
    parameters = models.JSONField(default=dict)
    segment = models.ForeignKey(
        Segment, null=True, blank=True, on_delete=models.PROTECT, related_name="clusters"
    )
    node_endpoint = models.CharField(max_length=80, blank=True)
    client_endpoint = models.CharField(max_length=200, blank=True)
    ca_hash = models.CharField(max_length=80, blank=True)
    conditions = models.JSONField(default=list)
    asked_by = models.CharField(max_length=150, blank=True)
    run = models.PositiveIntegerField(default=0)
    ready_at = models.DateTimeField(null=True, blank=True)

    objects = TenantClusterQuerySet.as_manager()

    class Meta:
        ordering = ["tenant", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=~Q(state="gone"), name="cluster_live_name"
            ),
            models.UniqueConstraint(
                fields=["segment"],
                condition=~Q(state="gone") & Q(segment__isnull=False),
                name="cluster_segment",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/clusters/{self.tenant.name}/{self.name}/"

    @property
    def deleting(self) -> bool:
        return self.state in (self.State.DELETING, self.State.GONE)


class NodePool(Base):
    """A static or dynamic set of claims of one cluster; `quantity` is the wish of a static one."""

    class Kind(models.TextChoices):
        STATIC = "static", "Static"
        DYNAMIC = "dynamic", "Dynamic"

    cluster = models.ForeignKey(TenantCluster, on_delete=models.CASCADE, related_name="pools")
    name = models.CharField(max_length=40, validators=[name_validator])
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.STATIC)
    node_type = models.ForeignKey(
        "provisioning.NodeType", on_delete=models.PROTECT, related_name="pools"
    )
    quantity = models.PositiveIntegerField(default=0)
    minimum = models.PositiveIntegerField(default=0)
    maximum = models.PositiveIntegerField(default=0)
    labels = models.JSONField(default=dict, blank=True)
    taints = models.JSONField(default=list, blank=True)
    image = models.ForeignKey(
        "provisioning.OSImage", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="pool_name"),
            models.CheckConstraint(condition=Q(maximum__gte=F("minimum")), name="pool_range"),
        ]

    def __str__(self) -> str:
        return self.name
