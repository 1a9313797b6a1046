"""What we own: sites, racks, servers, their BMCs, ports, GPUs, drives, and the records of their
wipes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone

from gpucloud.models import Base, name_validator

if TYPE_CHECKING:
    from provisioning.models import NodeClaim

POWER_GOOD_FOR = timedelta(seconds=120)


class Site(Base):
    name = models.CharField(max_length=63, unique=True, validators=[name_validator])

    def __str__(self) -> str:
        return self.name


class Rack(Base):
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="racks")
    name = models.CharField(max_length=63)
    units = models.PositiveSmallIntegerField(default=42)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["site", "name"], name="rack_name")]

    def __str__(self) -> str:
        return self.name


class KubernetesConnection(Base):
    """A way to a Kubernetes API that we drive (Metal3, the tenant platform);

    the kubeconfig is in the vault.
    """

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    namespace = models.CharField(max_length=63, default="default")
    checked = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.name


class ServerQuerySet(models.QuerySet["Server"]):
    def usable(self) -> Self:
        """Servers that a claim may take now."""
        return self.filter(
            state=Server.State.AVAILABLE,
            clean_tenancy=F("tenancy"),
            maintenance=False,
            quarantined=False,
        )


class Server(Base):
    """One physical machine we own, with a BMC."""

    class State(models.TextChoices):
        ENROLLED = "enrolled", "Enrolled"
        INSPECTING = "inspecting", "Inspecting"
        AVAILABLE = "available", "Available"
        HELD = "held", "Held"
        CLEANING = "cleaning", "Cleaning"
        FAILED = "failed", "Failed"
        RETIRED = "retired", "Retired"

    class Power(models.TextChoices):
        ON = "on", "On"
        OFF = "off", "Off"
        UNKNOWN = "unknown", "Unknown"

    name = models.CharField(max_length=63, validators=[name_validator])
    state = models.CharField(max_length=12, choices=State, default=State.ENROLLED)
    state_since = models.DateTimeField(auto_now_add=True)
    code = models.CharField(max_length=48, blank=True)
    problem = models.TextField(blank=True)
    labels = models.JSONField(default=dict, blank=True)
    rack = models.ForeignKey(
        Rack, null=True, blank=True, on_delete=models.PROTECT, related_name="servers"
    )
    slot = models.PositiveSmallIntegerField(null=True, blank=True)

    system_uuid = models.CharField(max_length=36, blank=True)
    serial = models.CharField(max_length=100, blank=True)
    vendor = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=100, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    inspected = models.DateTimeField(null=True, blank=True)

    tenancy = models.PositiveIntegerField(default=1)
    clean_tenancy = models.PositiveIntegerField(null=True, blank=True)

    maintenance = models.BooleanField(default=False)
    maintenance_reason = models.CharField(max_length=200, blank=True)
    maintenance_until = models.DateTimeField(null=True, blank=True)
    quarantined = models.BooleanField(default=False)
    quarantine_reason = models.CharField(max_length=200, blank=True)

    power = models.CharField(max_length=8, choices=Power, default=Power.UNKNOWN)
    power_at = models.DateTimeField(null=True, blank=True)
    power_via = models.CharField(max_length=16, blank=True)
    power_problem = models.TextField(blank=True)
    health = models.CharField(max_length=16, blank=True)
    health_at = models.DateTimeField(null=True, blank=True)

    # Where the server's engine keeps it, e.g. connection "host", engine_id "default/bare-metal-2".
    connection = models.ForeignKey(
        KubernetesConnection,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="servers",
    )
    engine_id = models.CharField(max_length=130, blank=True)
    engine_state = models.CharField(max_length=60, blank=True)
    engine_problem = models.TextField(blank=True)
    engine_problem_code = models.CharField(max_length=48, blank=True)
    engine_at = models.DateTimeField(null=True, blank=True)

    # The provisioning address (CIDR) and its annotations' values: kept across claims, repaired when
    # stripped.
    provisioning_address = models.CharField(max_length=50, blank=True)
    provisioning_gateway = models.CharField(max_length=45, blank=True)
    provisioning_dns = models.CharField(max_length=200, blank=True)

    objects = ServerQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=~Q(state="retired"), name="server_live_name"
            ),
            models.UniqueConstraint(
                Lower("system_uuid"),
                condition=~Q(state="retired") & ~Q(system_uuid=""),
                name="server_uuid",
            ),
            models.UniqueConstraint(
                "vendor",
                "serial",
                condition=~Q(state="retired") & ~Q(serial=""),
                name="server_serial",
            ),
            models.UniqueConstraint(
                fields=["connection", "engine_id"],
                condition=~Q(state="retired") & ~Q(engine_id=""),
                name="server_engine_id",
            ),
            # The clean gate: a server is on offer only when its last tenancy was wiped. A trigger
            # on both
            # databases adds that the passing record exists and covers the inventory's drives.
            models.CheckConstraint(
                condition=~Q(state="available") | Q(clean_tenancy=F("tenancy")),
                name="server_clean_gate",
            ),
        ]
        indexes = [models.Index(fields=["state"], name="server_state")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/servers/{self.name}/"

    @property
    def power_now(self) -> str:
        """The power as far as anybody knows now: what was read too long ago is unknown, not off."""
        known = self.power_at is not None and timezone.now() - self.power_at <= POWER_GOOD_FOR
        return self.power if known else self.Power.UNKNOWN

    @property
    def claim(self) -> NodeClaim | None:
        """The live claim that holds this server, if any."""
        return self.claims.exclude(state="gone").first()


class BmcManager(models.Manager["Bmc"]):
    pass


class Bmc(Base):
    """How the server's power is switched and read:

    exactly one door. Credentials are in the vault.
    """

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="bmc")
    driver = models.CharField(max_length=16)
    config = models.JSONField(default=dict, blank=True)
    # Canonical address, e.g. https://10.0.0.5:443/redfish/v1/Systems/1; with it a metal3 BMC is
    # also read directly.
    address = models.CharField(max_length=300, blank=True)
    certificate = models.CharField(max_length=64, blank=True)
    checked = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)

    objects = BmcManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("address"), condition=~Q(address=""), name="bmc_address"),
        ]

    def __str__(self) -> str:
        return f"BMC of {self.server}"


class SharedEndpoint(Base):
    """A port owner without a BMC, never claimable, trunked into tenants' segments (`knode-1`)."""

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])

    def __str__(self) -> str:
        return self.name


