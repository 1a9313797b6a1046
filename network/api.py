"""Networks in REST: fabrics, segments with their members, attachments, and cables."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gpucloud import driver_settings, policy
from gpucloud.api.fields import Moment, Nothing, Row, Strict, Text, Whole
from gpucloud.api.filters import Filter, states
from gpucloud.api.views import IDEMPOTENCY, Door, verb
from gpucloud.problems import Invalid
from inventory.models import Interface
from network.models import Attachment, Fabric, Link, Segment
from network.services import cables, fabrics, segments
from provisioning.models import NodeClaim
from tenants.models import Tenant


class FabricSerializer(Row):
    name = serializers.CharField()
    site = serializers.CharField(source="site.name")
    driver = serializers.CharField()
    config = serializers.SerializerMethodField()
    vlan_first = serializers.IntegerField()
    vlan_last = serializers.IntegerField()
    flat = serializers.BooleanField(help_text="One segment for everything: not isolated.")
    checked = Moment(allow_null=True)
    problem = serializers.CharField()

    def get_config(self, fabric: Fabric) -> dict[str, Any]:
        return driver_settings.shown("fabric", fabric.driver, fabric.config)


class Fabrics(Door):
    full = FabricSerializer
    search = ("name", "site__name")
    filters = {"driver": Filter("driver", "Kind of driver."), "site": Filter("site__name", "Site.")}

    def rows(self) -> QuerySet[Any]:
        return Fabric.objects.select_related("site")

    def retrieve(self, request: Request, name: str) -> Response:
        return self.answer(self.one(name=name))

    @verb("fabrics_check", Nothing, FabricSerializer)
    def check(self, request: Request, name: str) -> Response:
        """Try the connection now; `problem` says what was found."""
        fabric = self.one(name=name)
        self.require("check", fabric)
        self.body(Nothing)
        fabrics.check(fabric)
        return self.accepted(self.one(pk=fabric.pk))


class MemberForTenant(serializers.Serializer[Any]):
    """One interface that is wanted in a segment, as its tenant sees it."""

    uid = serializers.UUIDField()
    claim = serializers.SerializerMethodField()
    interface = serializers.CharField(source="interface.name")
    mode = serializers.CharField()
    state = serializers.CharField()
    observed = serializers.BooleanField(allow_null=True)
    observed_at = Moment(allow_null=True)

    def get_claim(self, row: Attachment) -> str | None:
        names: dict[Any, str] = self.context.get("claims", {})
        return names.get(row.claim_uid)


class Member(MemberForTenant):
    owner = serializers.SerializerMethodField(required=False)
    switch = serializers.CharField(source="interface.link.switch", default=None)
    port = serializers.CharField(source="interface.link.port", default=None)

    def get_owner(self, row: Attachment) -> str:
        return str(row.interface.server or row.interface.shared_endpoint)


class SeenPort(serializers.Serializer[Any]):
    """One port that the switch itself says is in the segment."""

    switch = serializers.CharField()
    port = serializers.CharField()
    access = serializers.IntegerField(allow_null=True)
    tagged = serializers.ListField(child=serializers.IntegerField())


class SegmentForTenant(Row):
    fabric = serializers.CharField(source="fabric.name")
    name = serializers.CharField()
    role = serializers.CharField()
    state = serializers.CharField()
    tenant = serializers.CharField(source="tenant.name", allow_null=True)
    vlan = serializers.IntegerField()
    cidr = serializers.CharField()
    gateway = serializers.CharField()
    dns = serializers.ListField(child=serializers.CharField())
    flat = serializers.BooleanField(source="fabric.flat")
    cluster = serializers.SerializerMethodField()
    seen_at = Moment(allow_null=True)

    def get_cluster(self, segment: Segment) -> str | None:
        live = [one.name for one in segment.clusters.all() if one.state != "gone"]
        return live[0] if live else None


class SegmentSerializer(SegmentForTenant):
    host_bridge = serializers.CharField(required=False)
    made_for = serializers.UUIDField(allow_null=True, required=False)


class SegmentDetailForTenant(SegmentForTenant):
    wanted = serializers.SerializerMethodField()

    @extend_schema_field(MemberForTenant(many=True))
    def get_wanted(self, segment: Segment) -> Any:
        return MemberForTenant(
            [one for one in _attachments(segment) if one.claim_uid],
            many=True,
            context=_claims(segment),
        ).data


class SegmentDetailSerializer(SegmentSerializer):
    """`wanted` is what we ask of the fabric, `observed` what it last told."""

    wanted = serializers.SerializerMethodField()
    observed = serializers.SerializerMethodField(required=False)

    @extend_schema_field(Member(many=True))
    def get_wanted(self, segment: Segment) -> Any:
        return Member(_attachments(segment), many=True, context=_claims(segment)).data

    @extend_schema_field(SeenPort(many=True))
    def get_observed(self, segment: Segment) -> Any:
        return SeenPort(segment.seen.get("ports", []), many=True).data


def _attachments(segment: Segment) -> list[Attachment]:
    rows = segment.attachments.exclude(state="gone").order_by("interface__server__name", "pk")
    return list(
        rows.select_related("interface__server", "interface__shared_endpoint", "interface__link")
    )


def _claims(segment: Segment) -> dict[str, Any]:
    uids = [one.claim_uid for one in _attachments(segment) if one.claim_uid]
    return {"claims": dict(NodeClaim.objects.filter(uid__in=uids).values_list("uid", "name"))}


class SegmentBody(Strict):
    fabric = Text()
    name = Text(max_length=63)
    tenant = Text(required=False, allow_null=True)
    role = Text(required=False)
    vlan = Whole(required=False, min_value=1, max_value=4094, help_text="The lowest free if absent")
    cidr = Text(required=False, max_length=43)
    gateway = serializers.IPAddressField(required=False)
    dns = serializers.ListField(child=serializers.IPAddressField(), required=False, max_length=3)
    host_bridge = serializers.RegexField(r"^[A-Za-z0-9_.-]{1,15}$", required=False)


class Segments(Door):
    full = SegmentDetailSerializer
    public = SegmentDetailForTenant
    brief = SegmentSerializer
    public_brief = SegmentForTenant
    search = ("name", "fabric__name", "cidr")
    hidden = ("state", "gone")
    filters = {
        "state": states(Segment, "gone"),
        "fabric": Filter("fabric__name", "Name of the fabric."),
        "tenant": Filter("tenant__name", "Name of the tenant."),
        "role": Filter("role", "What it is for.", Segment.Role.values),
    }

    def rows(self) -> QuerySet[Any]:
        return Segment.objects.select_related("fabric", "tenant").prefetch_related("clusters")

    def _segment(self, fabric: str, name: str) -> Segment:
        rows = self.get_queryset().exclude(state="gone")
        found: Segment = self.one(rows, fabric__name=fabric, name=name)
        return found

    def retrieve(self, request: Request, fabric: str, name: str) -> Response:
        return self.answer(self._segment(fabric, name))

    @extend_schema(
        request=SegmentBody, responses={201: SegmentDetailSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        self.require("create", Segment)
        values = self.body(SegmentBody)
        values["fabric"] = _named(Fabric, "fabric", values["fabric"])
        if values.get("tenant"):
            values["tenant"] = _named(Tenant, "tenant", values["tenant"])
        role = values.get("role", Segment.Role.TENANT)
        if role not in Segment.Role.values:
            raise Invalid({"role": [f"Choose one of {', '.join(Segment.Role.values)}."]})
        if role != Segment.Role.TENANT and values.get("tenant"):
            raise Invalid({"tenant": [f"A {role} segment belongs to no tenant."]})
        return self.created(lambda: self.one(pk=segments.create(self.actor, **values).pk))

    @verb("segments_observe", Nothing, SegmentDetailSerializer)
    def observe(self, request: Request, fabric: str, name: str) -> Response:
        """Read from the fabric now who is in the segment."""
        segment = self._segment(fabric, name)
        self.require("observe", segment)
        self.body(Nothing)
        segments.membership(segment)
        return self.accepted(self._segment(fabric, name))


class AttachmentForTenant(Row):
    segment = serializers.SerializerMethodField()
    interface = serializers.CharField(source="interface.name")
    mode = serializers.CharField()
    state = serializers.CharField()
    claim_uid = serializers.UUIDField(allow_null=True)
    observed = serializers.BooleanField(allow_null=True)
    observed_at = Moment(allow_null=True)
    since = Moment(allow_null=True)

    def get_segment(self, row: Attachment) -> str:
        return f"{row.segment.fabric.name}/{row.segment.name}"


class AttachmentSerializer(AttachmentForTenant):
    owner = serializers.SerializerMethodField(required=False)
    switch = serializers.CharField(source="interface.link.switch", default=None)
    port = serializers.CharField(source="interface.link.port", default=None)
    evidence = serializers.JSONField(required=False)

    def get_owner(self, row: Attachment) -> str:
        return str(row.interface.server or row.interface.shared_endpoint)


class Attachments(Door):
    full = AttachmentSerializer
    public = AttachmentForTenant
    hidden = ("state", "gone")
    filters = {
        "state": states(Attachment, "gone"),
        "segment": Filter("segment__name", "Name of the segment."),
        "fabric": Filter("segment__fabric__name", "Name of the fabric."),
        "claim": Filter("claim_uid", "Uid of the claim.", kind="uuid"),
        "mode": Filter("mode", "Access or trunk.", Attachment.Mode.values),
    }

    def rows(self) -> QuerySet[Any]:
        return Attachment.objects.select_related(
            "segment__fabric",
            "interface__server",
            "interface__shared_endpoint",
            "interface__link",
        )

    def get_queryset(self) -> QuerySet[Any]:
        rows = super().get_queryset()
        # Trunks of shared endpoints are the platform's own plumbing.
        return rows if self.platform else rows.filter(claim_uid__isnull=False)

    def retrieve(self, request: Request, uid: str) -> Response:
        return self.answer(self.one(uid=uid))


class LinkSerializer(Row):
    """One cable."""

    server = serializers.CharField(source="interface.server.name", allow_null=True)
    shared_endpoint = serializers.CharField(
        source="interface.shared_endpoint.name", allow_null=True
    )
    interface = serializers.CharField(source="interface.name")
    mac = serializers.CharField(source="interface.mac")
    fabric = serializers.CharField(source="fabric.name")
    switch = serializers.CharField()
    port = serializers.CharField()
    seen_vlan = serializers.IntegerField(allow_null=True)
    seen_tagged = serializers.ListField(child=serializers.IntegerField())
    seen_at = Moment(allow_null=True)


class LinkBody(Strict):
    """`server` or `shared_endpoint` names the owner of the interface."""

    server = Text(required=False)
    shared_endpoint = Text(required=False)
    interface = Text(max_length=32)
    fabric = Text()
    switch = serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=63)
    port = serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$", max_length=63)


class Links(Door):
    full = LinkSerializer
    search = ("interface__server__name", "interface__mac", "switch", "port")
    filters = {
        "fabric": Filter("fabric__name", "Name of the fabric."),
        "switch": Filter("switch", "Name of the switch."),
        "server": Filter("interface__server__name", "Name of the server."),
    }

    def rows(self) -> QuerySet[Any]:
        return Link.objects.select_related(
            "fabric", "interface__server", "interface__shared_endpoint"
        )

    def retrieve(self, request: Request, uid: str) -> Response:
        return self.answer(self.one(uid=uid))

    @extend_schema(request=LinkBody, responses={201: LinkSerializer}, parameters=[IDEMPOTENCY])
    def create(self, request: Request) -> Response:
        """Record a cable."""
        self.require("create", Link)
        values = self.body(LinkBody)
        fabric = _named(Fabric, "fabric", values["fabric"])
        port = _interface(values)
        return self.created(
            lambda: self.one(
                pk=cables.plug(port, fabric, values["switch"], values["port"], self.actor).pk
            )
        )

    @extend_schema(responses={202: LinkSerializer})
    def destroy(self, request: Request, uid: str) -> Response:
        link = self.one(uid=uid)
        self.require("delete", link)
        shown = self.accepted(link)
        cables.unplug(link, self.actor)
        return shown


def _interface(values: dict[str, Any]) -> Interface:
    owners = [name for name in ("server", "shared_endpoint") if values.get(name)]
    if len(owners) != 1:
        raise Invalid({"server": ["Name either a server or a shared endpoint."]})
    owner = owners[0]
    live = Q(server__isnull=True) | ~Q(server__state="retired")
    rows = Interface.objects.filter(live, **{f"{owner}__name": values[owner]})
    if not rows.exists():
        raise Invalid({owner: [f"There is no {owner.replace('_', ' ')} with ports of this name."]})
    found = rows.filter(name=values["interface"]).first()
    if found is None:
        names = ", ".join(rows.values_list("name", flat=True))
        raise Invalid({"interface": [f"{values[owner]} has the ports: {names}."]})
    return found


def _named(model: Any, field: str, name: str) -> Any:
    found = model.objects.filter(name=name).first()
    if found is None:
        raise Invalid({field: [f"There is no {policy.kind_of(model)} called {name}."]})
    return found
