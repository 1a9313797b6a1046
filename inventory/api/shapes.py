"""The shapes of servers in REST: what is shown, and what is taken."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gpucloud import driver_settings
from gpucloud.api.fields import Flag, Labels, Moment, Row, Settings, Strict, Text, Whole
from inventory.models import Server


class FlagSerializer(serializers.Serializer[Any]):
    on = serializers.BooleanField()
    reason = serializers.CharField()
    until = Moment(allow_null=True, required=False)


class PowerSerializer(serializers.Serializer[Any]):
    state = serializers.CharField(source="power", help_text="on, off or unknown")
    at = Moment(source="power_at", allow_null=True)
    via = serializers.CharField(source="power_via")
    problem = serializers.CharField(source="power_problem")


class HealthSerializer(serializers.Serializer[Any]):
    state = serializers.CharField(source="health")
    at = Moment(source="health_at", allow_null=True)


class EngineSerializer(serializers.Serializer[Any]):
    """The server as its provider's engine (Metal3 …) keeps it."""

    connection = serializers.CharField(source="connection.name", allow_null=True)
    id = serializers.CharField(source="engine_id")
    state = serializers.CharField(source="engine_state")
    problem = serializers.CharField(source="engine_problem")
    code = serializers.CharField(source="engine_problem_code")
    at = Moment(source="engine_at", allow_null=True)


class HolderSerializer(serializers.Serializer[Any]):
    """The live claim that holds a server."""

    uid = serializers.UUIDField()
    tenant = serializers.CharField(source="tenant.name")
    name = serializers.CharField()
    state = serializers.CharField()


class CableSerializer(serializers.Serializer[Any]):
    fabric = serializers.CharField(source="fabric.name")
    switch = serializers.CharField()
    port = serializers.CharField()
    seen_vlan = serializers.IntegerField(allow_null=True)
    seen_at = Moment(allow_null=True)


class InterfaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    mac = serializers.CharField()
    roles = serializers.ListField(child=serializers.CharField())
    speed_mbps = serializers.IntegerField(allow_null=True)
    link_state = serializers.CharField()
    link = CableSerializer(allow_null=True)


class GpuSerializer(serializers.Serializer[Any]):
    model = serializers.CharField()
    serial = serializers.CharField()
    uuid = serializers.CharField(source="gpu_uuid")
    slot = serializers.CharField()
    memory_bytes = serializers.IntegerField(allow_null=True)


class DriveSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    serial = serializers.CharField()
    model = serializers.CharField()
    protocol = serializers.CharField()
    media = serializers.CharField()
    capacity_bytes = serializers.IntegerField(allow_null=True)


class BmcSerializer(serializers.Serializer[Any]):
    """How the power is switched; credentials are only ever set."""

    driver = serializers.CharField()
    address = serializers.CharField()
    config = serializers.SerializerMethodField()
    certificate = serializers.CharField()
    checked = Moment(allow_null=True)
    problem = serializers.CharField()

    def get_config(self, bmc: Any) -> dict[str, Any]:
        return driver_settings.shown("bmc", bmc.driver, bmc.config)


class WipeSerializer(serializers.Serializer[Any]):
    uid = serializers.UUIDField()
    tenancy = serializers.IntegerField()
    kind = serializers.CharField()
    passed = serializers.BooleanField()
    drives = serializers.JSONField()
    code = serializers.CharField()
    actor = serializers.CharField()
    started = Moment(allow_null=True)
    ended = Moment(allow_null=True)
    signature = serializers.CharField(allow_null=True)


