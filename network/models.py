"""How it is wired: fabrics, cables, segments, who is attached to which, and addresses taken."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from gpucloud.models import Base, name_validator
from inventory.models import Interface, Server, Site


class Fabric(Base):
    """A switch controller: one driver, one configuration, one range of VLANs that we may use for
    tenants.
    """

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="fabrics")
    driver = models.CharField(max_length=16)
    config = models.JSONField(default=dict, blank=True)
    vlan_first = models.PositiveSmallIntegerField(default=101)
    vlan_last = models.PositiveSmallIntegerField(default=199)
    flat = models.BooleanField(default=False, help_text="One segment for everything: not isolated.")
    checked = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Link(Base):
    """One cable: an interface and the switch port it is in; both are in at most one."""

    interface = models.OneToOneField(Interface, on_delete=models.CASCADE, related_name="link")
    fabric = models.ForeignKey(Fabric, on_delete=models.PROTECT, related_name="links")
    switch = models.CharField(max_length=63)
    port = models.CharField(max_length=63)
    seen_vlan = models.PositiveSmallIntegerField(null=True, blank=True)
    seen_tagged = models.JSONField(default=list, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("fabric", Lower("switch"), Lower("port"), name="link_port")
        ]

    def __str__(self) -> str:
        return f"{self.switch} {self.port}"


class Segment(Base):
    """One isolated network on a fabric."""

    class Role(models.TextChoices):
        OOB = "oob", "Out of band"
        PROVISIONING = "provisioning", "Provisioning"
        QUARANTINE = "quarantine", "Quarantine"
        STANDBY = "standby", "Standby"
        TENANT = "tenant", "Tenant"

    class State(models.TextChoices):
        WANTED = "wanted", "Wanted"
        APPLIED = "applied", "Applied"
        FAILED = "failed", "Failed"
        REMOVING = "removing", "Removing"
        GONE = "gone", "Gone"

    fabric = models.ForeignKey(Fabric, on_delete=models.PROTECT, related_name="segments")
    name = models.CharField(max_length=63, validators=[name_validator])
    role = models.CharField(max_length=12, choices=Role, default=Role.TENANT)
    state = models.CharField(max_length=8, choices=State, default=State.WANTED)
    vlan = models.PositiveSmallIntegerField()
    cidr = models.CharField(max_length=43, blank=True)
    gateway = models.CharField(max_length=39, blank=True)
    dns = models.JSONField(default=list, blank=True)
    host_bridge = models.CharField(max_length=15, blank=True)
    tenant = models.ForeignKey(
        "tenants.Tenant", null=True, blank=True, on_delete=models.PROTECT, related_name="segments"
    )
    # A segment made for a cluster dies with it; one that was there before stays.
    made_for = models.UUIDField(null=True, blank=True)
    seen = models.JSONField(default=dict, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["fabric", "vlan"]
        constraints = [
            models.UniqueConstraint(
                fields=["fabric", "name"], condition=~Q(state="gone"), name="segment_name"
            ),
            models.UniqueConstraint(
                fields=["fabric", "vlan"], condition=~Q(state="gone"), name="segment_vlan"
            ),
            models.CheckConstraint(
                condition=Q(vlan__gte=1, vlan__lte=4094), name="segment_vlan_range"
            ),
            models.CheckConstraint(
                condition=Q(role="tenant") | Q(tenant__isnull=True),
                name="segment_tenant_only_for_tenants",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/networks/{self.fabric.name}/{self.name}/"


class Attachment(Base):
    """One interface on one segment, wanted and observed."""

    class Mode(models.TextChoices):
        ACCESS = "access", "Access"
        TRUNK = "trunk", "Trunk"

    class State(models.TextChoices):
        WANTED = "wanted", "Wanted"
        APPLYING = "applying", "Applying"
        APPLIED = "applied", "Applied"
        FAILED = "failed", "Failed"
        REMOVING = "removing", "Removing"
        GONE = "gone", "Gone"

    interface = models.ForeignKey(Interface, on_delete=models.CASCADE, related_name="attachments")
    segment = models.ForeignKey(Segment, on_delete=models.PROTECT, related_name="attachments")
    mode = models.CharField(max_length=6, choices=Mode, default=Mode.ACCESS)
    state = models.CharField(max_length=8, choices=State, default=State.WANTED)
    claim_uid = models.UUIDField(null=True, blank=True)
    observed = models.BooleanField(null=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    since = models.DateTimeField(null=True, blank=True)
    evidence = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["interface"],
                condition=Q(mode="access") & ~Q(state="gone"),
                name="attachment_one_access",
            ),
            models.UniqueConstraint(
                fields=["interface", "segment"], condition=~Q(state="gone"), name="attachment_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.interface} in {self.segment}"


class Address(Base):
    """One address taken in a segment:

    a server's tenant address for a claim, or an endpoint's VIP for a cluster.
    """

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="addresses")
    address = models.GenericIPAddressField()
    purpose = models.CharField(max_length=16)
    owner_uid = models.UUIDField()
    server = models.ForeignKey(
        Server, null=True, blank=True, on_delete=models.CASCADE, related_name="addresses"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["segment", "address"], name="address_once"),
            models.UniqueConstraint(
                fields=["segment", "owner_uid", "purpose"], name="address_per_owner"
            ),
        ]

    def __str__(self) -> str:
        return self.address