class Interface(Base):
    """One port of a server or of a shared endpoint: MAC and NIC roles."""

    ROLES = ("boot", "tenant", "fabric", "storage")

    server = models.ForeignKey(
        Server, null=True, blank=True, on_delete=models.CASCADE, related_name="interfaces"
    )
    shared_endpoint = models.ForeignKey(
        SharedEndpoint, null=True, blank=True, on_delete=models.CASCADE, related_name="interfaces"
    )
    name = models.CharField(max_length=32)
    mac = models.CharField(max_length=23, unique=True)
    roles = models.JSONField(default=list, blank=True)
    speed_mbps = models.PositiveIntegerField(null=True, blank=True)
    link_state = models.CharField(max_length=8, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(server__isnull=False, shared_endpoint__isnull=True)
                | Q(server__isnull=True, shared_endpoint__isnull=False),
                name="interface_one_owner",
            ),
            models.UniqueConstraint(fields=["server", "name"], name="interface_name"),
        ]

    def __str__(self) -> str:
        return f"{self.server or self.shared_endpoint} {self.name}"


class Gpu(Base):
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="gpus")
    model = models.CharField(max_length=100)
    serial = models.CharField(max_length=100, blank=True)
    gpu_uuid = models.CharField(max_length=60, blank=True)
    slot = models.CharField(max_length=60, blank=True)
    memory_bytes = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["slot", "id"]

    def __str__(self) -> str:
        return self.model


class Drive(Base):
    """A drive of the inventory: the set that a wipe must cover."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="drives")
    serial = models.CharField(max_length=100)
    model = models.CharField(max_length=100, blank=True)
    name = models.CharField(max_length=60, blank=True)
    protocol = models.CharField(max_length=20, blank=True)
    media = models.CharField(max_length=20, blank=True)
    capacity_bytes = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["name", "serial"]
        constraints = [models.UniqueConstraint(fields=["server", "serial"], name="drive_serial")]

    def __str__(self) -> str:
        return self.serial


class WipeRecord(Base):
    """The evidence that the drives of one tenancy hold nothing any more;

    never changed after it is written.
    """

    class Kind(models.TextChoices):
        VERIFIED = "verified", "Verified by our agent"
        ENGINE = "engine", "Told by the engine"
        DECLARED = "declared", "Declared blank"

    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="wipes")
    tenancy = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind)
    passed = models.BooleanField()
    drives = models.JSONField(default=list)
    drive_serials = models.JSONField(
        default=list, help_text="sorted serials, compared with the inventory's"
    )
    report = models.JSONField(default=dict)
    code = models.CharField(max_length=48, blank=True)
    actor = models.CharField(max_length=150)
    claim_uid = models.UUIDField(null=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    # Filled when records are signed; until then a page shows "unsigned".
    signature = models.TextField(null=True)  # noqa: DJ001
    key_id = models.CharField(max_length=64, null=True)  # noqa: DJ001
    previous_hash = models.CharField(max_length=64, null=True)  # noqa: DJ001

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["server", "tenancy"],
                condition=Q(passed=True),
                name="wipe_one_pass_per_tenancy",
            )
        ]

    def __str__(self) -> str:
        return f"wipe of {self.server}, tenancy {self.tenancy}"