class ServerSerializer(Row):
    name = serializers.CharField()
    state = serializers.CharField()
    state_since = Moment()
    code = serializers.CharField()
    problem = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    site = serializers.CharField(source="rack.site.name", allow_null=True)
    rack = serializers.CharField(source="rack.name", allow_null=True)
    slot = serializers.IntegerField(allow_null=True)
    vendor = serializers.CharField()
    model = serializers.CharField()
    serial = serializers.CharField()
    system_uuid = serializers.CharField()
    tenancy = serializers.IntegerField()
    clean_tenancy = serializers.IntegerField(allow_null=True)
    power = PowerSerializer(source="*")
    health = HealthSerializer(source="*")
    maintenance = serializers.SerializerMethodField()
    quarantine = serializers.SerializerMethodField()
    engine = EngineSerializer(source="*")
    claim = serializers.SerializerMethodField()
    inspected = Moment(allow_null=True)

    @extend_schema_field(FlagSerializer)
    def get_maintenance(self, server: Server) -> Any:
        return FlagSerializer(
            {
                "on": server.maintenance,
                "reason": server.maintenance_reason,
                "until": server.maintenance_until,
            }
        ).data

    @extend_schema_field(FlagSerializer)
    def get_quarantine(self, server: Server) -> Any:
        return FlagSerializer(
            {"on": server.quarantined, "reason": server.quarantine_reason, "until": None}
        ).data

    @extend_schema_field(HolderSerializer(allow_null=True))
    def get_claim(self, server: Server) -> Any:
        # Over the prefetched rows: a filter would ask once per server of a list.
        live = [one for one in server.claims.all() if one.state != "gone"]
        return HolderSerializer(live[0]).data if live else None


class ProvisioningAddressSerializer(serializers.Serializer[Any]):
    address = serializers.CharField(source="provisioning_address")
    gateway = serializers.CharField(source="provisioning_gateway")
    dns = serializers.CharField(source="provisioning_dns")


class ServerDetailSerializer(ServerSerializer):
    bmc = BmcSerializer(allow_null=True)
    provisioning = ProvisioningAddressSerializer(source="*")
    interfaces = InterfaceSerializer(many=True)
    gpus = GpuSerializer(many=True)
    drives = DriveSerializer(many=True)
    facts = serializers.JSONField()
    wipe = serializers.SerializerMethodField()

    @extend_schema_field(WipeSerializer(allow_null=True))
    def get_wipe(self, server: Server) -> Any:
        latest = server.wipes.first()
        return WipeSerializer(latest).data if latest else None


class BmcBody(Strict):
    driver = Text(max_length=16)
    address = Text(required=False, allow_blank=True, max_length=300)
    username = Text(required=False, max_length=200)
    password = Text(required=False, max_length=500, trim_whitespace=False)
    config = Settings(required=False)


class InterfaceBody(Strict):
    name = Text(max_length=32)
    mac = serializers.RegexField(r"^([0-9A-Fa-f]{2}:){5}([0-9A-Fa-f]{2})$", max_length=17)
    roles = serializers.ListField(child=Text(), required=False)
    speed_mbps = Whole(required=False, min_value=1, max_value=10_000_000)


class ProvisioningBody(Strict):
    address = Text(max_length=50, help_text="With its prefix, for example 10.10.0.12/22.")
    gateway = serializers.IPAddressField(required=False)
    dns = Text(required=False, max_length=200)


class ServerBody(Strict):
    name = Text(max_length=63)
    bmc = BmcBody()
    labels = Labels(required=False)
    interfaces = InterfaceBody(many=True, required=False)
    provisioning = ProvisioningBody(required=False)
    connection = Text(required=False, max_length=63)
    engine_id = Text(required=False, max_length=130)
    site = Text(required=False, max_length=63)
    rack = Text(required=False, max_length=63)
    slot = Whole(required=False, min_value=1, max_value=60)


class ServerChange(Strict):
    labels = Labels(required=False)
    bmc = BmcBody(required=False)


class PowerBody(Strict):
    state = Text(help_text="on or off")


class FlagBody(Strict):
    on = Flag()
    reason = Text(required=False, allow_blank=True, max_length=200)


class MaintenanceBody(FlagBody):
    until = Moment(required=False, allow_null=True)


class TypedName(Strict):
    name = Text(help_text="The server's name, typed again.")


class TestBody(Strict):
    """Settings that are not saved; `connection` gives what a Metal3 BMC needs."""

    driver = Text(max_length=16)
    address = Text(required=False, allow_blank=True, max_length=300)
    username = Text(required=False, max_length=200)
    password = Text(required=False, max_length=500, trim_whitespace=False)
    config = Settings(required=False)
    connection = Text(required=False, max_length=63)
    engine_id = Text(required=False, max_length=130)


class TestResult(serializers.Serializer[Any]):
    usable = serializers.BooleanField()
    problems = serializers.ListField(child=serializers.CharField())
